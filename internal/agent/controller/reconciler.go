package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// The agent reads every kind, because workloads may list any, and changes nothing but its own resources. It
// lists and watches, and never gets: to get whatever there is includes pods/exec and nodes/proxy.
//
// +kubebuilder:rbac:groups=control-plane.threeport.io,resources=threeportworkloads,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=control-plane.threeport.io,resources=threeportworkloads/status,verbs=get;patch
// +kubebuilder:rbac:groups=*,resources=*,verbs=list;watch
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=selfsubjectaccessreviews,verbs=create

// Watcher tells what is seen of the registry's workloads.
type Watcher interface {
	// ResourceStatuses returns what is seen of each resource of a workload, in the order in which they are listed.
	ResourceStatuses(workload string) []target.ResourceStatus
	// BaseKindErrors returns what is wrong with the kinds that are watched for every workload.
	BaseKindErrors() []string
	// Health returns the verdict on a workload; an empty status while it is not known.
	Health(workload string) (status, reason, message string)
	// DeletionsObserved reports whether the deletion of every object of a workload that is gone has been seen.
	DeletionsObserved(ctx context.Context, workload string) (bool, error)
	// RecordTransition tells of the latest change of a workload's health. The same again is no news.
	RecordTransition(workload string, change target.HealthTransition)
}

// Delivery tells how far the control plane is behind.
type Delivery interface {
	Progress(target.Instance) Progress
	// Declare keeps the account of a workload, until it is forgotten.
	Declare(target.Instance)
	// ForgetInstance drops the account of a workload that is gone.
	ForgetInstance(target.Instance)
	// RetryRejected sends again what the control plane refused for good.
	RetryRejected(target.Instance)
	// Durable reports whether what is pending outlives the process. The error is why it does not although it should.
	Durable() (bool, error)
}

// Progress tells how far the control plane is behind on a workload.
type Progress struct {
	Pending    int
	Since      time.Time // of the oldest pending report
	LastError  string
	Rejected   int64
	Rejections []v1alpha1.Rejection
	Dropped    int64 // Events, because no more may be kept
	Synced     bool  // what the control plane has of it is known
	// Operations are the latest that were accepted, as far as it is known, by resource without its version.
	Operations map[target.Resource]Operation
}

// Operation is what the control plane has accepted of a resource.
type Operation struct {
	Name            string // ADDED, MODIFIED or DELETED
	ResourceVersion string // of the object; empty if it is deleted
}

// Timing of the controller.
const (
	// resyncInterval is how often a status is compared with what delivery says.
	resyncInterval = 30 * time.Second
	// deletionGrace bounds how long a deleted ThreeportWorkload waits for its last reports.
	deletionGrace = 30 * time.Second
	// deletionPoll is how soon it looks again whether they are delivered. The wait grows with the time that it
	// has waited already, up to deletionPollMost.
	deletionPoll     = 100 * time.Millisecond
	deletionPollMost = 2 * time.Second
	// askTimeout bounds how long one look may take, so that a slow API server does not keep others waiting.
	askTimeout = 5 * time.Second
	// changeDelay gathers changes of one workload into one reconcile.
	changeDelay = 200 * time.Millisecond
)

// Reconciler reconciles ThreeportWorkloads.
type Reconciler struct {
	client   client.Client
	targets  *target.Registry
	watcher  Watcher
	delivery Delivery
	now      func() time.Time

	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	written map[string]*written
	deleted map[string]time.Time // when a workload that waits for its last reports was first seen deleted
}

// New returns a reconciler. [Reconciler.Watch] must be called before it is set up.
func New(c client.Client, targets *target.Registry, delivery Delivery) *Reconciler {
	return &Reconciler{
		client: c, targets: targets, delivery: delivery, now: time.Now,
		written: map[string]*written{}, deleted: map[string]time.Time{},
	}
}

// Watch sets where the reconciler learns what is seen. The watcher, in turn, is told to call
// [Reconciler.Changed], which is why it comes second.
func (r *Reconciler) Watch(w Watcher) { r.watcher = w }

// SetupWithManager makes the manager run the reconciler.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	changes := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.queue = queue
		return nil
	})
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.ThreeportWorkload{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WatchesRawSource(changes).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(r)
}

// Changed makes a workload's status be looked at soon. It does not block.
func (r *Reconciler) Changed(workload string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queue != nil {
		r.queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: workload}}, changeDelay)
	}
}

// Reconcile declares a workload to the registry, and writes what is known of it into its status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var wl v1alpha1.ThreeportWorkload
	if err := r.client.Get(ctx, req.NamespacedName, &wl); err != nil {
		if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, fmt.Errorf("get ThreeportWorkload %s: %w", req.Name, err)
		}
		r.release(req.Name)
		return ctrl.Result{}, nil
	}
	if !wl.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, &wl)
	}
	if before := wl.DeepCopy(); controllerutil.AddFinalizer(&wl, v1alpha1.Finalizer) {
		if err := r.client.Patch(ctx, &wl, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return ctrl.Result{}, fmt.Errorf("add finalizer to ThreeportWorkload %s: %w", wl.Name, err)
		}
	}
	r.delivery.Declare(instanceOf(&wl))
	before, known := r.targets.Workload(wl.Name)
	if r.targets.Track(workloadOf(&wl)) {
		if known && before.Instance != instanceOf(&wl) {
			r.forgetInstance(before.Instance)
		}
		ctrl.LoggerFrom(ctx).Info("Workload is tracked", "instance", instanceOf(&wl).String(),
			"resources", len(wl.Spec.WorkloadResourceInstances))
	}
	if retryWanted(&wl) != wl.Status.Delivery.Retried {
		r.delivery.RetryRejected(instanceOf(&wl))
	}
	return r.reconcileStatus(ctx, &wl)
}

// finalize lets a workload go once its last reports are delivered, or the time for that is over.
func (r *Reconciler) finalize(ctx context.Context, wl *v1alpha1.ThreeportWorkload) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(wl, v1alpha1.Finalizer) {
		r.release(wl.Name)
		return ctrl.Result{}, nil
	}
	if _, known := r.targets.Workload(wl.Name); !known { // it was deleted while nothing watched
		r.delivery.Declare(instanceOf(wl))
		r.targets.Track(workloadOf(wl))
	}
	if waited := r.waited(wl.Name); waited < deletionGrace && !r.settled(ctx, wl, deletionGrace-waited) {
		return ctrl.Result{RequeueAfter: min(max(waited/10, deletionPoll), deletionPollMost, deletionGrace-waited)}, nil
	}
	before := wl.DeepCopy()
	controllerutil.RemoveFinalizer(wl, v1alpha1.Finalizer)
	if err := r.client.Patch(ctx, wl, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("remove finalizer of ThreeportWorkload %s: %w", wl.Name, err)
	}
	r.release(wl.Name)
	r.forgetInstance(instanceOf(wl)) // of one that was deleted before this process began, too
	ctrl.LoggerFrom(ctx).Info("Workload is released", "instance", instanceOf(wl).String())
	return ctrl.Result{}, nil
}

// waited returns for how long a workload has been seen to be deleted. It is measured by one clock: that of the
// API server, which says when it was deleted, may be minutes ahead or behind.
func (r *Reconciler) waited(name string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, ok := r.deleted[name]
	if !ok {
		since = r.now()
		r.deleted[name] = since
	}
	return r.now().Sub(since)
}

// settled reports whether nothing of a deleted workload is still to be reported. That it cannot be known is
// no reason to keep it for longer than others.
func (r *Reconciler) settled(ctx context.Context, wl *v1alpha1.ThreeportWorkload, left time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, min(left, askTimeout))
	defer cancel()
	caughtUp, err := r.watcher.DeletionsObserved(ctx, wl.Name)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("Whether resources are gone cannot be known yet", "error", err.Error())
	}
	progress := r.delivery.Progress(instanceOf(wl))
	return err == nil && caughtUp && progress.Synced && progress.Pending == 0
}

// release lets go of all that is known of a workload.
func (r *Reconciler) release(name string) {
	before, known := r.targets.Workload(name)
	r.targets.Forget(name)
	if known {
		r.forgetInstance(before.Instance)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.written, name)
	delete(r.deleted, name)
}

// forgetInstance drops the account of an instance that no workload is of any more.
func (r *Reconciler) forgetInstance(instance target.Instance) {
	for _, name := range r.targets.Workloads() {
		if wl, ok := r.targets.Workload(name); ok && wl.Instance == instance {
			return
		}
	}
	r.delivery.ForgetInstance(instance)
}

// retryWanted is the value of the annotation that asks for rejected reports to be sent again.
func retryWanted(wl *v1alpha1.ThreeportWorkload) string {
	return shorten(wl.Annotations[v1alpha1.AnnotationRetryRejected], 1)
}

func instanceOf(wl *v1alpha1.ThreeportWorkload) target.Instance {
	return target.Instance{Type: target.Type(wl.Spec.WorkloadType), ID: wl.Spec.WorkloadInstanceID}
}

func workloadOf(wl *v1alpha1.ThreeportWorkload) target.Workload {
	out := target.Workload{Name: wl.Name, Instance: instanceOf(wl), Declared: wl.CreationTimestamp.Time}
	for _, res := range wl.Spec.WorkloadResourceInstances {
		out.Resources = append(out.Resources, target.Resource{
			Ref:     target.Ref{Group: res.Group, Kind: res.Kind, Namespace: res.Namespace, Name: res.Name},
			Version: res.Version,
			ID:      res.ThreeportID,
		})
	}
	return out
}
