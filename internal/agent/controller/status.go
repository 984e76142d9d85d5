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

// startGrace is the time after a start during which the status of an earlier process is kept although this process has
// not observed every resource yet. Otherwise each start would make the status Unknown for a moment.
const startGrace = 10 * time.Second

// reconcileStatus writes a workload's status if it changed and the write budget permits; otherwise it schedules the next
// attempt. Then it reports the transition in the stored status.
func (r *Reconciler) reconcileStatus(ctx context.Context, wl *v1alpha1.ThreeportWorkload) (ctrl.Result, error) {
	progress := r.delivery.Progress(instanceOf(wl))
	v := r.verdict(wl.Name)
	status := r.status(wl, progress, v)
	next := resyncInterval
	if progress.Pending > 0 {
		next = r.pollInterval()
	}
	u := urgencyOf(status, wl.Status)
	if u == unchanged {
		if wait := r.confirmationWait(wl); wait > 0 {
			next = min(next, wait)
		} else {
			u = routine
		}
	}
	if u > unchanged {
		if wait := r.writeDelay(wl, v, u); wait > 0 {
			next = min(next, wait)
		} else if ok, err := r.write(ctx, wl, status); err != nil {
			return ctrl.Result{}, err
		} else if !ok {
			return ctrl.Result{RequeueAfter: changeDelay}, nil
		}
	}
	r.recordTransition(wl)
	return ctrl.Result{RequeueAfter: next}, nil
}

// pollInterval is the time between two reconciles of a workload with pending reports, or beside one that changed. Reports to an instance
// that the control plane does not know are always pending.
func (r *Reconciler) pollInterval() time.Duration {
	return min(max(statusInterval, time.Duration(r.states.count())*pollSpacing), resyncInterval)
}

// writeDelay returns how long the write of a status has to wait.
func (r *Reconciler) writeDelay(wl *v1alpha1.ThreeportWorkload, v verdict, u urgency) time.Duration {
	now, current := r.now(), wl.Status
	w := r.states.get(wl, now)
	if w.lastWrite.IsZero() && current.ObservedGeneration != 0 {
		w.lastWrite = w.firstSeen // An earlier process wrote the status. The first observations of this one may be incomplete.
	}
	wait := w.wait(now, u)
	if v.status == "" && current.Health != "" && current.ObservedGeneration == wl.Generation {
		wait = max(wait, w.firstSeen.Add(startGrace).Sub(now))
	}
	return wait
}

// write stores a status, also in wl. It uses optimistic locking, so that a reported transition matches the stored status,
// and returns false if the workload has changed since it was read.
func (r *Reconciler) write(ctx context.Context, wl *v1alpha1.ThreeportWorkload, status v1alpha1.ThreeportWorkloadStatus) (bool, error) {
	before := wl.DeepCopy()
	wl.Status = status
	wl.Status.ConfirmedAt = new(metav1.NewTime(r.now()))
	err := r.client.Status().Patch(ctx, wl, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("write status of ThreeportWorkload %s: %w", wl.Name, err)
	}
	r.states.update(wl, r.now(), func(w *workloadState) { w.recordWrite(r.now()) })
	r.recordEvents(ctx, wl, before.Status)
	return true, nil
}

// status returns the status of a workload.
func (r *Reconciler) status(wl *v1alpha1.ThreeportWorkload, progress target.DeliveryProgress, v verdict) v1alpha1.ThreeportWorkloadStatus {
	status := v1alpha1.ThreeportWorkloadStatus{
		ObservedGeneration: wl.Generation,
		Conditions:         slices.Clone(wl.Status.Conditions),
		ConfirmedAt:        wl.Status.ConfirmedAt,
		Lease:              r.lease,
	}
	current := withoutFutureTimes(wl.Status, r.now())
	observed, pods := r.reporter.ResourceStatuses(wl.Name)
	status.Resources = resourceStatuses(observed, progress.Operations, storedResources(wl))
	setHealthSince(status.Resources, current.Resources, r.states.get(wl, r.now()).firstSeen, r.now())
	setHealth(&status, current, v, transitionTime(status.Resources, current, v.status, r.now()))
	status.CauseSince = causeSince(status, current, r.now())
	setCounts(&status, observed, pods)
	status.Delivery = r.deliveryStatus(progress)
	status.Delivery.Retried = retryAnnotation(wl)
	durable, err := r.state.Durable()
	for _, c := range []metav1.Condition{
		watchingCondition(wl.Generation, r.lists.exclusion(wl.Name), observed, r.reporter.BaseKindErrors(), r.targets.LabelUse(wl.Name)),
		deliveredCondition(wl.Generation, status.Delivery, progress.Refusal, findRemoved(instanceOf(wl), observed, progress.Removed)),
		durableCondition(wl.Generation, durable, err),
		healthyCondition(wl.Generation, v),
	} {
		meta.SetStatusCondition(&status.Conditions, c)
	}
	setShared(&status.Conditions, wl, r.targets.WorkloadNamesOf(instanceOf(wl)), r.targets.SharedResources(wl.Name))
	list, _ := r.lists.find(wl)
	truncateToSize(&status, list.objectBytes)
	return status
}

// resourceStatuses returns the status of each resource: its observed status, and the operation that the control plane
// accepted in this process, or else in an earlier one.
func resourceStatuses(
	observed []target.ResourceStatus, accepted map[target.Resource]target.LastOperation, stored map[target.Ref]v1alpha1.ResourceStatus,
) []v1alpha1.ResourceStatus {
	out := make([]v1alpha1.ResourceStatus, 0, len(observed))
	for _, s := range observed {
		rs := v1alpha1.ResourceStatus{
			Group: s.Group, Version: s.Version, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name,
			State: v1alpha1.ResourceState(s.State), Message: truncateMessage(joinUnique(s.Message, s.Cause), len(observed)),
			Health: s.Health, Reason: conditionReason(s.Reason, ""),
		}
		if s.Pods.Total > 0 {
			rs.Pods = countOf(s.Pods)
		}
		if !s.Since.IsZero() {
			rs.HealthSince = &metav1.Time{Time: s.Since}
		}
		operation, version := stored[s.Ref].LastOperation, stored[s.Ref].ReportedResourceVersion
		if last, ok := accepted[target.Resource{Ref: s.Ref, ID: s.ID}]; ok {
			operation, version = operationName(last), last.ResourceVersion
		}
		rs.LastOperation, rs.ReportedResourceVersion = operation, truncate(version, maxReasonBytes)
		out = append(out, rs)
	}
	return out
}

// maxClockLead is how far the clock of another agent may be ahead of this one.
const maxClockLead = 5 * time.Minute

// withoutFutureTimes returns a status with now in place of times that are far ahead. No agent wrote them. The next change is later than
// the last one, so such a time might never pass, or become too late for the API server.
func withoutFutureTimes(status v1alpha1.ThreeportWorkloadStatus, now time.Time) v1alpha1.ThreeportWorkloadStatus {
	replace := func(at **metav1.Time) {
		if *at != nil && (*at).After(now.Add(maxClockLead)) {
			*at = &metav1.Time{Time: now.Truncate(time.Second)}
		}
	}
	replace(&status.HealthSince)
	replace(&status.NotHealthySince)
	replace(&status.CauseSince)
	status.Resources = slices.Clone(status.Resources)
	for i := range status.Resources {
		replace(&status.Resources[i].HealthSince)
	}
	return status
}

// setHealthSince sets the time of the latest change of health of each resource that is not Healthy:
//
//   - With an unchanged health it is that of the last status. That may be of an earlier spec, because the health belongs to the
//     object.
//   - With another health it is the time that the resource has from the cluster, or else now. It is not before the previous change.
//   - A time of the first seconds after firstSeen gives way to an earlier one from the cluster: this process had not seen all of the
//     objects yet.
func setHealthSince(resources, last []v1alpha1.ResourceStatus, firstSeen, now time.Time) {
	known := make(map[target.Ref]v1alpha1.ResourceStatus, len(last))
	for _, rs := range last {
		known[refOf(rs)] = rs
	}
	for i := range resources {
		rs := &resources[i]
		if rs.Health == "" || rs.Health == statusHealthy {
			rs.HealthSince = nil
			continue
		}
		previous := known[refOf(*rs)]
		rs.HealthSince = healthSince(rs.HealthSince, previous.HealthSince, rs.Health != previous.Health, firstSeen, now)
	}
}

// healthSince returns the start of a health that the cluster recorded at a time, or nil. The previous health began at another.
func healthSince(recorded, previous *metav1.Time, changed bool, firstSeen, now time.Time) *metav1.Time {
	since := now
	if recorded != nil && recorded.Time.Before(now) {
		since = recorded.Time
	}
	since = since.Truncate(time.Second) // the resolution of metav1.Time
	firstSeen = firstSeen.Truncate(time.Second)
	if previous == nil || changed && since.After(previous.Time) {
		return &metav1.Time{Time: since}
	}
	isOfStart := !previous.Time.Before(firstSeen) && previous.Time.Before(firstSeen.Add(startGrace))
	if isOfStart && recorded != nil && since.Before(previous.Time) {
		return &metav1.Time{Time: since}
	}
	return previous
}

func refOf(rs v1alpha1.ResourceStatus) target.Ref {
	return target.Ref{Group: rs.Group, Kind: rs.Kind, Namespace: rs.Namespace, Name: rs.Name}
}

// operationName returns the word for an accepted operation.
func operationName(op target.LastOperation) string {
	switch {
	case op.Deleted:
		return "DELETED"
	case op.Modified:
		return "MODIFIED"
	}
	return "ADDED"
}

// storedResources returns the resources in the current status. It returns none after a change of the spec: the status may be
// that of another instance.
func storedResources(wl *v1alpha1.ThreeportWorkload) map[target.Ref]v1alpha1.ResourceStatus {
	if wl.Status.ObservedGeneration != wl.Generation {
		return nil
	}
	out := make(map[target.Ref]v1alpha1.ResourceStatus, len(wl.Status.Resources))
	for _, rs := range wl.Status.Resources {
		out[refOf(rs)] = rs
	}
	return out
}

// setCounts writes the numbers of resources and pods into a status.
func setCounts(status *v1alpha1.ThreeportWorkloadStatus, observed []target.ResourceStatus, pods target.Count) {
	resources := target.Count{Total: len(observed)}
	for _, s := range observed {
		if s.Health == statusHealthy {
			resources.Healthy++
		}
	}
	status.ResourceCount, status.Ready = countOf(resources), fmt.Sprintf("%d/%d", resources.Healthy, resources.Total)
	status.PodCount, status.PodsReady = countOf(pods), fmt.Sprintf("%d/%d", pods.Healthy, pods.Total)
}

func countOf(c target.Count) *v1alpha1.Count {
	return &v1alpha1.Count{Total: int32(c.Total), Healthy: int32(c.Healthy)} //nolint:gosec // no cluster has 2^31 objects
}
