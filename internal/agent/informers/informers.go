package informers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/agent/worker"
	"github.com/threeport/threeport-agent/internal/redact"
)

// Handler receives changes. The informers call its methods from many goroutines and hold no mutex meanwhile. The methods
// must not block.
type Handler interface {
	// ObjectChanged reports that an object that is attributed to a workload was created or updated, or that an object was
	// deleted and has a [Tombstone].
	ObjectChanged(target.Ref)
	// KindChanged reports that the state of a watched kind has changed.
	KindChanged(schema.GroupKind)
	// OwnersResolved reports that the requested owners were looked up.
	OwnersResolved()
	EventHandler
}

// EventHandler receives changes of Events.
type EventHandler interface {
	// EventChanged reports a created or updated Event.
	EventChanged(name types.NamespacedName)
	// EventDeleted reports the last known state of a deleted Event: most expire.
	EventDeleted(ev *corev1.Event)
	// EventsListed reports the end of an informer's first list of Events. Some may have expired while none was running.
	EventsListed()
}

// Config sets how the cluster is watched.
type Config struct {
	// Namespaces restricts the watches of namespaced kinds. If it is empty, the agent watches the whole cluster where
	// permission allows it, else the namespaces of listed resources.
	Namespaces []string
	// LookupWorkers is the number of goroutines that look up owners.
	LookupWorkers int
	// RetryMin and RetryMax bound the wait before a retry for a kind that is missing, forbidden or failing.
	RetryMin, RetryMax time.Duration
	// UnavailableAfter is the time without a successful request after which the kind of a synced informer is Unavailable.
	UnavailableAfter time.Duration
	// CacheLagTolerance is how long an informer's cache may lag behind the API server.
	CacheLagTolerance time.Duration
	// Redaction has the rules for objects that are kept; nil for the built-in rules.
	Redaction *redact.Live
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		LookupWorkers: 4, RetryMin: 2 * time.Second, RetryMax: 30 * time.Second,
		UnavailableAfter: 30 * time.Second, CacheLagTolerance: 10 * time.Second,
	}
}

// Validate returns an error that names the wrong field and the accepted values.
func (c Config) Validate() error {
	for _, name := range c.Namespaces {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return fmt.Errorf("%q is not the name of a namespace: %s", name, problems[0])
		}
	}
	switch {
	case c.LookupWorkers < 1:
		return fmt.Errorf("lookup workers is %d: give a number above 0", c.LookupWorkers)
	case c.RetryMin <= 0 || c.RetryMax < c.RetryMin:
		return fmt.Errorf("watch retry is %s to %s: give two durations above 0, the larger last", c.RetryMin, c.RetryMax)
	case c.UnavailableAfter <= 0 || c.CacheLagTolerance <= 0:
		return fmt.Errorf("time until a kind is unavailable is %s and cache lag tolerance %s: give durations above 0", c.UnavailableAfter, c.CacheLagTolerance)
	}
	return nil
}

// Informers watches the kinds that the registry's workloads list. Its methods are safe for concurrent use.
type Informers struct {
	config  Config
	clients *Clients
	targets *target.Registry

	kinds      *kinds
	pool       *informerPool
	tombstones *tombstones
	lookups    *lookups
	fetched    *objectCache
	stalls     stallDetector
	wakeup     chan struct{} // capacity 1: workloads were declared or removed
	unwatched  *prometheus.GaugeVec
}

// New returns informers that start with [Informers.Run].
func New(config Config, clients *Clients, targets *target.Registry, handler Handler, metrics *Metrics, log logr.Logger) *Informers {
	s := &Informers{
		config: config, clients: clients, targets: targets,
		tombstones: newTombstones(targets),
		fetched: &objectCache{
			fetch: clients.fetch, listed: targets.ListedCount, redaction: config.Redaction, count: metrics.fetches,
			objects: map[types.UID]fetchedObject{},
		},
		wakeup: make(chan struct{}, 1), unwatched: metrics.unwatchedKinds,
	}
	s.lookups = &lookups{
		targets: targets, clients: clients.lookups, follows: s.Follows, done: handler.OwnersResolved,
		count: metrics.lookups, postponedCount: metrics.postponedLookups, log: log,
		queue:   worker.NewFairQueue("lookups", func(id target.Identity) string { return id.Namespace }),
		pending: map[target.Identity]struct{}{}, byNamespace: map[string]int{}, limit: maxLookups,
	}
	changes := &registrar{targets: targets, tombstones: s.tombstones, lookups: s.lookups, handler: handler}
	s.pool = newInformerPool(informerFactory{clients, targets, config.Redaction}, changes, config.UnavailableAfter, metrics, log)
	s.kinds = newKinds(&kindEnv{
		config: config, targets: targets, log: log, discovery: clients, informers: s.pool,
		kindRemoved: changes.deleteKind, changed: func(kind schema.GroupKind) {
			s.kinds.countUnwatched(s.unwatched)
			handler.KindChanged(kind)
			if kind == sliceKind { // the status of a Service waits for it: see ResourceStatus
				handler.KindChanged(serviceKind)
			}
		},
	})
	s.stalls = stallDetector{clients, s.pool, config.CacheLagTolerance, metrics, log}
	return s
}

// Run watches until the context ends. It returns when all goroutines that it started have ended.
func (s *Informers) Run(ctx context.Context) {
	var lookups sync.WaitGroup
	lookups.Go(func() { s.lookups.run(ctx, s.config.LookupWorkers) })
	s.reconcile(ctx)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-s.wakeup:
			s.reconcile(ctx)
		case <-s.kinds.ended:
			s.kinds.dropStopped()
		}
	}
	s.kinds.stop(func(schema.GroupVersionKind) bool { return true })
	s.kinds.running.Wait()
	s.Close()
	lookups.Wait()
}

func (s *Informers) reconcile(ctx context.Context) {
	s.kinds.reconcile(ctx)
	s.kinds.countUnwatched(s.unwatched) // a kind that is no longer wanted may have been unwatched
}

// Close releases the resources of informers that are never run.
func (s *Informers) Close() { s.lookups.queue.ShutDown() }

// Reconcile makes Run watch the kinds that workloads list now. It does not block.
func (s *Informers) Reconcile() {
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

// LookUpOwners requests owners whose kinds are not watched. The Handler is notified when they are in the registry.
func (s *Informers) LookUpOwners(ids []target.Identity) { s.lookups.add(ids) }

// Incarnations returns the deleted objects of a name whose deletion is not reported yet, oldest first, and the existing
// object. Both are of one moment: an object that follows a deleted one is never returned without its tombstone.
func (s *Informers) Incarnations(ref target.Ref) (deleted []Tombstone, current target.Identity, exists bool) {
	return s.tombstones.incarnations(ref)
}

// DeletionReported removes a tombstone.
func (s *Informers) DeletionReported(id target.Identity) { s.tombstones.remove(id) }

// Prune drops the deleted objects that the registry no longer knows.
func (s *Informers) Prune() { s.tombstones.prune() }

// DetectStalls restarts the informers whose caches lag behind the API server without an error, and returns their number.
// The error joins those of informers that could not be compared.
func (s *Informers) DetectStalls(ctx context.Context) (int, error) { return s.stalls.detect(ctx) }

// errReread means that an informer reads its kind again by new redaction rules.
var errReread = errors.New("the redaction rules have changed; the kind is read again")

// Reread reads all kinds again whose objects are kept whole, because the redaction rules have changed. Caches cannot be redacted
// in place, because others read their objects, and they lack the values that new rules no longer name.
func (s *Informers) Reread() {
	kept := func(i *informer) bool { return i.gvk != eventKind && i.gvk != podKind && !metadataOnly(i.gvk) }
	for _, i := range s.pool.all(kept) {
		s.pool.fail(i, errReread)
	}
	s.fetched.clear()
}

// Restart restarts the synced informers that match, for tests. It returns their number.
func (s *Informers) Restart(match func(schema.GroupVersionResource) bool) int {
	n := 0
	for _, i := range s.pool.all((*informer).hasSynced) {
		if match(i.id.gvr) {
			s.pool.fail(i, errStalled)
			n++
		}
	}
	return n
}

// Sizes returns how much the informers hold, for tests that look for leaks.
func (s *Informers) Sizes() map[string]int {
	out := s.tombstones.sizes()
	s.kinds.mu.Lock()
	out["kinds"] = len(s.kinds.watchers)
	s.kinds.mu.Unlock()
	maps.Copy(out, map[string]int{
		"current informers": len(s.pool.all((*informer).isCurrent)),
		"informers":         len(s.pool.all(func(*informer) bool { return true })),
		"pending lookups":   s.lookups.size(),
		"fetched objects":   s.fetched.size(),
	})
	return out
}
