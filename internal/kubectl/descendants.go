package kubectl

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/attribution"
	"github.com/threeport/threeport-agent/internal/health"
)

// objectMetadata is the metadata of an object.
type objectMetadata struct {
	listScope
	uid    types.UID
	name   string
	owners []types.UID
}

// scan lists the metadata of all objects in some scopes.
func (r *objectReader) scan(ctx context.Context, scopes []listScope) ([]objectMetadata, error) {
	return r.scanEach(ctx, scopes, metav1.ListOptions{})
}

// scanLabel lists the objects with the label of a workload.
func (r *objectReader) scanLabel(ctx context.Context, wl *v1alpha1.ThreeportWorkload) ([]objectMetadata, error) {
	label := v1alpha1.LabelWorkloadInstance
	if wl.Spec.WorkloadType == v1alpha1.WorkloadTypeHelmInstance {
		label = v1alpha1.LabelHelmWorkloadInstance
	}
	var scopes []listScope
	for _, gvr := range baseResources {
		scopes = append(scopes, listScope{gvr, metav1.NamespaceAll})
	}
	return r.scanEach(ctx, scopes, metav1.ListOptions{LabelSelector: label + "=" + strconv.FormatInt(wl.Spec.WorkloadInstanceID, 10)})
}

// dropIgnored removes the objects in namespaces where the label of a workload does not count, and notes their number and some
// names.
func (r *objectReader) dropIgnored(
	wl *v1alpha1.ThreeportWorkload, listed []listedResource, labelled []objectMetadata,
) []objectMetadata {
	const shown = 5
	var ignored []string
	scope := labelScope(wl, listed)
	labelled = slices.DeleteFunc(labelled, func(f objectMetadata) bool {
		if scope.Contains(f.namespace) {
			return false
		}
		ignored = append(ignored, f.GroupResource().String()+" "+f.namespace+"/"+f.name)
		return true
	})
	if len(ignored) > 0 {
		slices.Sort(ignored)
		subject := "1 object has"
		if len(ignored) > 1 {
			subject = fmt.Sprintf("%d objects have", len(ignored))
		}
		r.noteIncomplete(fmt.Sprintf("%s the label of ThreeportWorkload %s in a namespace where it does not count; the annotation %s adds namespaces: %s",
			subject, wl.Name, v1alpha1.AnnotationNamespaces, strings.Join(ignored[:min(len(ignored), shown)], ", ")))
	}
	return labelled
}

// labelScope returns where the label of a workload counts.
func labelScope(wl *v1alpha1.ThreeportWorkload, listed []listedResource) attribution.LabelScope {
	resolved := func(yield func(string) bool) {
		for i := range listed {
			if !yield(listed[i].listed.Namespace) {
				return
			}
		}
	}
	isHelm := wl.Spec.WorkloadType == v1alpha1.WorkloadTypeHelmInstance
	return attribution.NewLabelScope(isHelm, wl.LabelNamespaces(), writtenNamespaces(wl), resolved)
}

func (r *objectReader) scanEach(ctx context.Context, scopes []listScope, options metav1.ListOptions) ([]objectMetadata, error) {
	var mu sync.Mutex
	var out []objectMetadata
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for _, scope := range scopes {
		group.Go(func() error {
			err := r.listMetadata(ctx, scope, options, func(m *metav1.PartialObjectMetadata) {
				f := objectMetadata{listScope: listScope{scope.GroupVersionResource, m.Namespace}, uid: m.UID, name: m.Name}
				for _, ref := range m.OwnerReferences {
					f.owners = append(f.owners, ref.UID)
				}
				mu.Lock()
				defer mu.Unlock()
				out = append(out, f)
			})
			return r.tolerate(scope.String(), err)
		})
	}
	return out, group.Wait()
}

// descendants returns the descendants of some objects, without the objects themselves.
func descendants(known []objectMetadata, roots map[types.UID]bool) []objectMetadata {
	children := map[types.UID][]int{}
	for i := range known {
		for _, owner := range known[i].owners {
			children[owner] = append(children[owner], i)
		}
	}
	var out []objectMetadata
	seen := maps.Clone(roots)
	for queue := slices.Collect(maps.Keys(roots)); len(queue) > 0; queue = queue[1:] {
		for _, i := range children[queue[0]] {
			if f := known[i]; !seen[f.uid] {
				seen[f.uid] = true
				out = append(out, f)
				queue = append(queue, f.uid)
			}
		}
	}
	return out
}

// readAll reads objects by their metadata. Deleted objects are left out.
func (r *objectReader) readAll(ctx context.Context, wanted []objectMetadata) ([]*unstructured.Unstructured, error) {
	names := map[listScope][]string{}
	uids := map[types.UID]bool{}
	for _, f := range wanted {
		names[f.listScope] = append(names[f.listScope], f.name)
		uids[f.uid] = true
	}
	var mu sync.Mutex
	var out []*unstructured.Unstructured
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for scope, names := range names {
		group.Go(func() error {
			objects, err := r.read(ctx, scope, names)
			mu.Lock()
			defer mu.Unlock()
			for _, u := range objects {
				if uids[u.GetUID()] {
					out = append(out, u)
				}
			}
			return r.tolerate(scope.String(), err)
		})
	}
	return out, group.Wait()
}

// readWarnings reads the latest Event of type Warning about each object.
func (r *objectReader) readWarnings(ctx context.Context, have *workloadObjects) (map[types.UID]health.Warning, error) {
	namespaces := map[string]bool{}
	objects := map[types.UID]*unstructured.Unstructured{}
	note := func(u *unstructured.Unstructured) {
		objects[u.GetUID()] = u
		namespaces[cmp.Or(u.GetNamespace(), metav1.NamespaceDefault)] = true // Events about cluster-scoped objects are in default
	}
	for _, s := range have.listed {
		if s.object != nil {
			note(s.object)
		}
	}
	for _, u := range slices.Concat(have.derived, have.labelled) {
		note(u)
	}
	latest := map[types.UID]health.Warning{}
	for namespace := range namespaces {
		scope := listScope{events, namespace}
		err := r.list(ctx, scope, metav1.ListOptions{FieldSelector: "type=Warning"}, func(u *unstructured.Unstructured) {
			uid, warning, ok := warningOf(u.Object)
			if ok && isAbout(u.Object, objects[uid]) && !warning.Time.Before(latest[uid].Time) {
				latest[uid] = warning
			}
		})
		if err := r.tolerate(scope.String(), err); err != nil {
			return nil, err
		}
	}
	return latest, nil
}

// isAbout reports whether an Event of core/v1 is about an object.
func isAbout(event map[string]any, object *unstructured.Unstructured) bool {
	var decoded struct {
		Metadata struct {
			Namespace string `json:"namespace"`
		} `json:"metadata"`
		InvolvedObject corev1.ObjectReference `json:"involvedObject"`
	}
	if object == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(event, &decoded) != nil {
		return false
	}
	return attribution.IsAbout(decoded.Metadata.Namespace, &decoded.InvolvedObject, attribution.Object{
		Group: object.GroupVersionKind().Group, Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
	})
}
