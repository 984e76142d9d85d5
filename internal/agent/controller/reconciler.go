package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Reporter observes and assesses the resources of the registry's workloads. *reporter.Reporter is one.
type Reporter interface {
	// ResourceStatuses returns the status of each resource of a workload, in the order of the list, and the counts of all Pods
	// of the workload.
	ResourceStatuses(workload string) (statuses []target.ResourceStatus, pods target.Count)
	// BaseKindErrors returns the errors of the kinds that are watched for every workload.
	BaseKindErrors() []string
	// Health returns the verdict on a workload; an empty status while it has not been assessed.
	Health(workload string) (status, reason, message string)
	// DeletionsObserved reports whether all deletions of a workload's objects that happened have been observed.
	DeletionsObserved(ctx context.Context, workload string) (bool, error)
	WorkloadReports
}

// WorkloadReports makes the reports of workloads that only the reconciler knows of.
type WorkloadReports interface {
	// RecordTransition reports the latest transition of a workload's health. A repeated transition has no effect.
	RecordTransition(workload string, transition target.HealthTransition)
	// EndWatch reports that an instance is no longer watched, because its last workload no longer declares it.
	EndWatch(workload string, instance target.Instance, cause string)
	// ReportAgain delivers the status, the objects and the tree of a workload's instance again.
	ReportAgain(workload string)
}

// Delivery sends reports to the control plane. *outbox.Outbox is one.
type Delivery interface {
	Progress(target.Instance) target.DeliveryProgress
	// Declare begins to count the reports of an instance.
	Declare(target.Instance)
	// ForgetInstance drops the counts of an instance.
	ForgetInstance(target.Instance)
	// EndUndeclared reports the end of the watch of the instances that an earlier process declared and this one does not.
	EndUndeclared(declared func(target.Instance) bool, cause string, at time.Time)
	// RetryRejected sends the rejected reports of an instance again.
	RetryRejected(target.Instance)
}

// State is the agent's state on disk. *journal.Journal is one.
type State interface {
	// Durable reports whether pending reports survive the end of the process. The error is the reason if a state directory
	// is configured but they do not.
	Durable() (bool, error)
}

// Timing of the controller.
const (
	// resyncInterval is the longest time between two updates of a status from the progress of delivery.
	resyncInterval = 30 * time.Second
	// changeDelay coalesces changes of a workload into one reconcile.
	changeDelay = 200 * time.Millisecond
	// nextStepDelay is the time after which a workload is reconciled again, for its next step.
	nextStepDelay = time.Nanosecond
	// pollSpacing is the least time between two reconciles without a change of the own workload, all workloads together.
	pollSpacing = 20 * time.Millisecond
)

// The priorities of later steps. A thousand workloads may exist when the agent starts, which gives them LowPriority. First all of them
// are declared, then they get their finalizers, then their statuses. Later workloads come before these, and before deletions: their
// finalizers have the priority of a change, which is 0.
const (
	finalizerPriority = handler.LowPriority - 10
	statusPriority    = handler.LowPriority - 20
)

// Reconciler reconciles ThreeportWorkloads.
type Reconciler struct {
	client   client.Client
	reader   client.Reader // without the cache
	lists    *ResourceLists
	targets  *target.Registry
	reporter Reporter
	delivery Delivery
	state    State
	lease    *v1alpha1.LeaseReference // in each status; nil if there is none

	events eventRecorder
	now    func() time.Time

	started        onceSucceeded // endUndeclared
	deletionChecks chan struct{} // has a value for each check in progress

	states *workloadStates
	queue  changeQueue
}

// onceSucceeded does something until it succeeds once.
type onceSucceeded struct {
	mu   sync.Mutex
	done bool
}

func (o *onceSucceeded) do(f func() error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done {
		return nil
	}
	err := f()
	o.done = err == nil
	return err
}

// New returns a reconciler. The client may read from a cache, the reader does not. Call [Reconciler.SetReporter] before the manager
// starts.
func New(c client.Client, reader client.Reader, lists *ResourceLists, targets *target.Registry, delivery Delivery, state State) *Reconciler {
	return &Reconciler{
		client: c, reader: reader, lists: lists, targets: targets, delivery: delivery, state: state, now: time.Now,
		events: eventRecorder{create: func(ctx context.Context, ev *eventsv1.Event) error { return c.Create(ctx, ev) }},
		states: newWorkloadStates(time.Now()), deletionChecks: make(chan struct{}, maxDeletionChecks),
	}
}

// SetReporter sets the reporter. It is not an argument of New, because the reporter calls [Reconciler.Changed].
func (r *Reconciler) SetReporter(reporter Reporter) { r.reporter = reporter }

// SetLease makes each status name the Lease that the agent renews while it reports.
func (r *Reconciler) SetLease(lease v1alpha1.LeaseReference) { r.lease = &lease }

// workingLimit is the longest time between two reconciles. A workload is reconciled after [resyncInterval] without a change.
const workingLimit = 2 * time.Minute

// Working returns an error if statuses are not kept up to date: there are workloads, and none was reconciled successfully for
// too long.
func (r *Reconciler) Working() error {
	if since := r.states.sinceReconcile(r.now()); since > workingLimit {
		return fmt.Errorf("no ThreeportWorkload was reconciled for %s", since.Round(time.Second))
	}
	return nil
}

// SetupWithManager adds the reconciler to a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	changes := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		r.queue.set(queue.(priorityqueue.PriorityQueue[reconcile.Request]))
		return nil
	})
	if err := mgr.Add(manager.RunnableFunc(r.start)); err != nil { // also if there is no workload to reconcile
		return fmt.Errorf("add the start of the controller: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.ThreeportWorkload{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WatchesRawSource(changes).
		// Changed and new workloads come before all others.
		WithOptions(controller.Options{MaxConcurrentReconciles: 8, UsePriorityQueue: new(true)}).
		Complete(r)
}

// AllDeclared returns a channel that is closed when each workload that existed at the start is declared, deleted or excluded. It stays
// open while one of them cannot be read.
func (r *Reconciler) AllDeclared() <-chan struct{} { return r.states.allDeclared }

// Changed schedules an update of a workload's status. It does not block.
func (r *Reconciler) Changed(workload string) { r.queue.add(workload, changeDelay) }

// Reconcile declares a workload to the registry and updates its status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	result, err := r.reconcile(ctx, req)
	if result.Priority == nil {
		result.Priority = new(statusPriority)
	}
	if err == nil {
		r.states.recordReconcile(r.now())
	}
	return result, err
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.start(ctx); err != nil {
		return ctrl.Result{}, err
	}
	var wl v1alpha1.ThreeportWorkload
	if err := r.client.Get(ctx, req.NamespacedName, &wl); err != nil {
		if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, fmt.Errorf("get ThreeportWorkload %s: %w", req.Name, err)
		}
		r.states.takeAtStart(req.Name)
		r.forget(req.Name)
		return ctrl.Result{}, nil
	}
	if !wl.DeletionTimestamp.IsZero() {
		r.states.takeAtStart(wl.Name)
		return r.finalize(ctx, &wl)
	}
	list, err := r.lists.of(ctx, r.reader, &wl)
	switch {
	case errors.Is(err, errNewerList):
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, err
	case list.excluded:
		r.states.takeAtStart(wl.Name)
		r.exclude(ctx, &wl)
	case r.declare(ctx, &wl, list.resources):
		return ctrl.Result{RequeueAfter: nextStepDelay, Priority: new(r.takeStartPriority(&wl))}, nil
	}
	if !controllerutil.ContainsFinalizer(&wl, v1alpha1.Finalizer) {
		err := r.patchFinalizers(ctx, &wl, controllerutil.AddFinalizer)
		switch {
		case errors.Is(err, errNewerList):
			return ctrl.Result{}, nil
		case err != nil:
			return ctrl.Result{}, fmt.Errorf("add finalizer to ThreeportWorkload %s: %w", wl.Name, err)
		}
		return ctrl.Result{RequeueAfter: nextStepDelay}, nil
	}
	if r.takeRetryRequest(&wl) {
		r.delivery.RetryRejected(instanceOf(&wl))
	}
	if r.takeReportRequest(&wl) {
		r.reporter.ReportAgain(wl.Name)
	}
	return r.reconcileStatus(ctx, &wl)
}

// declare declares a workload to delivery and to the registry. It reports whether the declaration is another one than before.
func (r *Reconciler) declare(ctx context.Context, wl *v1alpha1.ThreeportWorkload, resources []v1alpha1.WorkloadResourceInstance) bool {
	instance := instanceOf(wl)
	r.delivery.Declare(instance)
	before, tracked := r.targets.Workload(wl.Name)
	besideBefore := r.targets.WorkloadsBeside(wl.Name)
	if !r.targets.Track(workloadOf(wl, resources)) {
		return false
	}
	if tracked && before.Instance != instance {
		r.endUnusedInstance(before, "names another instance")
	}
	r.wake(besideBefore)
	r.wake(r.targets.WorkloadsBeside(wl.Name))
	ctrl.LoggerFrom(ctx).Info("Tracking workload", "instance", instance.String(), "resources", len(resources))
	return true
}

// takeStartPriority returns the priority of the step after the declaration of a workload. It is low once for a workload that existed at the
// start.
func (r *Reconciler) takeStartPriority(wl *v1alpha1.ThreeportWorkload) int {
	if r.states.takeAtStart(wl.Name) {
		return finalizerPriority
	}
	return 0
}

// exclude ends the watch of a workload whose list is not held.
func (r *Reconciler) exclude(ctx context.Context, wl *v1alpha1.ThreeportWorkload) {
	before, tracked := r.targets.Workload(wl.Name)
	if !tracked { // an earlier process may have declared it
		before = target.Workload{Name: wl.Name, Instance: instanceOf(wl)}
	}
	beside := r.targets.WorkloadsBeside(wl.Name)
	r.targets.Forget(wl.Name)
	known := false
	r.states.update(wl, r.now(), func(w *workloadState) { known, w.excluded = w.excluded && !tracked, true })
	if known {
		return
	}
	r.endUnusedInstance(before, "lists more resources than the agent has memory for")
	r.wake(beside)
	ctrl.LoggerFrom(ctx).Info("The workload is not watched", "instance", before.Instance.String(), "cause", r.lists.exclusion(wl.Name))
}

// forget drops all state of a workload.
func (r *Reconciler) forget(name string) {
	before, tracked := r.targets.Workload(name)
	beside := r.targets.WorkloadsBeside(name)
	r.targets.Forget(name)
	r.lists.forget(name)
	if tracked {
		r.endUnusedInstance(before, "was deleted")
		r.wake(beside)
	}
	r.states.forget(name)
}

// endUnusedInstance reports that the former instance of a workload is no longer watched, unless another workload declares it, and
// drops its counts.
func (r *Reconciler) endUnusedInstance(before target.Workload, why string) {
	if len(r.targets.WorkloadNamesOf(before.Instance)) > 0 {
		return
	}
	r.reporter.EndWatch(before.Name, before.Instance, "ThreeportWorkload "+before.Name+" "+why)
	r.delivery.ForgetInstance(before.Instance)
}

// start does once what comes before a workload is declared.
func (r *Reconciler) start(ctx context.Context) error {
	return r.started.do(func() error { return r.endUndeclared(ctx) })
}

// endUndeclared ends the instances that an earlier process reported and that are no longer declared. It comes before a workload
// is declared, so that no later status of an instance is replaced.
func (r *Reconciler) endUndeclared(ctx context.Context) error {
	var list v1alpha1.ThreeportWorkloadList
	if err := r.client.List(ctx, &list); err != nil {
		return fmt.Errorf("list ThreeportWorkloads: %w", err)
	}
	declared, names := map[target.Instance]bool{}, sets.New[string]()
	for i := range list.Items {
		declared[instanceOf(&list.Items[i])] = true
		if list.Items[i].DeletionTimestamp.IsZero() {
			names.Insert(list.Items[i].Name)
		}
	}
	r.states.setAtStart(names)
	isDeclared := func(instance target.Instance) bool { return declared[instance] }
	r.delivery.EndUndeclared(isDeclared, "its ThreeportWorkload was deleted while the agent did not run", r.now())
	return nil
}

// wake schedules updates of other workloads, because their statuses name the one that changed. A thousand may list the same object.
func (r *Reconciler) wake(others []string) {
	delay := r.pollInterval()
	for _, name := range others {
		r.queue.add(name, delay)
	}
}

// takeRetryRequest reports whether the annotation that requests another attempt has a value that no process has handled, and records it
// as handled. The status has the value of an earlier process. That of this process may not be written yet. The removal of the annotation
// is no request.
func (r *Reconciler) takeRetryRequest(wl *v1alpha1.ThreeportWorkload) bool {
	value := retryAnnotation(wl)
	if value == wl.Status.Delivery.Retried {
		return false
	}
	isNew := false
	r.states.update(wl, r.now(), func(w *workloadState) { isNew, w.retried = value != "" && w.retried != value, value })
	return isNew
}

// takeReportRequest reports whether the annotation that requests all reports again has changed since the last call. The first call only
// records the value, because an initial sync has compared the workload with the control plane.
func (r *Reconciler) takeReportRequest(wl *v1alpha1.ThreeportWorkload) bool {
	value := wl.Annotations[v1alpha1.AnnotationReportAgain]
	isNew := false
	r.states.update(wl, r.now(), func(w *workloadState) {
		isNew = w.reportedAgain != nil && *w.reportedAgain != value && value != ""
		w.reportedAgain = &value
	})
	return isNew
}

// retryAnnotation returns the value of the annotation that requests another attempt for rejected reports.
func retryAnnotation(wl *v1alpha1.ThreeportWorkload) string {
	return truncateMessage(wl.Annotations[v1alpha1.AnnotationRetryRejected], 1)
}

func instanceOf(wl *v1alpha1.ThreeportWorkload) target.Instance {
	return target.Instance{Type: target.Type(wl.Spec.WorkloadType), ID: wl.Spec.WorkloadInstanceID}
}

func workloadOf(wl *v1alpha1.ThreeportWorkload, resources []v1alpha1.WorkloadResourceInstance) target.Workload {
	out := target.Workload{
		Name: wl.Name, Instance: instanceOf(wl), Declared: wl.CreationTimestamp.Time, LabelNamespaces: wl.LabelNamespaces(),
	}
	for _, res := range resources {
		out.Resources = append(out.Resources, target.Resource{
			Ref:     target.Ref{Group: res.Group, Kind: res.Kind, Namespace: res.Namespace, Name: res.Name},
			Version: res.Version,
			ID:      res.ThreeportID,
		})
	}
	return out
}
