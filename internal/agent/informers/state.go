package informers

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// kindState is what is known of a kind. It is not changed once it is published.
type kindState struct {
	gvr schema.GroupVersionResource // empty while it is not known
	// scopes are the namespaces that the kind is wanted in, or "" for the whole cluster.
	scopes map[string]scopeState
}

// scopeState is Pending until the informer has synced, then Present; or why there is none that has.
type scopeState struct {
	state   target.State
	message string
}

// in returns the state in a namespace.
func (s kindState) in(namespace string) (scopeState, bool) {
	if scope, ok := s.scopes[""]; ok {
		return scope, true
	}
	scope, ok := s.scopes[namespace]
	return scope, ok
}

func (k *kind) current() kindState {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state
}

// pending reports whether an informer has still to sync, and does not fail to.
func (k *kind) pending() bool {
	for _, scope := range k.current().scopes {
		if scope.state == target.Pending {
			return true
		}
	}
	return false
}

// publish shows the state of run's informers, and of what is lacking.
func (k *kind) publish() {
	next := kindState{gvr: k.gvr, scopes: maps.Clone(k.lacks)}
	for namespace, inf := range k.held {
		switch trouble, failed := inf.trouble(), k.failed[namespace]; {
		case trouble != nil:
			next.scopes[namespace] = failing(trouble)
		case inf.hasSynced():
			delete(k.failed, namespace)
			next.scopes[namespace] = scopeState{state: target.Present}
		case failed.state != "":
			next.scopes[namespace] = failed
		default:
			next.scopes[namespace] = scopeState{state: target.Pending}
		}
	}
	k.mu.Lock()
	old := k.state
	k.state = next
	k.mu.Unlock()
	if old.gvr == next.gvr && maps.Equal(old.scopes, next.scopes) {
		return
	}
	k.logNews(old, next)
	workloads := k.w.targets.WorkloadsListing(k.gvk.GroupKind())
	if slices.Contains(baseKinds, k.gvk) {
		workloads = k.w.targets.Workloads()
	}
	for _, name := range workloads {
		k.w.changed(name)
		k.w.markStatus(name)
		k.w.markTree(name)
	}
	// An Event that knows its object by name only had to wait for this.
	k.w.dispatch(k.w.targets.Listed(k.gvk.GroupKind()))
	k.w.reviewLater()
}

// logNews logs each scope that came into trouble or out of it, and that a kind is watched in the whole cluster.
func (k *kind) logNews(old, next kindState) {
	for namespace, is := range next.scopes {
		was := old.scopes[namespace]
		fine := is.state == target.Present && (was.state == target.Pending || was.state == "") && namespace != ""
		if is != was && is.state != target.Pending && !fine {
			words := "Kind is not watched"
			if is.state == target.Present {
				words = "Kind is watched"
			}
			k.w.log.Info(words, "kind", k.gvk.String(), "namespace", namespace, "state", string(is.state), "message", is.message)
		}
	}
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

// BaseKindErrors returns what is wrong with the kinds that are watched for every workload, a sentence each.
func (w *Watcher) BaseKindErrors() []string {
	var out []string
	for _, gvk := range baseKinds {
		state, _ := w.kindOf(gvk)
		for _, namespace := range slices.Sorted(maps.Keys(state.scopes)) {
			if s := state.scopes[namespace]; s.state != target.Present && s.state != target.Pending {
				out = append(out, fmt.Sprintf("%s: %s", gvk.Kind, s.message))
			}
		}
	}
	return out
}

// sight tells what is seen of a resource; its verdict is left out.
func (w *Watcher) sight(r target.Resource) target.ResourceStatus {
	s := target.ResourceStatus{Resource: r, State: target.Pending}
	state, ok := w.kindOf(r.GroupVersionKind())
	if !ok {
		return s
	}
	scope, ok := state.in(r.Namespace)
	switch {
	case !ok && len(w.config.Namespaces) > 0:
		s.State = target.Forbidden
		s.Message = fmt.Sprintf("namespace %s is not among those that the agent watches", r.Namespace)
		return s
	case !ok:
		return s
	case scope.state != target.Present:
		s.State, s.Message = scope.state, scope.message
		return s
	}
	if served := state.gvr.Version; served != r.Version {
		s.Message = fmt.Sprintf("version %s is not served; watched as %s", r.Version, served)
		s.Version = served
	}
	s.State = target.Absent
	if _, exists := w.targets.Current(r.Ref); exists {
		s.State = target.Present
	}
	return s
}
