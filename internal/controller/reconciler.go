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
	"github.com/threeport/threeport-agent/internal/target"
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
	// Sights returns what is seen of each resource of a workload, in the order in which they are listed.
	Sights(workload string) []target.Sight
	// Troubles returns what is wrong with the kinds that are watched for every workload.
	Troubles() []string
	// Health returns the verdict on a workload; an empty status while it is not known.
	Health(workload string) (status, reason, message string)
	// CaughtUp reports whether the deletion of every object of a workload that is gone has been seen.
	CaughtUp(ctx context.Context, workload string) (bool, error)
}

// Delivery tells how far the control plane is behind.
type Delivery interface {
	Progress(target.Instance) Progress
	// ForgetInstance drops the account of a workload that is gone.
	ForgetInstance(target.Instance)
}

// Progress tells how far the control plane is behind on a workload.
type Progress struct {
	Pending    int
	Since      time.Time // of the oldest pending report
	LastError  string
	Rejected   int64
	Rejections []v1alpha1.Rejection
}

// Timing of the controller.
const (
	// statusInterval is the least time between two writes of one status, unless a resource's state changed.
	statusInterval = 5 * time.Second
	// resyncInterval is how often a status is compared with what delivery says.
	resyncInterval = 30 * time.Second
	// deletionGrace bounds how long a deleted ThreeportWorkload waits for its last reports.
	deletionGrace = 30 * time.Second
	// deletionPoll is how often it looks whether they are delivered.
	deletionPoll = 100 * time.Millisecond
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
	written map[string]time.Time // when a workload's status was written last
}

// New returns a reconciler. [Reconciler.Watch] must be called before it is set up.
func New(c client.Client, targets *target.Registry, delivery Delivery) *Reconciler {
	return &Reconciler{client: c, targets: targets, delivery: delivery, now: time.Now, written: map[string]time.Time{}}
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
		For(&v1alpha1.ThreeportWorkload{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
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
		r.forget(req.Name)
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
	if r.targets.Track(workloadOf(&wl)) {
		ctrl.LoggerFrom(ctx).Info("Workload is tracked", "instance", instanceOf(&wl).String(),
			"resources", len(wl.Spec.WorkloadResourceInstances))
	}
	return r.reconcileStatus(ctx, &wl)
}

// finalize lets a workload go once its last reports are delivered, or the time for that is over.
func (r *Reconciler) finalize(ctx context.Context, wl *v1alpha1.ThreeportWorkload) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(wl, v1alpha1.Finalizer) {
		r.forget(wl.Name)
		return ctrl.Result{}, nil
	}
	if r.now().Before(wl.DeletionTimestamp.Add(deletionGrace)) {
		caughtUp, err := r.watcher.CaughtUp(ctx, wl.Name)
		if err != nil {
			return ctrl.Result{}, fmt.Errorf("wait for the deletion of resources of ThreeportWorkload %s: %w", wl.Name, err)
		}
		if !caughtUp || r.delivery.Progress(instanceOf(wl)).Pending > 0 {
			return ctrl.Result{RequeueAfter: deletionPoll}, nil
		}
	}
	r.forget(wl.Name)
	r.delivery.ForgetInstance(instanceOf(wl))
	before := wl.DeepCopy()
	controllerutil.RemoveFinalizer(wl, v1alpha1.Finalizer)
	if err := r.client.Patch(ctx, wl, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("remove finalizer of ThreeportWorkload %s: %w", wl.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Workload is released", "instance", instanceOf(wl).String())
	return ctrl.Result{}, nil
}

func (r *Reconciler) forget(name string) {
	r.targets.Forget(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.written, name)
}

func instanceOf(wl *v1alpha1.ThreeportWorkload) target.Instance {
	return target.Instance{Type: target.Type(wl.Spec.WorkloadType), ID: wl.Spec.WorkloadInstanceID}
}

func workloadOf(wl *v1alpha1.ThreeportWorkload) target.Workload {
	out := target.Workload{Name: wl.Name, Instance: instanceOf(wl)}
	for _, res := range wl.Spec.WorkloadResourceInstances {
		out.Resources = append(out.Resources, target.Resource{
			Ref:     target.Ref{Group: res.Group, Kind: res.Kind, Namespace: res.Namespace, Name: res.Name},
			Version: res.Version,
			ID:      res.ThreeportID,
		})
	}
	return out
}
