package informers

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// kindState is the published state of a kind. It is immutable.
type kindState struct {
	gvr schema.GroupVersionResource // empty until the kind is resolved
	// scopes are the namespaces in which the kind is wanted, or "" for the whole cluster.
	scopes map[string]scopeState
	// unwatched are the states of unwatchedStates that a scope has.
	unwatched []target.State
}

// unwatchedStates are the states of kinds that are not watched.
var unwatchedStates = []target.State{target.Forbidden, target.KindNotInstalled, target.Unavailable}

// scopeState is Pending until the informer has synced, then Present; or the reason why there is no synced informer.
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

// pending reports whether an informer has not synced yet, without an error.
func (s kindState) pending() bool { return s.has(target.Pending) }

// has reports whether a scope has a state.
func (s kindState) has(state target.State) bool {
	for _, scope := range s.scopes {
		if scope.state == state {
			return true
		}
	}
	return false
}

// publish makes the state of run's informers, and of the scopes without one, visible to other goroutines.
func (k *kindWatcher) publish() {
	next := kindState{gvr: k.gvr, scopes: maps.Clone(k.unavailableScopes)}
	for namespace, inf := range k.held {
		switch err, failed := inf.syncError(), k.failedScopes[namespace]; {
		case err != nil:
			next.scopes[namespace] = failedState(inf.id.gvr.GroupResource(), err)
		case inf.hasSynced():
			delete(k.failedScopes, namespace)
			next.scopes[namespace] = scopeState{state: target.Present}
		case failed.state != "":
			next.scopes[namespace] = failed
		default:
			next.scopes[namespace] = scopeState{state: target.Pending}
		}
	}
	for _, state := range unwatchedStates {
		if next.has(state) {
			next.unwatched = append(next.unwatched, state)
		}
	}
	old := k.state.Swap(&next)
	if old.gvr == next.gvr && maps.Equal(old.scopes, next.scopes) {
		return
	}
	k.logChanges(*old, next)
	k.env.changed(k.gvk.GroupKind())
}

// logChanges logs each scope that became watched or unwatched. A namespace that becomes watched at once is not logged.
func (k *kindWatcher) logChanges(old, next kindState) {
	for namespace, now := range next.scopes {
		before := old.scopes[namespace]
		expected := now.state == target.Present && (before.state == target.Pending || before.state == "") && namespace != ""
		if now == before || now.state == target.Pending || expected {
			continue
		}
		message := "kind is not watched"
		if now.state == target.Present {
			message = "kind is watched"
		}
		k.env.log.Info(message, "kind", k.gvk.String(), "namespace", namespace, "state", string(now.state), "message", now.message)
	}
}
