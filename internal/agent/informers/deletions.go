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

// fetchLimit is the number of objects of a kind and namespace up to which each is read by itself. More objects cost less
// in one list.
const fetchLimit = 5

// DeletionsObserved reports whether the agent has seen the deletion of every listed object of a workload that the API
// server no longer has, or is deleting. If it has, no deletion is still to be reported. Objects that the agent may not, or
// cannot, watch are ignored.
func (s *Informers) DeletionsObserved(ctx context.Context, workload string) (bool, error) {
	wl, ok := s.targets.Workload(workload)
	if !ok {
		return true, nil
	}
	if !s.Complete([]target.Workload{wl}) {
		return false, nil // the workload was just declared
	}
	known := map[informerID][]target.Identity{}
	for _, r := range wl.Resources {
		deleted, current, exists := s.Incarnations(r.Ref)
		if len(deleted) > 0 {
			return false, nil
		}
		state, _ := s.kinds.stateOf(r.GroupVersionKind())
		if scope, ok := state.in(r.Namespace); exists && ok && scope.state == target.Present {
			id := informerID{gvr: state.gvr, namespace: r.Namespace}
			known[id] = append(known[id], current)
		}
	}
	for id, objects := range known {
		existing, err := s.clients.existing(ctx, id, objects)
		if err != nil {
			return false, err
		}
		for _, o := range objects {
			if uid, ok := existing[o.Name]; !ok || uid != o.UID {
				return false, nil
			}
		}
	}
	return true, nil
}

// existing returns the UIDs, by name, of objects that exist and are not being deleted. The result may have other objects
// too.
func (c *Clients) existing(ctx context.Context, id informerID, objects []target.Identity) (map[string]types.UID, error) {
	out := map[string]types.UID{}
	add := func(o *metav1.PartialObjectMetadata) {
		if o.DeletionTimestamp == nil {
			out[o.Name] = o.UID
		}
	}
	if len(objects) > fetchLimit {
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

// eachMetadata visits the metadata of all objects of a resource in a namespace, page by page. The pages become smaller if the objects are
// large.
func (c *Clients) eachMetadata(ctx context.Context, gvr schema.GroupVersionResource, namespace string, visit func(*metav1.PartialObjectMetadata)) error {
	ctx = withAnswerLimit(ctx, maxMetadataBytes)
	for next := (metav1.ListOptions{Limit: 500}); ; {
		list, err := c.metadataOf(gvr).Resource(gvr).Namespace(namespace).List(ctx, next)
		if errors.Is(err, errLargeAnswer) && next.Limit > 1 {
			next.Limit = max(1, next.Limit/8)
			continue
		}
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
