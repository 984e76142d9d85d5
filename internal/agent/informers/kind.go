package informers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/agent/target"
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

	// What follows is run's own.

	gvr  schema.GroupVersionResource
	held map[string]*informer // by namespace
	// lacks are the scopes that no informer is held of, and why.
	lacks map[string]scopeState
	// failed are the scopes of which the last informer failed, until the next one has synced, and why.
	failed map[string]scopeState
	// perNamespace is true if the whole cluster may not be watched, and so each namespace is that something
	// is listed in. asked are those at the last pass.
	perNamespace bool
	asked        []string
	// unserved is true if the last pass found that the kind is not installed.
	unserved bool

	mu    sync.Mutex
	state kindState
}

func newKind(w *Watcher, gvk schema.GroupVersionKind, cancel context.CancelFunc) *kind {
	pending := map[string]scopeState{"": {state: target.Pending}}
	return &kind{
		w: w, gvk: gvk, cancel: cancel,
		done:   make(chan struct{}),
		poke:   make(chan struct{}, 1),
		held:   map[string]*informer{},
		lacks:  pending,
		failed: map[string]scopeState{},
		state:  kindState{scopes: pending},
	}
}

// wake makes run look again at its informers, and at what is wanted. It does not block.
func (k *kind) wake() {
	select {
	case k.poke <- struct{}{}:
	default:
	}
}

// run holds the kind's informers until the context ends.
func (k *kind) run(ctx context.Context) {
	defer close(k.done)
	defer k.release(func(string) bool { return true })
	retry := backoff{first: k.w.config.RetryMin, most: k.w.config.RetryMax}
	for ctx.Err() == nil {
		k.collect()
		k.publish()
		switch wait := retry.wait(); {
		case k.outdated(): // by what is declared, and not by a failure
			k.pass(ctx)
		case len(k.lacks) == 0:
			k.rest(ctx, 0)
		case wait > 0:
			k.rest(ctx, wait)
		default:
			k.pass(ctx)
			retry.begin()
		}
	}
}

// rest returns when the kind is poked, the context ends, or, if it is above zero, the time is over.
func (k *kind) rest(ctx context.Context, d time.Duration) {
	var over <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
	case <-over:
	case <-k.poke:
	}
}

// collect gives back the informers that failed.
func (k *kind) collect() {
	for namespace, inf := range k.held {
		if err := inf.err(); err != nil {
			k.failed[namespace] = failing(err)
			k.lacks[namespace] = failing(err)
			k.drop(namespace)
		}
	}
}

// failing is the state of a scope whose informer gets an error.
func failing(err error) scopeState {
	if apierrors.IsForbidden(err) {
		return scopeState{target.Forbidden, err.Error()}
	}
	return scopeState{target.Unavailable, err.Error()}
}

// outdated reports whether the namespaces that are watched are not those in which something is listed.
func (k *kind) outdated() bool {
	return k.perNamespace && !slices.Equal(k.asked, k.w.targets.Namespaces())
}

// pass brings the informers in line with what is served, wanted and permitted.
func (k *kind) pass(ctx context.Context) {
	found, err := k.w.clients.resolve(ctx, k.gvk, len(k.failed) == 0)
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(err, errNotInstalled):
		k.release(func(string) bool { return true })
		k.notInstalled(err)
		return
	case err == nil && !found.watchable:
		err = fmt.Errorf("the API server cannot list and watch %s", found.gvr.GroupResource())
	}
	if err != nil {
		k.unanswered(err)
		return
	}
	k.unserved = false
	k.w.targets.SetScope(k.gvk.GroupKind(), found.namespaced)
	k.release(func(namespace string) bool { return k.held[namespace].id.gvr != found.gvr })
	k.gvr = found.gvr

	scopes, err := k.permitted(ctx, found)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		k.unanswered(err)
	default:
		k.hold(ctx, scopes)
	}
}

// notInstalled notes that the API server serves no such kind. Its objects are gone when it says so twice: behind a
// balancer another API server may know better, and so may the same one a moment later.
func (k *kind) notInstalled(err error) {
	objects := k.gvk.GroupKind()
	if !k.unserved {
		k.unserved = true
		state := scopeState{state: target.Pending}
		if len(k.w.targets.Live(objects, metav1.NamespaceAll)) > 0 {
			state = scopeState{target.Unavailable, err.Error()}
		}
		k.reset(state)
		return
	}
	k.w.goneAll(objects)
	k.reset(scopeState{target.KindNotInstalled, err.Error()})
}

// unanswered notes that the API server does not tell what a pass has to know. What is held stays.
func (k *kind) unanswered(err error) {
	state := scopeState{target.Unavailable, err.Error()}
	if len(k.held) == 0 {
		k.reset(state)
		return
	}
	k.asked = k.w.targets.Namespaces()
	for namespace := range k.lacks {
		k.lacks[namespace] = state
	}
	if k.perNamespace {
		for _, namespace := range k.asked {
			if k.held[namespace] == nil {
				k.lacks[namespace] = state
			}
		}
	}
}

// reset notes that the kind is watched nowhere.
func (k *kind) reset(state scopeState) {
	k.lacks = map[string]scopeState{"": state}
	k.perNamespace = false
	clear(k.failed)
}

// hold acquires an informer for each permitted scope, and releases the others.
func (k *kind) hold(ctx context.Context, scopes permissions) {
	k.lacks = map[string]scopeState{}
	k.release(func(namespace string) bool {
		missing, wanted := scopes[namespace]
		return !wanted || missing != ""
	})
	for namespace := range k.failed {
		if missing, wanted := scopes[namespace]; !wanted || missing != "" {
			delete(k.failed, namespace)
		}
	}
	for namespace, missing := range scopes {
		switch {
		case missing != "":
			k.lacks[namespace] = scopeState{target.Forbidden, missing}
		case k.held[namespace] == nil:
			k.held[namespace] = k.w.pool.acquire(ctx, k, informerID{k.gvr, namespace})
		}
	}
}

func (k *kind) release(match func(namespace string) bool) {
	for namespace := range k.held {
		if match(namespace) {
			k.drop(namespace)
		}
	}
}

func (k *kind) drop(namespace string) {
	k.w.pool.release(k, k.held[namespace])
	delete(k.held, namespace)
}

// permissions holds, for each scope that is wanted, which permission is missing; empty if none.
type permissions map[string]string

// permitted returns where the kind is to be watched: in the whole cluster if that is permitted, else in the
// namespaces in which something is listed; or in the configured namespaces. What is held and works needs no
// review, so that a namespace more does not cost one of all the others.
func (k *kind) permitted(ctx context.Context, found mapping) (permissions, error) {
	scopes := k.w.config.Namespaces
	if len(scopes) == 0 || !found.namespaced {
		missing, err := k.w.clients.missingVerb(ctx, found.gvr, "")
		if err != nil {
			return nil, err
		}
		k.perNamespace = missing != "" && found.namespaced
		if !k.perNamespace {
			return permissions{"": missing}, nil
		}
		scopes = k.w.targets.Namespaces()
		k.asked = scopes
		if len(scopes) == 0 {
			return permissions{"": missing}, nil
		}
	}
	out := permissions{}
	for _, namespace := range scopes {
		if k.held[namespace] != nil {
			out[namespace] = ""
			continue
		}
		missing, err := k.w.clients.missingVerb(ctx, found.gvr, namespace)
		if err != nil {
			return nil, fmt.Errorf("namespace %s: %w", namespace, err)
		}
		out[namespace] = missing
	}
	return out, nil
}

// backoff spaces passes that do not lead to a kind that is watched: the first is due at once, each further
// one after a longer wait than the one before. When there was none for long, it begins again.
type backoff struct {
	first, most time.Duration
	delay       time.Duration
	last, due   time.Time
}

// wait returns how long the next pass has to wait.
func (b *backoff) wait() time.Duration { return time.Until(b.due) }

// begin notes a pass.
func (b *backoff) begin() {
	now := time.Now()
	if now.Sub(b.last) > 2*b.most {
		b.delay = b.first
	} else {
		b.delay = min(2*b.delay, b.most)
	}
	b.last, b.due = now, now.Add(b.delay/2+rand.N(b.delay)) //nolint:gosec // jitter is no secret
}
