package kubectl

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	pageSize    = 500 // objects in an answer
	concurrency = 8   // requests at a time
	fewNames    = 10  // objects of a kind and namespace that are asked for by their names
)

var (
	secrets = resource("", "v1", "secrets")
	events  = resource("", "v1", "events")
)

// listScope is where objects of a resource are; the namespace is empty for all, and for those of the cluster.
type listScope struct {
	schema.GroupVersionResource
	namespace string
}

func (p listScope) String() string {
	name := p.GroupResource().String()
	if p.namespace != "" {
		return name + " in " + p.namespace
	}
	return name
}

func (g *objectReader) listMetadata(ctx context.Context, p listScope, options metav1.ListOptions, each func(*metav1.PartialObjectMetadata)) error {
	options.Limit = pageSize
	for {
		list, err := g.metadata.Resource(p.GroupVersionResource).Namespace(p.namespace).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range list.Items {
			each(&list.Items[i])
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

// read reads the objects of some names in a place. Of Secrets it reads the metadata only.
func (g *objectReader) read(ctx context.Context, p listScope, names []string) ([]*unstructured.Unstructured, error) {
	wanted := map[string]bool{}
	selectors := []string{""}
	if len(names) <= fewNames {
		selectors = nil
	}
	for _, name := range names {
		wanted[name] = true
		if len(names) <= fewNames {
			selectors = append(selectors, selectName(name).FieldSelector)
		}
	}
	var out []*unstructured.Unstructured
	for _, selector := range selectors {
		err := g.list(ctx, p, metav1.ListOptions{FieldSelector: selector}, func(u *unstructured.Unstructured) {
			if wanted[u.GetName()] {
				out = append(out, u)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (g *objectReader) list(ctx context.Context, p listScope, options metav1.ListOptions, each func(*unstructured.Unstructured)) error {
	if p.GroupVersionResource == secrets {
		return g.listSecrets(ctx, p, options, each)
	}
	options.Limit = pageSize
	for {
		list, err := g.dynamic.Resource(p.GroupVersionResource).Namespace(p.namespace).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range list.Items {
			list.Items[i].SetManagedFields(nil)
			each(&list.Items[i])
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

func (g *objectReader) listSecrets(ctx context.Context, p listScope, options metav1.ListOptions, each func(*unstructured.Unstructured)) error {
	var failed error
	err := g.listMetadata(ctx, p, options, func(m *metav1.PartialObjectMetadata) {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
		failed = errors.Join(failed, err)
		u := &unstructured.Unstructured{Object: object}
		u.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
		each(u)
	})
	return errors.Join(err, failed)
}
