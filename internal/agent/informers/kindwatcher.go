package informers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// kindEnv is the environment that all kind watchers share.
type kindEnv struct {
	config  Config
	targets *target.Registry
	log     logr.Logger

	discovery discovery
	informers informerSource
	// kindRemoved is called when the API server no longer serves a kind.
	kindRemoved func(schema.GroupKind)
	// changed is called when the published state of a kind has changed. It must not block.
	changed func(schema.GroupKind)
}

// discovery answers how the API server serves a kind, and which permission is missing to watch it.
type discovery interface {
	resolve(ctx context.Context, gvk schema.GroupVersionKind, cached bool) (mapping, error)
	missingPermission(ctx context.Context, gvr schema.GroupVersionResource, namespace string) (string, error)
}

// informerSource starts and stops informers.
type informerSource interface {
	acquire(context.Context, *kindWatcher, informerID) *informer
	release(*kindWatcher, *informer)
}

// reviewInterval is the average time between two reviews of a kind that is denied in many namespaces.
const reviewInterval = 50 * time.Millisecond

// kindWatcher watches one kind: a listed one, a base kind, or that of endpoints. It resolves how the API server serves the kind and
// where the agent may watch it, holds the informers for these scopes, and starts again when one of them fails. A problem of one kind
// is a state of that kind, and delays no other.
type kindWatcher struct {
	env    *kindEnv
	gvk    schema.GroupVersionKind
	cancel context.CancelFunc
	wakeup chan struct{} // capacity 1
	state  atomic.Pointer[kindState]

	// The fields below belong to the goroutine of run.

	gvr  schema.GroupVersionResource
	held map[string]*informer // by namespace
	// unavailableScopes are the scopes without an informer, each with its reason.
	unavailableScopes map[string]scopeState
	// failedScopes are the scopes whose last informer failed, until their next informer has synced.
	failedScopes map[string]scopeState
	// perNamespace is true if the agent may not watch the whole cluster, and watches each namespace in which a resource
	// is listed. namespaces are those of the last reconciliation.
	perNamespace bool
	namespaces   []string
	// denied are the missing permissions of namespaces since the last retry. They are not reviewed again when a namespace is
	// added: that would cost the square of the number of namespaces.
	denied missingPermissions
	// notServed is true if the last reconciliation found that the kind is not installed.
	notServed bool
}

func newKindWatcher(env *kindEnv, gvk schema.GroupVersionKind, cancel context.CancelFunc) *kindWatcher {
	k := &kindWatcher{
		env: env, gvk: gvk, cancel: cancel,
		wakeup:            make(chan struct{}, 1),
		held:              map[string]*informer{},
		unavailableScopes: map[string]scopeState{"": {state: target.Pending}},
		failedScopes:      map[string]scopeState{},
		denied:            missingPermissions{},
	}
	k.state.Store(&kindState{scopes: k.unavailableScopes})
	return k
}

// wake makes run check its informers and the listed namespaces again. It does not block.
func (k *kindWatcher) wake() {
	select {
	case k.wakeup <- struct{}{}:
	default:
	}
}

// run holds the kind's informers until the context ends.
func (k *kindWatcher) run(ctx context.Context) {
	defer k.release(func(string) bool { return true })
	retry := backoff{first: k.env.config.RetryMin, most: k.env.config.RetryMax}
	for ctx.Err() == nil {
		k.releaseFailed()
		k.publish()
		switch wait := retry.wait(); {
		case k.namespacesChanged(): // not a failure: no backoff
			k.reconcile(ctx)
		case len(k.unavailableScopes) == 0:
			k.sleepUntilWoken(ctx)
		case wait > 0:
			k.sleep(ctx, wait)
		default:
			clear(k.denied)
			k.reconcile(ctx)
			retry.begin(time.Duration(len(k.denied)) * reviewInterval)
		}
	}
}

// sleep returns after d, when the watcher is woken, or when the context ends.
func (k *kindWatcher) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-k.wakeup:
	}
}

// sleepUntilWoken returns when the watcher is woken, or when the context ends.
func (k *kindWatcher) sleepUntilWoken(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-k.wakeup:
	}
}

// releaseFailed releases the informers that failed.
func (k *kindWatcher) releaseFailed() {
	for namespace, inf := range k.held {
		if err := inf.err(); err != nil {
			failed := failedState(inf.id.gvr.GroupResource(), err)
			k.failedScopes[namespace], k.unavailableScopes[namespace] = failed, failed
			k.drop(namespace)
		}
	}
}

// failedState is the state of a scope whose informer gets an error.
func failedState(resource schema.GroupResource, err error) scopeState {
	if apierrors.IsForbidden(err) {
		return scopeState{target.Forbidden, err.Error() + "; " + howToGrant(resource)}
	}
	return scopeState{target.Unavailable, err.Error()}
}

// namespacesChanged reports whether the watched namespaces differ from those in which resources are listed.
func (k *kindWatcher) namespacesChanged() bool {
	return k.perNamespace && !slices.Equal(k.namespaces, k.env.targets.Namespaces())
}

// reconcile brings the informers in line with the served resource, the listed namespaces and the permissions.
func (k *kindWatcher) reconcile(ctx context.Context) {
	found, err := k.env.discovery.resolve(ctx, k.gvk, len(k.failedScopes) == 0)
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
		k.discoveryFailed(err)
		return
	}
	k.notServed = false
	k.env.targets.SetScope(k.gvk.GroupKind(), found.namespaced)
	k.release(func(namespace string) bool { return k.held[namespace].id != found.informerID(namespace) })
	k.gvr = found.gvr

	scopes, err := k.reviewScopes(ctx, found)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		k.discoveryFailed(err)
	default:
		k.acquireInformers(ctx, found, scopes)
	}
}

// notInstalled records that the API server does not serve the kind. The kind's objects count as deleted after the
// second such answer: another API server behind a load balancer, or the same one a moment later, may serve the kind.
func (k *kindWatcher) notInstalled(err error) {
	kind := k.gvk.GroupKind()
	if !k.notServed {
		k.notServed = true
		state := scopeState{state: target.Pending}
		if len(k.env.targets.ExistingObjects(kind, metav1.NamespaceAll)) > 0 {
			state = scopeState{target.Unavailable, err.Error()}
		}
		k.reset(state)
		return
	}
	k.env.kindRemoved(kind)
	k.reset(scopeState{target.KindNotInstalled, err.Error()})
}

// discoveryFailed records that the API server did not answer how it serves the kind, or what is permitted. The informers
// that are held stay.
func (k *kindWatcher) discoveryFailed(err error) {
	state := scopeState{target.Unavailable, err.Error()}
	if len(k.held) == 0 {
		k.reset(state)
		return
	}
	k.namespaces = k.env.targets.Namespaces() // else run would reconcile again and again without a backoff: see namespacesChanged
	for namespace := range k.unavailableScopes {
		k.unavailableScopes[namespace] = state
	}
	if k.perNamespace {
		for _, namespace := range k.namespaces {
			if k.held[namespace] == nil {
				k.unavailableScopes[namespace] = state
			}
		}
	}
}

// reset records that the kind is watched nowhere.
func (k *kindWatcher) reset(state scopeState) {
	k.unavailableScopes = map[string]scopeState{"": state}
	k.perNamespace = false
	clear(k.failedScopes)
}

// acquireInformers acquires an informer for each permitted scope, and releases those of other scopes.
func (k *kindWatcher) acquireInformers(ctx context.Context, found mapping, scopes missingPermissions) {
	k.unavailableScopes = map[string]scopeState{}
	k.release(func(namespace string) bool { return !scopes.permits(namespace) })
	maps.DeleteFunc(k.failedScopes, func(namespace string, _ scopeState) bool { return !scopes.permits(namespace) })
	for namespace, missing := range scopes {
		switch {
		case missing != "":
			k.unavailableScopes[namespace] = scopeState{target.Forbidden, missing}
		case k.held[namespace] == nil:
			k.held[namespace] = k.env.informers.acquire(ctx, k, found.informerID(namespace))
		}
	}
}

func (k *kindWatcher) release(match func(namespace string) bool) {
	for namespace := range k.held {
		if match(namespace) {
			k.drop(namespace)
		}
	}
}

func (k *kindWatcher) drop(namespace string) {
	k.env.informers.release(k, k.held[namespace])
	delete(k.held, namespace)
}

// reviewScopes returns the scopes in which the kind is to be watched, also the denied ones, each with the missing permission. For a
// namespaced kind these are the configured namespaces, if any. Otherwise it is the whole cluster if that is permitted, else the
// namespaces in which resources are listed. Scopes with a working informer, and those denied since the last retry, are not reviewed
// again. So one more namespace costs the reviews of that namespace only. It also sets perNamespace, namespaces and denied.
func (k *kindWatcher) reviewScopes(ctx context.Context, found mapping) (missingPermissions, error) {
	scopes := k.env.config.Namespaces
	if len(scopes) == 0 || !found.namespaced {
		missing, err := k.env.discovery.missingPermission(ctx, found.gvr, "")
		if err != nil {
			return nil, err
		}
		k.perNamespace = missing != "" && found.namespaced
		if !k.perNamespace {
			return missingPermissions{"": missing}, nil
		}
		scopes = k.env.targets.Namespaces()
		k.namespaces = scopes
		if len(scopes) == 0 {
			return missingPermissions{"": missing}, nil
		}
	}
	out := missingPermissions{}
	for _, namespace := range scopes {
		if k.held[namespace] != nil {
			out[namespace] = ""
			continue
		}
		missing, known := k.denied[namespace]
		if !known {
			var err error
			if missing, err = k.env.discovery.missingPermission(ctx, found.gvr, namespace); err != nil {
				return nil, fmt.Errorf("namespace %s: %w", namespace, err)
			}
		}
		if missing != "" {
			k.denied[namespace] = missing
		}
		out[namespace] = missing
	}
	return out, nil
}
