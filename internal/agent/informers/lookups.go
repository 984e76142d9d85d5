package informers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/agent/worker"
)

// lookups reads the metadata of owners whose kinds are not watched, such as a custom controller's intermediate kinds, and
// records them in the registry. Each owner is read once: owners seldom change after creation, and a watch for each kind
// that owns something anywhere in the cluster would cost more than all other watches. Namespaces take turns, so that objects in one of
// them, whose owners do not exist, do not delay the others.
type lookups struct {
	targets *target.Registry
	clients *Clients
	follows func(schema.GroupKind) bool // whether a kind is watched
	// done is called when the queue is empty. It must not block.
	done           func()
	count          prometheus.Counter
	postponedCount prometheus.Counter
	log            logr.Logger
	queue          worker.Queue[target.Identity]

	mu          sync.Mutex
	pending     map[target.Identity]struct{} // queued, being read, or waiting for a retry
	byNamespace map[string]int               // counts pending
	limit       int                          // of pending
	postponed   bool                         // a look-up was not added; all are requested again when the queue is empty
}

const (
	// maxLookups is the limit of pending look-ups. Objects and Events may name any number of owners that do not exist. A namespace
	// has a part of them.
	maxLookups     = 10_000
	namespaceShare = 4
	// discoveryRetries is how often the kind of an owner is resolved that is not installed: discovery shows a new group
	// some time after the API server serves its first objects.
	discoveryRetries = 5
	// readRetries is how often a failed look-up is repeated before others take its place.
	readRetries = 10
)

// add queues objects, or postpones them if too many are pending.
func (l *lookups) add(ids []target.Identity) {
	for _, id := range ids {
		if id.UID == "" || !l.looksUp(id.GroupKind()) {
			continue
		}
		if _, known := l.targets.Object(id.UID); !known && l.admit(id) {
			l.queue.Add(id)
		}
	}
}

// looksUp reports whether objects of a kind are looked up: not those of watched kinds, and not Nodes, which have no owners.
func (l *lookups) looksUp(kind schema.GroupKind) bool {
	return kind != (schema.GroupKind{Kind: "Node"}) && !l.follows(kind)
}

// admit makes an object pending. It returns false if the object is pending already, or is postponed.
func (l *lookups) admit(id target.Identity) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.pending[id]; ok {
		return false
	}
	if len(l.pending) >= l.limit || l.byNamespace[id.Namespace] >= l.limit/namespaceShare {
		l.postpone()
		return false
	}
	l.pending[id] = struct{}{}
	l.byNamespace[id.Namespace]++
	return true
}

// postpone records that the look-ups are to be requested again; with mu held.
func (l *lookups) postpone() {
	l.postponed = true
	l.postponedCount.Inc()
}

// finish removes an object from the pending ones.
func (l *lookups) finish(id target.Identity, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pending, id)
	if l.byNamespace[id.Namespace]--; l.byNamespace[id.Namespace] == 0 {
		delete(l.byNamespace, id.Namespace)
	}
	if failed {
		l.postpone()
	}
}

// resume requests the owners of all objects again if some were postponed. The Handler requests those of Events.
func (l *lookups) resume() {
	l.mu.Lock()
	postponed := l.postponed
	l.postponed = false
	l.mu.Unlock()
	if postponed {
		l.add(l.targets.AllUnresolvedOwners())
	}
}

// run looks up queued objects until the queue is shut down and empty.
func (l *lookups) run(ctx context.Context, workers int) {
	var running sync.WaitGroup
	for range workers {
		running.Go(func() { l.queue.Work(ctx, l.lookUp, l.log) })
	}
	running.Wait()
}

// lookUp processes one object of the queue. After readRetries failures it postpones the object.
func (l *lookups) lookUp(ctx context.Context, id target.Identity) error {
	err := l.record(ctx, id)
	retry := err != nil && l.queue.NumRequeues(id) < readRetries
	if !retry {
		l.finish(id, err != nil)
	}
	if l.queue.Len() == 0 {
		l.resume()
		l.done()
	}
	if retry {
		return err
	}
	return nil
}

// record reads one object, and records it in the registry. An object that does not exist, or that the agent may not read,
// is recorded as deleted and without owners, so that it is not read again soon.
func (l *lookups) record(ctx context.Context, id target.Identity) error {
	if _, known := l.targets.Object(id.UID); known {
		return nil
	}
	l.count.Inc()
	found, err := l.read(ctx, id)
	switch {
	case err == nil:
		l.targets.Upsert(found)
		l.add(l.targets.UnresolvedOwners(found.Identity))
		return nil
	case errors.Is(err, errNotInstalled) && l.queue.NumRequeues(id) < discoveryRetries:
		return worker.ErrRetry
	case errors.Is(err, errNotInstalled), errors.Is(err, errNoObject),
		apierrors.IsNotFound(err), apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err):
		l.targets.UpsertDeleted(target.Object{Identity: id, LookedUp: time.Now()}, time.Now())
		return nil
	default:
		return fmt.Errorf("look up owner %s: %w", id.Ref, err)
	}
}

// read reads one object. It resolves the kind again if the API server no longer serves the resource.
func (l *lookups) read(ctx context.Context, id target.Identity) (target.Object, error) {
	found, err := l.readAs(ctx, id, true)
	if apierrors.IsNotFound(err) {
		found, err = l.readAs(ctx, id, false)
	}
	return found, err
}

func (l *lookups) readAs(ctx context.Context, id target.Identity, cached bool) (target.Object, error) {
	served, err := l.clients.resolve(ctx, schema.GroupVersionKind{Group: id.Group, Kind: id.Kind}, cached)
	if err != nil {
		return target.Object{}, err
	}
	if !served.namespaced {
		id.Namespace = ""
	}
	o, err := l.clients.fetchMetadata(ctx, served.gvr, id.Ref)
	if err != nil {
		return target.Object{}, err
	}
	if o.UID != id.UID {
		return target.Object{}, errNoObject
	}
	found := objectOf(id.GroupKind(), o)
	found.LookedUp = time.Now()
	return found, nil
}

// size returns the number of pending look-ups, for tests that look for leaks.
func (l *lookups) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending)
}
