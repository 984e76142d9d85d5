package informers

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Ready reports whether every kind that is wanted, installed and permitted has synced.
func (s *Informers) Ready() bool { return s.kinds.ready() }

// Follows reports whether a kind is watched, in any version.
func (s *Informers) Follows(kind schema.GroupKind) bool { return s.kinds.follows(kind) }

// ResourceStatus returns the state of a listed resource, without its health.
func (s *Informers) ResourceStatus(r target.Resource) target.ResourceStatus {
	out := target.ResourceStatus{Resource: r, State: target.Pending}
	state, ok := s.kinds.stateOf(r.GroupVersionKind())
	if !ok {
		return out
	}
	scope, ok := state.in(r.Namespace)
	switch {
	case !ok && len(s.config.Namespaces) > 0:
		out.State = target.Forbidden
		out.Message = fmt.Sprintf("namespace %s is not among those that the agent watches", r.Namespace)
		return out
	case !ok:
		return out
	case scope.state != target.Present:
		out.State, out.Message = scope.state, scope.message
		return out
	}
	if r.GroupKind() == serviceKind && s.isPending(sliceGVK, r.Namespace) { // it may have no endpoints
		return out
	}
	if served := state.gvr.Version; served != r.Version {
		out.Message = fmt.Sprintf("version %s is not served; watched as %s", r.Version, served)
		out.Version = served
	}
	out.State = target.Absent
	if _, exists := s.targets.ExistingObject(r.Ref); exists {
		out.State = target.Present
	}
	return out
}

// BaseKindErrors returns why base kinds, and the endpoints of Services, are not watched, a sentence for each kind and scope.
func (s *Informers) BaseKindErrors() []string {
	var out []string
	for _, gvk := range append(slices.Clone(baseKinds), sliceGVK) {
		state, _ := s.kinds.stateOf(gvk)
		for _, namespace := range slices.Sorted(maps.Keys(state.scopes)) {
			if scope := state.scopes[namespace]; scope.state != target.Present && scope.state != target.Pending {
				out = append(out, fmt.Sprintf("%s: %s", gvk.Kind, scope.message))
			}
		}
	}
	return out
}

// Complete reports whether the API server has answered for all resources that workloads list, and for the base kinds in
// their namespaces.
func (s *Informers) Complete(workloads []target.Workload) bool {
	namespaces := map[string]struct{}{}
	for _, wl := range workloads {
		for _, r := range wl.Resources {
			if s.ResourceStatus(r).State == target.Pending {
				return false
			}
			namespaces[r.Namespace] = struct{}{}
		}
		if len(wl.Resources) == 0 {
			namespaces[""] = struct{}{} // its objects are known by their labels only, in any namespace
		}
	}
	for _, gvk := range baseKinds {
		for namespace := range namespaces {
			if s.isPending(gvk, namespace) {
				return false
			}
		}
	}
	return true
}

// isPending reports whether the first answer of the API server about a base kind is outstanding, in one namespace or ("")
// in any.
func (s *Informers) isPending(kind schema.GroupVersionKind, namespace string) bool {
	state, ok := s.kinds.stateOf(kind)
	if !ok {
		return true
	}
	if scope, ok := state.in(namespace); ok || namespace != "" {
		return ok && scope.state == target.Pending || !ok && len(s.config.Namespaces) == 0
	}
	return state.pending()
}

// BaseKindsSynced reports whether all existing objects of the base kinds in a namespace are known, so that an unknown
// object does not exist.
func (s *Informers) BaseKindsSynced(namespace string) bool {
	for _, gvk := range baseKinds {
		state, _ := s.kinds.stateOf(gvk)
		if scope, ok := state.in(namespace); !ok || scope.state != target.Present {
			return false
		}
	}
	return true
}
