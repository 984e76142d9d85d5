package informers

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// informerID identifies an informer. An empty namespace is the whole cluster.
type informerID struct {
	gvr        schema.GroupVersionResource
	namespace  string
	namespaced bool // the objects have namespaces
}

// informer keeps a store up to date. It runs from the first acquire to the last release, or until it
// fails for a reason that a retry does not fix.
type informer struct {
	id     informerID
	gvk    schema.GroupVersionKind
	store  *store
	users  map[*kindWatcher]struct{} // guarded by the pool's mutex
	cancel context.CancelFunc
	done   chan struct{} // closed when the informer has stopped

	mu       sync.Mutex
	synced   bool // the first list is in the store, and was handled
	failure  error
	requests requestState
}

// requestState tracks how the requests of an informer fare. client-go reports some errors only, and no success. A cache that lags
// although requests succeed is another matter: see [stallDetector].
type requestState struct {
	// lastError is the latest error that is retried: why the informer has not synced, or, once it has synced, why
	// it receives no changes.
	lastError error
	// timer runs, once the informer has synced, from a request until one succeeds.
	timer   *time.Timer
	overdue bool // timer has expired
}

var (
	// errNoAnswer means that the API server has not answered a request.
	errNoAnswer = errors.New("the API server does not answer")
	// errScopeChanged means that an informer got an object of the other scope. Its kind was replaced by one of the same name, and the
	// paths of its requests are still served.
	errScopeChanged = errors.New("the kind is no longer namespaced, or no longer cluster-scoped")
)

func (i *informer) hasSynced() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.synced
}

// err returns why the informer failed; nil if it did not.
func (i *informer) err() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.failure
}

// fail records the first reason why the informer cannot continue.
func (i *informer) fail(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.failure == nil {
		i.failure = err
	}
}

// markSynced records that the first list was handled.
func (i *informer) markSynced() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.synced, i.requests.lastError = true, nil
}

// retrying records an error of a list or watch that is retried before the first sync.
func (i *informer) retrying(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.synced {
		i.requests.lastError = err
	}
}

// syncError returns the error that keeps the informer from syncing or, once its timer has expired, from receiving changes.
func (i *informer) syncError() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.synced && !i.requests.overdue:
		return nil
	case i.synced && i.requests.lastError == nil:
		return errNoAnswer
	}
	return i.requests.lastError
}

// isCurrent reports whether an informer has synced, has not failed, and waits for no answer.
func (i *informer) isCurrent() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.synced && i.failure == nil && i.requests.timer == nil
}

// requestStarted starts the timer of an informer that has synced. expired is called when no request has succeeded within the
// timeout.
func (i *informer) requestStarted(timeout time.Duration, expired func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.synced || i.requests.timer != nil {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(timeout, func() {
		i.mu.Lock()
		i.requests.overdue = i.requests.timer == timer
		i.mu.Unlock()
		expired()
	})
	i.requests.timer = timer
}

// requestFailed keeps the error of a request for as long as the timer runs.
func (i *informer) requestFailed(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.requests.timer != nil {
		i.requests.lastError = err
	}
}

// resetRequests stops the timer, because a request succeeded or the informer has stopped. It reports whether the timer had
// expired.
func (i *informer) resetRequests() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.requests.timer == nil {
		return false
	}
	i.requests.timer.Stop()
	overdue := i.requests.overdue
	i.requests = requestState{}
	return overdue
}

// object returns the newest version of an object; nil if the cache does not have it.
func (i *informer) object(ref target.Ref) any {
	return i.store.get(types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
}
