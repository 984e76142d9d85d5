package informers

import (
	"context"
	"errors"

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
	type scope struct {
		gvr       schema.GroupVersionResource
		namespace string
	}
	known := map[scope][]target.Identity{}
	for _, r := range wl.Resources {
		deleted, current, exists := s.Incarnations(r.Ref)
		if len(deleted) > 0 {
			return false, nil
		}
		state, _ := s.kinds.stateOf(r.GroupVersionKind())
		if watched, ok := state.in(r.Namespace); exists && ok && watched.state == target.Present {
			in := scope{state.gvr, r.Namespace}
			known[in] = append(known[in], current)
		}
	}
	for in, objects := range known {
		existing, err := s.clients.existing(ctx, in.gvr, in.namespace, objects)
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
func (c *Clients) existing(
	ctx context.Context, gvr schema.GroupVersionResource, namespace string, objects []target.Identity,
) (map[string]types.UID, error) {
	out := map[string]types.UID{}
	add := func(o *metav1.PartialObjectMetadata) {
		if o.DeletionTimestamp == nil {
			out[o.Name] = o.UID
		}
	}
	if len(objects) > fetchLimit {
		return out, c.eachMetadata(ctx, gvr, namespace, add)
	}
	for _, o := range objects {
		found, err := c.fetchMetadata(ctx, gvr, o.Ref)
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
