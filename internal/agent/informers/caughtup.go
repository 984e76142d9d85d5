package informers

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// oneByOne is up to how many objects of a kind in a namespace are asked for one by one. For more it is less
// work, for both sides, to list them all.
const oneByOne = 5

// DeletionsObserved reports whether the watch has seen the end of every listed object of a workload that does not
// exist in the API server any more, or is on its way out: whether no last report is still to come. Of what
// the agent is not permitted or not able to watch none will.
func (w *Watcher) DeletionsObserved(ctx context.Context, workload string) (bool, error) {
	wl, ok := w.targets.Workload(workload)
	if !ok {
		return true, nil
	}
	if !w.seen([]target.Workload{wl}) {
		return false, nil // it was just declared
	}
	known := map[informerID][]target.Identity{}
	for _, r := range wl.Resources {
		if len(w.graves.of(r.Ref)) > 0 {
			return false, nil
		}
		current, exists := w.targets.Current(r.Ref)
		state, _ := w.kindOf(r.GroupVersionKind())
		if scope, ok := state.in(r.Namespace); exists && ok && scope.state == target.Present {
			id := informerID{state.gvr, r.Namespace}
			known[id] = append(known[id], current)
		}
	}
	for id, objects := range known {
		live, err := w.clients.living(ctx, id, objects)
		if err != nil {
			return false, err
		}
		for _, o := range objects {
			if uid, ok := live[o.Name]; !ok || uid != o.UID {
				return false, nil
			}
		}
	}
	return true, nil
}

// living returns the UIDs of objects that exist and are not being deleted, by name; others may be among them.
func (c *Clients) living(ctx context.Context, id informerID, objects []target.Identity) (map[string]types.UID, error) {
	out := map[string]types.UID{}
	add := func(o *metav1.PartialObjectMetadata) {
		if o.DeletionTimestamp == nil {
			out[o.Name] = o.UID
		}
	}
	if len(objects) > oneByOne {
		return out, c.eachMetadata(ctx, id.gvr, id.namespace, add)
	}
	for _, o := range objects {
		found, err := c.fetchMetadata(ctx, id.gvr, o.Ref)
		switch {
		case errors.Is(err, errNoObject):
		case err != nil:
			return nil, err
		default:
			add(found)
		}
	}
	return out, nil
}

// eachMetadata reads the metadata of all objects of a kind in a namespace, page by page.
func (c *Clients) eachMetadata(ctx context.Context, gvr schema.GroupVersionResource, namespace string, visit func(*metav1.PartialObjectMetadata)) error {
	const page = 500
	for next := (metav1.ListOptions{Limit: page}); ; {
		list, err := c.metadataOf(gvr).Resource(gvr).Namespace(namespace).List(ctx, next)
		if err != nil {
			return fmt.Errorf("read metadata of %s in namespace %q: %w", gvr.GroupResource(), namespace, err)
		}
		for i := range list.Items {
			visit(&list.Items[i])
		}
		if list.Continue == "" {
			return nil
		}
		next.Continue = list.Continue
	}
}
