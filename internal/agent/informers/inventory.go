package informers

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Instances returns the instances that are declared.
func (w *Watcher) Instances() []target.Instance { return w.targets.Instances() }

// DesiredState returns what the control plane is to hold of an instance; false while not all of it has been seen for the
// first time, while a change of one of its objects is just coming in, and if the instance is not declared. The error is
// that of reading an object of which the cache keeps less than is reported.
func (w *Watcher) DesiredState(ctx context.Context, instance target.Instance) (observe.DesiredState, bool, error) {
	parts := w.targets.WorkloadsOf(instance)
	if len(parts) == 0 || !w.seen(parts) {
		return observe.DesiredState{}, false, nil
	}
	var out observe.DesiredState
	listed := map[target.Ref]struct{}{}
	for _, part := range parts {
		for _, r := range part.Resources {
			if _, done := listed[r.Ref]; done {
				continue
			}
			listed[r.Ref] = struct{}{}
			if ok, err := w.take(ctx, instance, r, &out); err != nil || !ok {
				return observe.DesiredState{}, false, err
			}
		}
	}
	out.Events = w.eventsOf(instance)
	out.Status, _ = w.status(instance)
	return out, true, nil
}

// seen reports whether the API server has answered for all that workloads list, and for what controllers make where
// it is listed.
func (w *Watcher) seen(parts []target.Workload) bool {
	namespaces := map[string]struct{}{}
	for _, part := range parts {
		for _, r := range part.Resources {
			if w.sight(r).State == target.Pending {
				return false
			}
			namespaces[r.Namespace] = struct{}{}
		}
		if len(part.Resources) == 0 {
			namespaces[""] = struct{}{} // only a label tells what it has
		}
	}
	for _, gvk := range baseKinds {
		for namespace := range namespaces {
			if w.awaits(gvk, namespace) {
				return false
			}
		}
	}
	return true
}

// awaits reports whether the first answer of the API server is awaited about a base kind, in one namespace or ("") in
// any.
func (w *Watcher) awaits(kind schema.GroupVersionKind, namespace string) bool {
	state, ok := w.kindOf(kind)
	if !ok {
		return true
	}
	if scope, ok := state.in(namespace); ok || namespace != "" {
		return ok && scope.state == target.Pending || !ok && len(w.config.Namespaces) == 0
	}
	for _, scope := range state.scopes {
		if scope.state == target.Pending {
			return true
		}
	}
	return false
}

// take puts a listed resource into an inventory: as an operation, or as absent; in neither way if it cannot be seen.
// It returns false if a change of the object is just coming in.
func (w *Watcher) take(ctx context.Context, instance target.Instance, r target.Resource, out *observe.DesiredState) (bool, error) {
	switch w.sight(r).State {
	case target.Absent, target.KindNotInstalled:
		if _, exists := w.targets.Current(r.Ref); exists {
			return false, nil
		}
		out.Absent = append(out.Absent, w.claimsOf(instance, target.Identity{Ref: r.Ref})...)
	case target.Present:
		current, exists := w.targets.Current(r.Ref)
		if !exists {
			return false, nil
		}
		for _, claim := range w.claimsOf(instance, current) {
			op, cached, err := w.operation(ctx, current, claim)
			if cached == nil {
				return false, err
			}
			out.Operations = append(out.Operations, op)
		}
	case target.Pending, target.Forbidden, target.Unavailable:
	}
	return true, nil
}

// claimsOf returns an instance's listings of an object, one for each row of the control plane.
func (w *Watcher) claimsOf(instance target.Instance, id target.Identity) []target.Attribution {
	var out []target.Attribution
	rows := map[int64]struct{}{}
	for _, claim := range w.targets.Attributions(id) {
		if _, done := rows[claim.Resource.ID]; claim.Instance == instance && claim.Listed && !done {
			rows[claim.Resource.ID] = struct{}{}
			out = append(out, claim)
		}
	}
	return out
}

// eventsOf returns the reports of the Events that an instance is to be told of: those about its objects, and those of
// objects that came and went while nobody watched, which only their names tie to it; and of those that the watcher makes.
func (w *Watcher) eventsOf(instance target.Instance) []observe.Event {
	var out []observe.Event
	names, concerned := w.told.to(instance), w.targets.ObjectsOf(instance)
	for _, id := range concerned {
		names = append(names, w.pool.eventsAbout(id)...)
	}
	done := make(map[types.NamespacedName]struct{}, len(names))
	for _, name := range names {
		if _, again := done[name]; again {
			continue
		}
		done[name] = struct{}{}
		ev, inf := w.cachedEvent(name)
		if ev == nil {
			continue
		}
		if claim, ok := w.claimOn(name, ev); ok && claim.Instance == instance {
			out = append(out, w.eventReport(ev, inf, claim))
		}
	}
	return append(out, w.ownEvents(instance, concerned)...)
}
