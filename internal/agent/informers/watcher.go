package informers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// Sink takes what was seen.
type Sink interface {
	// Offer puts in a report. One of a version that the sink has already changes nothing.
	Offer(observe.Report)
	// Cancel drops what is pending of a key that is not to be reported about any more.
	Cancel(observe.Key)
	// Forget drops what is known of a key after what is pending of it: nothing more will come.
	Forget(observe.Key)
}

// Config sets how the cluster is watched.
type Config struct {
	// Namespaces restricts the watches of namespaced kinds; empty for the whole cluster where permission
	// allows it, else the namespaces of listed resources.
	Namespaces []string
	// Workers is the number of goroutines that turn changes into reports.
	Workers int
	// RetryMin and RetryMax bound the wait before a kind that is missing, forbidden or failing is asked for
	// again.
	RetryMin, RetryMax time.Duration
	// StatusDelay is how long the verdict on a workload may rest to gather changes before it is reported, and how long an
	// object may rest to gather Events before it is judged again.
	StatusDelay time.Duration
	// StatusInterval is the least time between two reports of an instance's status.
	StatusInterval time.Duration
	// Rules are the user's own for judging objects; nil for none.
	Rules health.Rules
	// Delivery tells what the control plane has not got of an instance's reports; nil for nothing.
	Delivery func(target.Instance) observe.DeliveryCounts
	// Patience is how long an informer that has synced may get nothing but errors before its kind is Unavailable.
	Patience time.Duration
	// AuditGrace is how far an informer's cache may be behind the API server.
	AuditGrace time.Duration
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Workers: 4, RetryMin: 2 * time.Second, RetryMax: 30 * time.Second, StatusDelay: time.Second,
		StatusInterval: 5 * time.Second, Patience: 30 * time.Second, AuditGrace: 10 * time.Second,
	}
}

// Validate names the field that is wrong and what it accepts.
func (c Config) Validate() error {
	switch {
	case c.Workers < 1:
		return fmt.Errorf("watch workers is %d: give a number above 0", c.Workers)
	case c.RetryMin <= 0 || c.RetryMax < c.RetryMin:
		return fmt.Errorf("watch retry is %s to %s: give two durations above 0, the larger last", c.RetryMin, c.RetryMax)
	case c.StatusDelay <= 0:
		return fmt.Errorf("status delay is %s: give a duration above 0", c.StatusDelay)
	case c.StatusInterval <= 0:
		return fmt.Errorf("status interval is %s: give a duration above 0", c.StatusInterval)
	case c.Patience <= 0 || c.AuditGrace <= 0:
		return fmt.Errorf("watch patience is %s and audit grace %s: give durations above 0", c.Patience, c.AuditGrace)
	}
	return nil
}

// Watcher watches what the registry asks for. Its methods are safe for concurrent use.
type Watcher struct {
	config  Config
	clients *Clients
	targets *target.Registry
	sink    Sink
	metrics *Metrics
	log     logr.Logger
	// changed is called with the name of a workload whose sights may have changed. It must not block.
	changed func(workload string)
	now     func() time.Time

	pool    *pool
	board   *board
	lookups *lookups
	graves  *graves
	offers  *offers
	told    *told
	ends    *ends
	bodies  *bodies
	memory  *memory

	objects  workqueue.TypedRateLimitingInterface[target.Ref]
	events   workqueue.TypedRateLimitingInterface[types.NamespacedName]
	statuses workqueue.TypedRateLimitingInterface[string]
	review   chan struct{} // capacity 1: look again at the Events about objects that are not known

	round atomic.Int64 // of telling all that is true of workloads; 0 while the control plane takes words only

	mu        sync.Mutex
	rounds    int64 // the latest
	kinds     map[schema.GroupVersionKind]*kind
	tracked   map[string]target.Workload // those whose status is reported
	flapping  map[string]*health.Flapping
	posted    map[target.Instance]post
	trees     map[target.Instance]*treePost
	announced map[string]observe.Event // the latest change of each workload's status
	early     map[types.UID]struct{}   // Events that were there before this process watched
	running   bool
}

// New returns a watcher that does nothing until it is run. What store kept of an earlier one is known to it; it may
// be nil.
func New(
	config Config, clients *Clients, targets *target.Registry, sink Sink, store Memory,
	metrics *Metrics, log logr.Logger, changed func(workload string),
) *Watcher {
	w := &Watcher{
		config:   config,
		clients:  clients,
		targets:  targets,
		sink:     sink,
		metrics:  metrics,
		log:      log,
		changed:  changed,
		now:      time.Now,
		board:    newBoard(),
		kinds:    map[schema.GroupVersionKind]*kind{},
		tracked:  map[string]target.Workload{},
		flapping: map[string]*health.Flapping{},
		posted:   map[target.Instance]post{},
		trees:    map[target.Instance]*treePost{},
		bodies:   newBodies(),
		early:    map[types.UID]struct{}{},
		memory:   newMemory(store),
		graves:   newGraves(targets),
		offers:   newOffers(),
		objects:  newQueue[target.Ref]("objects"),
		events:   newQueue[types.NamespacedName]("events"),
		statuses: newQueue[string]("statuses"),
		review:   make(chan struct{}, 1),
	}
	w.pool = newPool(w)
	w.lookups = newLookups(w)
	w.told = newTold(w.memory.events())
	w.ends = newEnds(w.memory.ends())
	w.announced = w.memory.changes()
	w.recall(time.Now())
	return w
}

func newQueue[T comparable](name string) workqueue.TypedRateLimitingInterface[T] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[T](50*time.Millisecond, 30*time.Second)
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[T]{Name: name})
}

// Run watches until the context ends, and returns when everything that it started has ended.
func (w *Watcher) Run(ctx context.Context) error {
	var workers sync.WaitGroup
	for range w.config.Workers {
		workers.Go(func() { work(ctx, w.objects, w.reconcileObject, w.log) })
		workers.Go(func() { work(ctx, w.events, w.reconcileEvent, w.log) })
		workers.Go(func() { work(ctx, w.lookups.queue, w.lookups.reconcile, w.log) })
	}
	workers.Go(func() { work(ctx, w.statuses, w.reconcileStatus, w.log) })

	prune := time.NewTicker(time.Minute)
	defer prune.Stop()
	recount := time.NewTicker(recountEvery)
	defer recount.Stop()
	var declared uint64
	for ctx.Err() == nil {
		if g := w.targets.Generation(); g != declared || !w.started() {
			declared = g
			w.reconcileKinds(ctx)
			w.reconcileWorkloads()
			w.reviewUnseen()
		}
		select {
		case <-ctx.Done():
		case <-w.targets.Changed():
			w.dispatch(w.targets.Drain())
		case <-w.review:
			w.reviewUnseen()
		case <-recount.C:
			w.recount()
		case now := <-prune.C:
			w.targets.Prune(now)
			w.graves.prune()
			w.tidyMemory()
			w.reviewUnseen() // for what became known of their makers
		}
	}
	for _, k := range w.stopKinds(func(schema.GroupVersionKind) bool { return true }) {
		<-k.done
	}
	// Workers go on until the queues are empty: what was seen is offered.
	w.shutDown()
	workers.Wait()
	return nil
}

// shutDown ends the queues.
func (w *Watcher) shutDown() {
	w.objects.ShutDown()
	w.events.ShutDown()
	w.statuses.ShutDown()
	w.lookups.queue.ShutDown()
}

// work processes a queue until it is shut down and empty. A key that fails is tried again later.
func work[T comparable](
	ctx context.Context, queue workqueue.TypedRateLimitingInterface[T], process func(context.Context, T) error, log logr.Logger,
) {
	for {
		key, shutdown := queue.Get()
		if shutdown {
			return
		}
		if err := process(ctx, key); err != nil && ctx.Err() == nil {
			if queue.NumRequeues(key) == 0 && !errors.Is(err, errNotInstalled) {
				log.Info("Reading an object failed; it is tried again", "key", fmt.Sprint(key), "error", err.Error())
			}
			queue.AddRateLimited(key)
		} else {
			queue.Forget(key)
		}
		queue.Done(key)
	}
}

// dispatch marks what bears a name or descends from something whose claims may have changed.
func (w *Watcher) dispatch(affected []target.Identity) {
	for _, id := range affected {
		w.objects.Add(id.Ref)
		for _, key := range w.pool.eventsAbout(id) {
			w.events.Add(key)
		}
	}
}

func (w *Watcher) started() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running
}

// Ready reports whether every kind that is wanted, installed and permitted has synced.
func (w *Watcher) Ready() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.running {
		return false
	}
	for _, k := range w.kinds {
		if k.pending() {
			return false
		}
	}
	return true
}
