package reporter

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/assess"
	"github.com/threeport/threeport-agent/internal/agent/informers"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Sink takes reports. Its methods are called from many goroutines and must not block.
type Sink interface {
	Ledger
	Intake
	Withdrawals
	Redelivery
}

// Redelivery decides what is delivered again.
type Redelivery interface {
	// Reopen makes the next Offers of an instance's status and objects be delivered, also of versions that were delivered before.
	Reopen(target.Instance)
	// IsSyncDeferred reports whether the initial sync of an instance waits because not all its objects had been listed.
	IsSyncDeferred(target.Instance) bool
	// RetrySync ends that wait.
	RetrySync(target.Instance)
	// Reoffer receives when all statuses, trees and objects have to be offered again.
	Reoffer() <-chan struct{}
}

// Intake takes new reports.
type Intake interface {
	// Offer adds a report. A report of a version that the sink already has changes nothing.
	Offer(observe.Report)
	// Drop counts an Event that a filter leaves out, and returns true. It returns false if the Event was dropped or reported before, or
	// is about to be reported.
	Drop(ev observe.Event, filter string) bool
}

// Withdrawals take back reports that are no longer to be delivered.
type Withdrawals interface {
	// Cancel drops the pending or rejected report of a key, which may be offered again.
	Cancel(observe.Key)
	// DropRejected drops the rejected reports of a subject, and those for rows that the control plane has not, except those to the
	// given instances. They may be offered again.
	DropRejected(subject observe.Subject, except ...target.Instance)
	// ForgetExcept forgets the keys of a subject, except those to keep, and drops their pending reports. Pending Events and
	// deletions are delivered first.
	ForgetExcept(subject observe.Subject, keep ...observe.Key)
}

// Ledger records which reports were made, by this process and earlier ones. There is no other record of them.
type Ledger interface {
	// ForgetRestoredEvents forgets the Events of an earlier process that this process has not offered.
	ForgetRestoredEvents()
	// Events returns the UIDs of the cluster's Events that were reported until the call.
	Events() iter.Seq[types.UID]
	// IsConfirmed reports whether the control plane has accepted a status of an instance.
	IsConfirmed(target.Instance) bool
	// Knows reports whether a key was reported, or is about to be.
	Knows(observe.Key) bool
	// Has reports whether an Offer of a report would change nothing.
	Has(observe.Report) bool
}

// Reporter reports the objects, Events and health of the registry's workloads. Its methods are safe for concurrent use.
type Reporter struct {
	config      Config
	targets     *target.Registry
	informers   *informers.Informers
	assessor    *assess.Assessor
	sink        Sink
	attributed  *attributedObjects
	transitions *transitions
	queues      *queues
	log         logr.Logger

	objects  *objectReporter
	events   *eventReporter
	statuses *statusReporter
}

// New returns a reporter that starts with [Reporter.Run]. It resumes from the records of an earlier process in store,
// which may be nil. changed is called with the name of a workload whose resource statuses may have changed, and must not
// block.
func New(
	config Config, clients *informers.Clients, targets *target.Registry, sink Sink, store Store,
	metrics *Metrics, log logr.Logger, changed func(workload string),
) *Reporter {
	r := &Reporter{
		config: config, targets: targets, sink: sink, log: log,
		attributed: newAttributedObjects(store), transitions: newTransitions(), queues: newQueues(config.StatusDelay, config.Tracing),
	}
	r.informers = informers.New(config.Config, clients, targets, handler{r}, metrics.informers, log)
	r.assessor = assess.New(
		assess.Config{StatusInterval: config.StatusInterval, Rules: config.Rules, Now: config.now},
		targets, r.informers, r.transitions, metrics.assess, log,
	)
	r.statuses = &statusReporter{
		targets: targets, cluster: r.informers, assessor: r.assessor, sink: sink, filters: config.Filters,
		transitions: r.transitions, queues: r.queues, changed: changed, instances: map[string]target.Instance{},
	}
	r.objects = &objectReporter{
		targets: targets, informers: r.informers, assessor: r.assessor, sink: sink, attributed: r.attributed,
		queues: r.queues, statuses: r.statuses, redaction: config.Redaction, now: config.now,
	}
	r.events = &eventReporter{
		targets: targets, informers: r.informers, filters: config.Filters, sink: sink, aboutUnknown: newUnknownObjectEvents(), queues: r.queues, now: config.now,
	}
	r.attributed.restore(targets, config.now())
	return r
}

// Run reports until the context ends. It returns when all goroutines that it started have ended.
func (r *Reporter) Run(ctx context.Context) {
	r.awaitDeclarations(ctx)
	var watching, workers sync.WaitGroup
	watching.Go(func() { r.informers.Run(ctx) })
	for range r.config.Workers {
		workers.Go(func() { r.queues.objects.Work(ctx, r.objects.reconcile, r.log) })
		workers.Go(func() { r.queues.events.Work(ctx, r.events.reconcile, r.log) })
	}
	workers.Go(func() { r.queues.longEvents.Work(ctx, r.events.reconcileLong, r.log) })
	workers.Go(func() { r.queues.statuses.Work(ctx, r.statuses.reconcile, r.log) })
	r.loop(ctx)
	watching.Wait()
	r.queues.shutDown() // the workers process the queued keys before they end
	workers.Wait()
}

// declareTimeout is the longest time for which the informers wait for the workloads of the start. One of these may be unreadable.
const declareTimeout = 10 * time.Second

// awaitDeclarations waits until the workloads that exist at the start are declared. An informer keeps an object whole if it is listed at
// that moment. Each object that is listed later is read in a request of its own, and the rate of these requests is limited.
func (r *Reporter) awaitDeclarations(ctx context.Context) {
	if r.config.AllDeclared == nil {
		return
	}
	timer := time.NewTimer(declareTimeout)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-r.config.AllDeclared:
	case <-timer.C:
		r.log.Info("Watching begins before all ThreeportWorkloads are declared", "waited", declareTimeout.String())
	}
}

// restoredFor is how long the sink keeps the Events of an earlier process that are not reported again. Until then the
// workloads are declared and the informers have synced. The row of an Event that is forgotten too early is looked up.
const restoredFor = 10 * time.Minute

// loop passes changes of declarations and attributions on to the informers and the queues.
func (r *Reporter) loop(ctx context.Context) {
	prune := time.NewTicker(time.Minute)
	defer prune.Stop()
	var declared uint64
	var workloads map[string]target.Workload
	forgetRestored := time.After(restoredFor)
	unattributed := r.queues.unattributed // nil during a pause
	var pauseEnded <-chan time.Time
	for first := true; ctx.Err() == nil; first = false {
		if g := r.targets.Generation(); g != declared || first {
			declared = g
			r.informers.Reconcile()
			workloads = r.statuses.workloadsDeclared(workloads)
			r.queues.requeueUnattributed()
		}
		select {
		case <-ctx.Done():
		case <-r.targets.Changed():
			affected := r.targets.Drain()
			r.queueAffected(affected)
			pauseAfter(ctx, len(affected))
		case <-unattributed:
			begin := time.Now()
			r.queueUnattributedEvents()
			unattributed, pauseEnded = nil, time.After(pausePerScan*time.Since(begin))
		case <-pauseEnded:
			unattributed = r.queues.unattributed
		case <-r.sink.Reoffer():
			r.reofferAll()
		case <-forgetRestored:
			r.sink.ForgetRestoredEvents()
		case now := <-prune.C:
			r.prune(now)
			r.queues.requeueUnattributed() // for owners that became known meanwhile
		}
	}
}

// pausePerScan is the pause after a scan of all Events, in times of its duration. When the agent starts, each kind that has been listed
// requests a scan.
const pausePerScan = 10

// The pause after a number of affected objects were queued. While many objects arrive that own each other, each of them affects many, and
// they would be queued again with each arrival.
const (
	pausePerAffected = 100 * time.Microsecond
	maxAffectedPause = 500 * time.Millisecond
)

func pauseAfter(ctx context.Context, affected int) {
	select {
	case <-ctx.Done():
	case <-time.After(min(time.Duration(affected)*pausePerAffected, maxAffectedPause)):
	}
}

// prune drops the records of objects that are gone or belong to no workload, and of expired Events.
func (r *Reporter) prune(now time.Time) {
	r.targets.Prune(now)
	r.informers.Prune()
	for _, uid := range r.attributed.prune(r.targets) {
		r.sink.ForgetExcept(observe.SyntheticSubject(uid))
	}
	if r.queues.eventsListed.CompareAndSwap(true, false) && !r.events.forgetExpired() {
		r.queues.eventsListed.Store(true) // again at the next call
	}
}

// queueAffected queues the objects, and the Events about them, whose attributions may have changed.
func (r *Reporter) queueAffected(affected []target.Identity) {
	for _, id := range affected {
		r.queues.objects.Add(id.Ref)
		for _, name := range r.informers.EventsAbout(id) {
			r.queues.events.Add(name)
		}
	}
}

func (r *Reporter) queueUnattributedEvents() {
	for _, name := range r.informers.EventsAboutUnknownObjects() {
		r.queues.events.Add(name)
	}
}

// reofferAll offers all statuses, trees and objects again, and the Events of shared resources, because the sink may have dropped
// some of them.
func (r *Reporter) reofferAll() {
	r.treesChanged()
	for _, workload := range r.targets.WorkloadNames() {
		if wl, ok := r.targets.Workload(workload); ok && len(r.targets.SharedResources(workload)) > 0 {
			r.queueAffected(r.targets.ObjectsOf(wl.Instance))
		}
	}
	r.ReassessAll()
}

// ReportAgain delivers the status, the objects and the tree of a workload's instance again, although they were delivered.
func (r *Reporter) ReportAgain(workload string) {
	wl, ok := r.targets.Workload(workload)
	if !ok {
		return
	}
	r.sink.Reopen(wl.Instance)
	r.assessor.TreeChanged(wl.Instance)
	for _, part := range r.targets.WorkloadsOf(wl.Instance) {
		r.queues.statusLater(part.Name)
		for _, resource := range part.Resources {
			r.queues.objects.Add(resource.Ref)
		}
	}
}

// ReassessAll judges and offers all objects again, for example because the health rules have changed.
func (r *Reporter) ReassessAll() {
	for _, ref := range r.attributed.names() {
		r.queues.objects.Add(ref)
	}
}

// RedactionChanged reads the objects again, because the redaction rules have changed. Definitions that leave the cluster follow
// the new rules at once. The control plane keeps the old definitions until an object changes, or until the next resync.
func (r *Reporter) RedactionChanged() { r.informers.Reread() }

// FiltersChanged offers the trees again, because the filters have changed.
func (r *Reporter) FiltersChanged() { r.treesChanged() }

func (r *Reporter) treesChanged() {
	r.assessor.AllTreesChanged()
	for _, workload := range r.targets.WorkloadNames() {
		r.queues.statusLater(workload)
	}
}

// Ready reports whether every kind that is wanted, installed and permitted has synced.
func (r *Reporter) Ready() bool { return r.informers.Ready() }

// BaseKindErrors returns why the kinds that are watched for every workload are not watched.
func (r *Reporter) BaseKindErrors() []string { return r.informers.BaseKindErrors() }

// DetectStalls restarts informers whose caches lag behind the API server, and returns their number.
func (r *Reporter) DetectStalls(ctx context.Context) (int, error) {
	return r.informers.DetectStalls(ctx)
}

// DeletionsObserved reports whether the deletion of every listed object of a workload that is gone has been seen.
func (r *Reporter) DeletionsObserved(ctx context.Context, workload string) (bool, error) {
	return r.informers.DeletionsObserved(ctx, workload)
}

// ResourceStatuses returns the state and the health of each resource of a workload, in the order in which they are listed, and
// the counts of the workload's Pods.
func (r *Reporter) ResourceStatuses(workload string) (statuses []target.ResourceStatus, pods target.Count) {
	return r.assessor.ResourceStatuses(workload)
}

// Health returns the verdict on a workload in words; empty while it is not known.
func (r *Reporter) Health(workload string) (status, reason, message string) {
	return r.assessor.Health(workload)
}

// EndWatch reports that an instance is no longer watched, because its last workload no longer declares it.
func (r *Reporter) EndWatch(workload string, instance target.Instance, cause string) {
	r.statuses.endWatch(workload, observe.NewWatchEnd(instance, cause, r.config.now()))
}

// RecordTransition reports the last transition of a workload's health as an Event. It ignores an incomplete transition,
// and a repeat changes nothing. No two calls for one workload may overlap.
func (r *Reporter) RecordTransition(workload string, transition target.HealthTransition) {
	r.statuses.recordTransition(workload, transition)
}
