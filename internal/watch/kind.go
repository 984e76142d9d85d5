package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/target"
)

// kind watches one listed kind: it finds out how the API server serves it, where the agent is permitted to
// watch it, holds the informers for that, and begins again when one of these changes. Whatever is wrong
// with one kind is a state of that kind only, and delays no other.
type kind struct {
	w      *Watcher
	gvk    schema.GroupVersionKind
	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned
	poke   chan struct{} // capacity 1: look again

	held map[string]*informer // by namespace; run's own

	mu    sync.Mutex
	state kindState
}

// kindState is what is known of a kind.
type kindState struct {
	// state is Pending, KindNotInstalled, Forbidden, Unavailable, or Present for a kind that is watched.
	state   target.State
	message string
	gvr     schema.GroupVersionResource
	// scopes are the namespaces that it is wanted in, or "" for the whole cluster.
	scopes map[string]scopeState
}

// scopeState is Pending until the informer has synced, then Present; or Forbidden.
type scopeState struct {
	state   target.State
	message string
}

func (s kindState) scopeOf(namespace string) (scopeState, bool) {
	if scope, ok := s.scopes[""]; ok {
		return scope, true
	}
	scope, ok := s.scopes[namespace]
	return scope, ok
}

func newKind(w *Watcher, gvk schema.GroupVersionKind, cancel context.CancelFunc) *kind {
	return &kind{
		w: w, gvk: gvk, cancel: cancel,
		done:  make(chan struct{}),
		poke:  make(chan struct{}, 1),
		held:  map[string]*informer{},
		state: kindState{state: target.Pending},
	}
}

// wake makes run look again at what is wanted and permitted.
func (k *kind) wake() {
	select {
	case k.poke <- struct{}{}:
	default:
	}
}

func (k *kind) current() kindState {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.state
	s.scopes = maps.Clone(s.scopes)
	return s
}

func (k *kind) pending() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state.state == target.Pending {
		return true
	}
	for _, scope := range k.state.scopes {
		if scope.state == target.Pending {
			return true
		}
	}
	return false
}

// set publishes a state, logs it if it is news, and tells the workloads that list the kind.
func (k *kind) set(s kindState) {
	k.mu.Lock()
	old := k.state
	k.state = s
	k.mu.Unlock()
	if old.state == s.state && old.message == s.message && old.gvr == s.gvr && maps.Equal(old.scopes, s.scopes) {
		return
	}
	if old.state != s.state || old.message != s.message {
		k.w.log.Info("Kind "+string(s.state), "kind", k.gvk.String(), "message", s.message)
	}
	workloads := k.w.targets.WorkloadsOf(k.gvk.GroupKind())
	if slices.Contains(baseKinds, k.gvk) {
		workloads = k.w.targets.Workloads()
	}
	for _, name := range workloads {
		k.w.changed(name)
		k.w.markStatus(name)
	}
	// An Event that knows its object by name only had to wait for this.
	k.w.dispatch(k.w.targets.Listed(k.gvk.GroupKind()))
}

// run holds the kind's informers until the context ends.
func (k *kind) run(ctx context.Context) {
	defer close(k.done)
	defer k.release(func(string) bool { return true })
	retry := k.w.config.RetryMin
	for ctx.Err() == nil {
		if k.steady() || k.pass(ctx) {
			retry = k.w.config.RetryMin
			k.wait(ctx, 0)
			continue
		}
		k.wait(ctx, retry/2+rand.N(retry)) //nolint:gosec // jitter is no secret
		retry = min(2*retry, k.w.config.RetryMax)
	}
}

// wait returns when there may be something to do: the kind was poked, an informer synced or failed, or,
// if it is above zero, the time is over.
func (k *kind) wait(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if d > 0 {
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	news := make(chan struct{}, len(k.held))
	var waiters sync.WaitGroup
	defer waiters.Wait()
	defer cancel()
	for namespace, inf := range k.held {
		synced := inf.synced
		if k.current().scopes[namespace].state == target.Present {
			synced = nil
		}
		waiters.Go(func() {
			select {
			case <-ctx.Done():
			case <-synced:
				news <- struct{}{}
			case <-inf.failed:
				news <- struct{}{}
			}
		})
	}
	select {
	case <-ctx.Done():
	case <-news:
	case <-k.poke:
	}
}

// steady reports whether nothing has to be asked of the API server: the informers run where the kind is
// wanted. It publishes which of them have synced.
func (k *kind) steady() bool {
	state := k.current()
	if state.state != target.Present || k.failure() != nil || len(k.held) != len(state.scopes) {
		return false
	}
	if k.held[""] == nil && len(k.w.config.Namespaces) == 0 {
		for _, namespace := range k.w.targets.Namespaces() {
			if k.held[namespace] == nil {
				return false
			}
		}
	}
	for namespace, inf := range k.held {
		if inf.hasSynced() {
			state.scopes[namespace] = scopeState{state: target.Present}
		}
	}
	k.set(state)
	return true
}

// pass brings the informers in line with what is served, wanted and permitted. It reports whether that is
// settled; otherwise it is to be tried again after a while.
func (k *kind) pass(ctx context.Context) bool {
	failure := k.failure()
	gvr, namespaced, err := k.w.clients.resolve(ctx, k.gvk, failure == nil)
	switch {
	case ctx.Err() != nil:
		return false
	case errors.Is(err, errNotInstalled):
		k.release(func(string) bool { return true })
		k.w.goneAll(k.gvk.GroupKind())
		k.set(kindState{state: target.KindNotInstalled, message: err.Error()})
		return false
	case err != nil:
		k.set(kindState{state: target.Unavailable, message: err.Error(), gvr: k.current().gvr})
		return false
	}
	k.w.targets.SetScope(k.gvk.GroupKind(), namespaced)
	k.release(func(namespace string) bool { return k.held[namespace].err() != nil || k.held[namespace].id.gvr != gvr })

	scopes, err := k.permitted(ctx, gvr, namespaced)
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		k.set(kindState{state: target.Unavailable, message: err.Error(), gvr: gvr})
		return false
	}
	if failure != nil && apierrors.IsForbidden(failure) && !scopes.denied() {
		// The review says yes and the request is refused all the same: some other part of the server does.
		k.set(kindState{state: target.Forbidden, message: failure.Error(), gvr: gvr})
		return false
	}
	k.hold(ctx, gvr, scopes)
	return !scopes.denied()
}

// failure returns why one of the informers stopped, if one did.
func (k *kind) failure() error {
	for _, inf := range k.held {
		if err := inf.err(); err != nil {
			return err
		}
	}
	return nil
}

// hold acquires an informer for each permitted scope, and releases the others.
func (k *kind) hold(ctx context.Context, gvr schema.GroupVersionResource, scopes permissions) {
	k.release(func(namespace string) bool {
		missing, wanted := scopes[namespace]
		return !wanted || missing != ""
	})
	state := kindState{state: target.Present, gvr: gvr, scopes: map[string]scopeState{}}
	for namespace, missing := range scopes {
		if missing != "" {
			state.scopes[namespace] = scopeState{target.Forbidden, missing}
			continue
		}
		inf := k.held[namespace]
		if inf == nil {
			inf = k.w.pool.acquire(ctx, informerID{gvr, namespace}, k.gvk.Kind)
			k.held[namespace] = inf
		}
		state.scopes[namespace] = scopeState{state: target.Pending}
		if inf.hasSynced() {
			state.scopes[namespace] = scopeState{state: target.Present}
		}
	}
	if everywhere, ok := scopes[""]; ok && everywhere != "" {
		state.state, state.message = target.Forbidden, everywhere
	}
	k.set(state)
}

func (k *kind) release(match func(namespace string) bool) {
	for namespace, inf := range k.held {
		if match(namespace) {
			k.w.pool.release(inf)
			delete(k.held, namespace)
		}
	}
}

// permissions holds, for each scope that is wanted, which permission is missing; empty if none.
type permissions map[string]string

func (p permissions) denied() bool {
	for _, missing := range p {
		if missing != "" {
			return true
		}
	}
	return false
}

// permitted returns where the kind is to be watched: in the whole cluster if that is permitted, else in the
// namespaces in which something is listed; or in the configured namespaces.
func (k *kind) permitted(ctx context.Context, gvr schema.GroupVersionResource, namespaced bool) (permissions, error) {
	scopes := k.w.config.Namespaces
	if len(scopes) == 0 || !namespaced {
		missing, err := k.w.clients.missingVerb(ctx, gvr, "")
		if err != nil {
			return nil, err
		}
		scopes = k.w.targets.Namespaces()
		if missing == "" || !namespaced || len(scopes) == 0 {
			return permissions{"": missing}, nil
		}
	}
	out := permissions{}
	for _, namespace := range scopes {
		missing, err := k.w.clients.missingVerb(ctx, gvr, namespace)
		if err != nil {
			return nil, fmt.Errorf("namespace %s: %w", namespace, err)
		}
		out[namespace] = missing
	}
	return out, nil
}
