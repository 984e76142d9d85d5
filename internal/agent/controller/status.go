package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// startGrace is for how long what an earlier process wrote stands while this one has not seen every resource for the
// first time: to write down at each start that nothing is seen yet would help nobody.
const startGrace = 10 * time.Second

// reconcileStatus writes a workload's status if it changed and its pace allows it; else it comes again when it does. The
// change of health that stands in the status then is announced.
func (r *Reconciler) reconcileStatus(ctx context.Context, wl *v1alpha1.ThreeportWorkload) (ctrl.Result, error) {
	progress := r.delivery.Progress(instanceOf(wl))
	v := r.verdict(wl.Name)
	status := r.status(wl, progress, v)
	next := resyncInterval
	if progress.Pending > 0 {
		next = statusInterval
	}
	if weighs := weigh(status, wl.Status); weighs > none {
		wait := r.postponed(wl, v, weighs)
		if wait > 0 {
			next = min(next, wait)
		} else if ok, err := r.write(ctx, wl, status); err != nil {
			return ctrl.Result{}, err
		} else if !ok {
			return ctrl.Result{RequeueAfter: changeDelay}, nil
		}
	}
	r.announce(wl)
	return ctrl.Result{RequeueAfter: next}, nil
}

// postponed returns how long a change of a status has to wait.
func (r *Reconciler) postponed(wl *v1alpha1.ThreeportWorkload, v verdict, weighs weight) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, now, stands := r.record(wl.Name), r.now(), wl.Status
	if w.last.IsZero() && stands.ObservedGeneration != 0 {
		w.last = w.begun // by an earlier process: what this one sees first may not be all
	}
	wait := w.wait(now, weighs)
	if v.status == "" && stands.Health != "" && stands.ObservedGeneration == wl.Generation {
		wait = max(wait, w.begun.Add(startGrace).Sub(now))
	}
	return wait
}

// write stores a status, unless the workload was changed since it was read: what stands in the status then, of which a
// change of health is told, would be another one. The workload has it then.
func (r *Reconciler) write(ctx context.Context, wl *v1alpha1.ThreeportWorkload, status v1alpha1.ThreeportWorkloadStatus) (bool, error) {
	before := wl.DeepCopy()
	wl.Status = status
	err := r.client.Status().Patch(ctx, wl, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("write status of ThreeportWorkload %s: %w", wl.Name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record(wl.Name).wrote(r.now())
	return true, nil
}

// status returns what is known of a workload.
func (r *Reconciler) status(wl *v1alpha1.ThreeportWorkload, progress Progress, v verdict) v1alpha1.ThreeportWorkloadStatus {
	status := v1alpha1.ThreeportWorkloadStatus{
		ObservedGeneration: wl.Generation,
		Conditions:         slices.Clone(wl.Status.Conditions),
	}
	logHealth(&status, wl.Status, v, r.now())
	sights := r.watcher.ResourceStatuses(wl.Name)
	status.Resources = resourceStatuses(sights, progress.Operations, reportedBefore(wl))
	count(&status, sights)
	status.Delivery = r.deliveryStatus(progress)
	status.Delivery.Retried = retryWanted(wl)
	kept, err := r.delivery.Durable()
	for _, c := range []metav1.Condition{
		watching(wl.Generation, sights, r.watcher.BaseKindErrors()),
		delivered(wl.Generation, status.Delivery),
		durable(wl.Generation, kept, err),
		healthy(wl.Generation, v),
	} {
		meta.SetStatusCondition(&status.Conditions, c)
	}
	fit(&status, wl)
	return status
}

// resourceStatuses tells of each resource what is seen, and what the control plane has accepted: in this process, or else
// in one before it.
func resourceStatuses(sights []target.ResourceStatus, now, before map[target.Resource]Operation) []v1alpha1.ResourceStatus {
	out := make([]v1alpha1.ResourceStatus, 0, len(sights))
	for _, s := range sights {
		rs := v1alpha1.ResourceStatus{
			Group: s.Group, Version: s.Version, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name,
			State: v1alpha1.ResourceState(s.State), Message: shorten(sentences(s.Message, s.Cause), len(sights)),
			Health: s.Health, Reason: word(s.Reason, ""),
		}
		if s.Pods.Total > 0 {
			rs.Pods = countOf(s.Pods)
		}
		operation, known := now[target.Resource{Ref: s.Ref, ID: s.ID}]
		if !known {
			operation = before[target.Resource{Ref: s.Ref}]
		}
		rs.LastOperation, rs.ReportedResourceVersion = operation.Name, cut(operation.ResourceVersion, mostWord)
		out = append(out, rs)
	}
	return out
}

// reportedBefore returns what stands in a status of what the control plane has accepted. After a change of the spec that
// may be of another instance.
func reportedBefore(wl *v1alpha1.ThreeportWorkload) map[target.Resource]Operation {
	if wl.Status.ObservedGeneration != wl.Generation {
		return nil
	}
	out := make(map[target.Resource]Operation, len(wl.Status.Resources))
	for _, rs := range wl.Status.Resources {
		ref := target.Ref{Group: rs.Group, Kind: rs.Kind, Namespace: rs.Namespace, Name: rs.Name}
		out[target.Resource{Ref: ref}] = Operation{Name: rs.LastOperation, ResourceVersion: rs.ReportedResourceVersion}
	}
	return out
}

// count sums up the resources of a workload and their pods.
func count(status *v1alpha1.ThreeportWorkloadStatus, sights []target.ResourceStatus) {
	resources, pods := target.Count{Total: len(sights)}, target.Count{}
	for _, s := range sights {
		if s.Health == statusHealthy {
			resources.Healthy++
		}
		pods.Total += s.Pods.Total
		pods.Healthy += s.Pods.Healthy
	}
	status.ResourceCount, status.Ready = countOf(resources), fmt.Sprintf("%d/%d", resources.Healthy, resources.Total)
	status.PodCount, status.PodsReady = countOf(pods), fmt.Sprintf("%d/%d", pods.Healthy, pods.Total)
}

func countOf(c target.Count) *v1alpha1.Count {
	return &v1alpha1.Count{Total: int32(c.Total), Healthy: int32(c.Healthy)} //nolint:gosec // no cluster has 2^31 objects
}

// behind is how old the oldest pending report may be before delivery counts as behind: a report that is
// just on its way is not worth two writes of the status.
const behind = 5 * time.Second

// deliveryStatus tells how far the control plane is behind.
func (r *Reconciler) deliveryStatus(p Progress) v1alpha1.DeliveryStatus {
	d := v1alpha1.DeliveryStatus{Rejected: p.Rejected, Dropped: p.Dropped}
	for _, rejection := range p.Rejections {
		rejection.Report, rejection.Reason = cut(rejection.Report, mostReport), shorten(rejection.Reason, 1)
		rejection.Time = metav1.NewTime(rejection.Time.Truncate(time.Second)) // as it is stored
		d.Rejections = append(d.Rejections, rejection)
	}
	if delay := r.now().Sub(p.Since); p.Pending > 0 && delay > behind {
		since := metav1.NewTime(p.Since.Truncate(time.Second))
		d.Pending, d.PendingSince, d.LastError = int64(p.Pending), &since, shorten(p.LastError, 1)
		d.DelaySeconds = int64(step(delay).Seconds())
	}
	return d
}

// step returns the largest of some steps that a delay has reached.
func step(delay time.Duration) time.Duration {
	if delay >= time.Hour {
		return delay.Truncate(time.Hour)
	}
	out := behind
	for _, seconds := range []time.Duration{10, 30, 60, 120, 300, 600, 1800} {
		if s := seconds * time.Second; delay >= s {
			out = s
		}
	}
	return out
}
