package watch

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/target"
)

// The kinds that are watched whenever there is a workload: Events, and what the built-in controllers derive.
var (
	eventKind  = schema.GroupVersionKind{Version: "v1", Kind: "Event"}
	podKind    = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	secretKind = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	baseKinds  = []schema.GroupVersionKind{
		eventKind,
		podKind,
		{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
		{Group: "batch", Version: "v1", Kind: "Job"},
	}
)

// reconcileKinds starts and stops the goroutines of kinds, so that the kinds watched are those wanted.
func (w *Watcher) reconcileKinds(ctx context.Context) {
	wanted := w.targets.Kinds()
	if !w.targets.Empty() {
		for _, gvk := range baseKinds {
			wanted[gvk] = struct{}{}
		}
	}
	stopped := w.stopKinds(func(gvk schema.GroupVersionKind) bool {
		_, ok := wanted[gvk]
		return !ok
	})
	for _, k := range stopped {
		<-k.done
		if !w.follows(k.gvk.GroupKind()) {
			w.targets.DropKind(k.gvk.GroupKind())
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for gvk := range wanted {
		if k := w.kinds[gvk]; k != nil {
			k.wake() // the namespaces that it is wanted in may have changed
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		k := newKind(w, gvk, cancel)
		w.kinds[gvk] = k
		go k.run(ctx)
	}
	w.running = true
}

// stopKinds cancels the goroutines of the kinds that match, and returns them.
func (w *Watcher) stopKinds(match func(schema.GroupVersionKind) bool) []*kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	var stopped []*kind
	for gvk, k := range w.kinds {
		if match(gvk) {
			delete(w.kinds, gvk)
			k.cancel()
			stopped = append(stopped, k)
		}
	}
	return stopped
}

// follows reports whether objects of a kind are told of by an informer, in whatever version.
func (w *Watcher) follows(gk schema.GroupKind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for gvk := range w.kinds {
		if gvk.GroupKind() == gk {
			return true
		}
	}
	return false
}

// kindOf returns the state of a listed kind.
func (w *Watcher) kindOf(gvk schema.GroupVersionKind) (kindState, bool) {
	w.mu.Lock()
	k := w.kinds[gvk]
	w.mu.Unlock()
	if k == nil {
		return kindState{}, false
	}
	return k.current(), true
}

// Sights returns what is seen of each resource of a workload, in the order in which they are listed. The
// last ones are the kinds that are watched for every workload, as far as something is wrong with them.
func (w *Watcher) Sights(workload string) []target.Sight {
	wl, ok := w.targets.Workload(workload)
	if !ok {
		return nil
	}
	verdicts := w.board.verdicts(workload)
	out := make([]target.Sight, 0, len(wl.Resources))
	for _, r := range wl.Resources {
		s := w.sight(r)
		v := verdict(s, verdicts[r.Ref])
		s.Health, s.Reason = string(v.Status), v.Reason
		out = append(out, s)
	}
	return out
}

// Troubles returns what is wrong with the kinds that are watched for every workload, a sentence each.
func (w *Watcher) Troubles() []string {
	var out []string
	for _, gvk := range baseKinds {
		state, ok := w.kindOf(gvk)
		if !ok {
			continue
		}
		if state.state != target.Present && state.state != target.Pending {
			out = append(out, fmt.Sprintf("%s: %s", gvk.Kind, state.message))
		}
		for _, scope := range state.scopes {
			if scope.state == target.Forbidden {
				out = append(out, fmt.Sprintf("%s: %s", gvk.Kind, scope.message))
			}
		}
	}
	return out
}

// sight tells what is seen of a resource; its verdict is left out.
func (w *Watcher) sight(r target.Resource) target.Sight {
	s := target.Sight{Resource: r, State: target.Pending}
	state, ok := w.kindOf(r.GroupVersionKind())
	if !ok {
		return s
	}
	if state.state != target.Present {
		s.State, s.Message = state.state, state.message
		return s
	}
	if served := state.gvr.Version; served != r.Version {
		s.Message = fmt.Sprintf("version %s is not served; watched as %s", r.Version, served)
		s.Version = served
	}
	scope, ok := state.scopeOf(r.Namespace)
	switch {
	case !ok:
		s.State = target.Forbidden
		s.Message = fmt.Sprintf("namespace %s is not among those that the agent watches", r.Namespace)
	case scope.state != target.Present:
		s.State, s.Message = scope.state, scope.message
	default:
		s.State = target.Absent
		if _, exists := w.targets.Current(r.Ref); exists {
			s.State = target.Present
		}
	}
	return s
}
