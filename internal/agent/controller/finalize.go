package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Timing of a deletion.
const (
	// deletionGrace limits the time for which a deleted ThreeportWorkload waits for its last reports.
	deletionGrace = 30 * time.Second
	// minDeletionPoll and maxDeletionPoll limit the interval of the checks. It grows with the time waited so far.
	minDeletionPoll = 100 * time.Millisecond
	maxDeletionPoll = 2 * time.Second
	// checkTimeout limits one check, so that a slow API server does not block the workers.
	checkTimeout = 5 * time.Second
	// maxDeletionChecks limits the workers that check at a time. Others reconcile workloads that exist.
	maxDeletionChecks = 2
)

// finalize removes the finalizer after the last reports were delivered, or after deletionGrace.
func (r *Reconciler) finalize(ctx context.Context, wl *v1alpha1.ThreeportWorkload) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(wl, v1alpha1.Finalizer) {
		r.forget(wl.Name)
		return ctrl.Result{}, nil
	}
	waited, first := r.recordDeletion(wl)
	if first { // hundreds may be deleted at once, and their requests would hold all workers: new workloads come before them
		return ctrl.Result{RequeueAfter: nextStepDelay, Priority: new(statusPriority)}, nil
	}
	tracked, ok, err := r.trackDeleted(ctx, wl)
	switch {
	case errors.Is(err, errNewerList): // it will be reconciled
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	if ok && waited < deletionGrace && !r.lastReportsDelivered(ctx, tracked, deletionGrace-waited) {
		return ctrl.Result{RequeueAfter: min(max(waited/10, minDeletionPoll), maxDeletionPoll, deletionGrace-waited)}, nil
	}
	err = r.patchFinalizers(ctx, wl, controllerutil.RemoveFinalizer)
	switch {
	case errors.Is(err, errNewerList): // also if it no longer exists
		return ctrl.Result{}, nil
	case client.IgnoreNotFound(err) != nil:
		return ctrl.Result{}, fmt.Errorf("remove finalizer of ThreeportWorkload %s: %w", wl.Name, err)
	}
	r.forget(wl.Name)
	if instance := instanceOf(wl); len(r.targets.WorkloadNamesOf(instance)) == 0 {
		r.delivery.ForgetInstance(instance) // The spec may have changed since the workload was tracked.
	}
	ctrl.LoggerFrom(ctx).Info("Released workload", "instance", instanceOf(wl).String())
	return ctrl.Result{}, nil
}

// patchFinalizers adds or removes the agent's finalizer. The cache does not hold those of others, so it reads them.
func (r *Reconciler) patchFinalizers(ctx context.Context, wl *v1alpha1.ThreeportWorkload, change func(o client.Object, finalizer string) bool) error {
	whole, err := readWhole(ctx, r.reader, wl)
	if err != nil {
		return err
	}
	before := whole.DeepCopy()
	if change(whole, v1alpha1.Finalizer) {
		if err := r.client.Patch(ctx, whole, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
	}
	change(wl, v1alpha1.Finalizer)
	wl.ResourceVersion = whole.ResourceVersion
	return nil
}

// trackDeleted returns a deleted workload as it is tracked. The spec may name another instance since. It tracks a workload that was
// deleted while no agent ran, because its last reports are still due. It returns false for one whose list is not held.
func (r *Reconciler) trackDeleted(ctx context.Context, wl *v1alpha1.ThreeportWorkload) (target.Workload, bool, error) {
	if tracked, ok := r.targets.Workload(wl.Name); ok {
		return tracked, true, nil
	}
	list, err := r.lists.of(ctx, r.reader, wl)
	if err != nil || list.excluded {
		return target.Workload{}, false, err
	}
	workload := workloadOf(wl, list.resources)
	r.delivery.Declare(workload.Instance)
	r.targets.Track(workload)
	return workload, true, nil
}

// recordDeletion records that this process sees the deletion of a workload. It returns the time since the first call, and whether this is
// the first one. It does not use the deletion timestamp, because the clock of the API server may differ by minutes.
func (r *Reconciler) recordDeletion(wl *v1alpha1.ThreeportWorkload) (waited time.Duration, first bool) {
	now := r.now()
	r.states.update(wl, now, func(w *workloadState) {
		if first = w.deletedSince.IsZero(); first {
			w.deletedSince = now
		}
		waited = now.Sub(w.deletedSince)
	})
	return waited, first
}

// lastReportsDelivered reports whether all reports of a deleted workload are delivered. If that cannot be checked, it
// reports false, so that the workload waits until deletionGrace is over.
func (r *Reconciler) lastReportsDelivered(ctx context.Context, wl target.Workload, left time.Duration) bool {
	if !r.isDelivered(wl.Instance) { // the check below makes requests
		return false
	}
	select {
	case r.deletionChecks <- struct{}{}:
		defer func() { <-r.deletionChecks }()
	default:
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, min(left, checkTimeout))
	defer cancel()
	observed, err := r.reporter.DeletionsObserved(ctx, wl.Name)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("Checking the deletion of resources failed", "error", err.Error())
	}
	return err == nil && observed && r.isDelivered(wl.Instance)
}

// isDelivered reports whether no report of an instance is pending.
func (r *Reconciler) isDelivered(instance target.Instance) bool {
	progress := r.delivery.Progress(instance)
	return progress.Synced && progress.Pending == 0
}
