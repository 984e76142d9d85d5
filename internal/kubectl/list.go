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
	pageSize    = 500 // objects in a page
	concurrency = 8   // concurrent requests
	fewNames    = 10  // most objects of a kind and namespace that are requested one by one
)

var (
	secrets = resource("", "v1", "secrets")
	events  = resource("", "v1", "events")
)

// listScope is a resource in a namespace. The namespace is empty for all namespaces and for cluster-scoped resources.
type listScope struct {
	schema.GroupVersionResource
	namespace string
}

func (s listScope) String() string {
	name := s.GroupResource().String()
	if s.namespace != "" {
		return name + " in " + s.namespace
	}
	return name
}

func (r *objectReader) listMetadata(ctx context.Context, scope listScope, options metav1.ListOptions, each func(*metav1.PartialObjectMetadata)) error {
	options.Limit = pageSize
	for {
		list, err := r.metadata.Resource(scope.GroupVersionResource).Namespace(scope.namespace).List(ctx, options)
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

// read reads objects of a scope by name. It reads only the metadata of Secrets.
func (r *objectReader) read(ctx context.Context, scope listScope, names []string) ([]*unstructured.Unstructured, error) {
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
		err := r.list(ctx, scope, metav1.ListOptions{FieldSelector: selector}, func(u *unstructured.Unstructured) {
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

func (r *objectReader) list(ctx context.Context, scope listScope, options metav1.ListOptions, each func(*unstructured.Unstructured)) error {
	if scope.GroupVersionResource == secrets {
		return r.listSecrets(ctx, scope, options, each)
	}
	options.Limit = pageSize
	for {
		list, err := r.dynamic.Resource(scope.GroupVersionResource).Namespace(scope.namespace).List(ctx, options)
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

func (r *objectReader) listSecrets(ctx context.Context, scope listScope, options metav1.ListOptions, each func(*unstructured.Unstructured)) error {
	var failed error
	err := r.listMetadata(ctx, scope, options, func(m *metav1.PartialObjectMetadata) {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
		failed = errors.Join(failed, err)
		u := &unstructured.Unstructured{Object: object}
		u.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
		each(u)
	})
	return errors.Join(err, failed)
}
