package controller

import (
	"hash/fnv"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// Limits of status writes of a workload. A token bucket bounds all writes: writeBurst at once, and one for each
// statusInterval. Besides, an important change waits for statusInterval after the last write, and a routine change for
// resyncInterval.
const (
	statusInterval = 5 * time.Second
	writeBurst     = 5
)

// urgency is how soon a changed status has to be written.
type urgency int

const (
	unchanged urgency = iota
	routine           // another version was accepted, or the numbers of pending reports changed
	important         // health, pods, conditions
	immediate         // the state of a resource or the spec changed
)

// An unchanged status is written again after confirmInterval, less up to confirmSpread. An older one shows a reader that no agent
// confirms it.
const (
	confirmInterval = 5 * time.Minute
	confirmSpread   = 2 * time.Minute
)

// confirmationWait returns how long an unchanged status need not be written again. Workloads have different intervals,
// because after a start their writes come together.
func (r *Reconciler) confirmationWait(wl *v1alpha1.ThreeportWorkload) time.Duration {
	last := r.states.get(wl, r.now()).lastWrite
	if confirmed := wl.Status.ConfirmedAt; confirmed != nil && !confirmed.After(r.now()) { // else an earlier agent's clock was ahead
		last = later(last, confirmed.Time)
	}
	if last.IsZero() {
		return 0
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(wl.UID))
	interval := confirmInterval - time.Duration(hash.Sum32())*time.Millisecond%confirmSpread
	return max(last.Add(interval).Sub(r.now()), 0)
}

// urgencyOf compares a status with the current one. It ignores the Lease: an older CRD prunes the field, so a comparison would
// cause a write at every reconcile.
func urgencyOf(status, current v1alpha1.ThreeportWorkloadStatus) urgency {
	status.Lease = current.Lease
	switch {
	case equality.Semantic.DeepEqual(status, current):
		return unchanged
	case status.ObservedGeneration != current.ObservedGeneration, status.Delivery.Retried != current.Delivery.Retried,
		!sameStates(status.Resources, current.Resources):
		return immediate
	case equality.Semantic.DeepEqual(*withoutRoutine(status), *withoutRoutine(current)):
		return routine
	}
	return important
}

// sameStates compares the states of the resources that are in both lists. truncateToSize may omit different resources
// each time, depending on the lengths of messages.
func sameStates(a, b []v1alpha1.ResourceStatus) bool {
	type identity struct{ group, kind, namespace, name string }
	of := func(r v1alpha1.ResourceStatus) identity { return identity{r.Group, r.Kind, r.Namespace, r.Name} }
	states := make(map[identity][]v1alpha1.ResourceState, len(a)) // one for each version in which the resource is listed
	for _, r := range a {
		states[of(r)] = append(states[of(r)], r.State)
	}
	return !slices.ContainsFunc(b, func(r v1alpha1.ResourceStatus) bool {
		other := states[of(r)]
		return len(other) > 0 && !slices.Contains(other, r.State)
	})
}

// withoutRoutine returns a status without the values that change all the time in a busy workload or in an outage.
func withoutRoutine(status v1alpha1.ThreeportWorkloadStatus) *v1alpha1.ThreeportWorkloadStatus {
	out := status.DeepCopy()
	for i := range out.Resources {
		if r := &out.Resources[i]; r.ReportedResourceVersion != "" {
			r.ReportedResourceVersion = "some"
		}
	}
	if d := &out.Delivery; d.Pending > 0 {
		d.Pending, d.PendingSince, d.DelaySeconds = 1, nil, 0
		if d.LastError != "" {
			d.LastError = "some"
		}
		if c := meta.FindStatusCondition(out.Conditions, v1alpha1.ConditionDelivered); c != nil {
			c.Message = ""
		}
	}
	return out
}

// wait returns how long a write has to wait.
func (w *workloadState) wait(now time.Time, u urgency) time.Duration {
	next := w.bucketFullAt.Add(-(writeBurst - 1) * statusInterval)
	switch u {
	case unchanged, immediate:
	case important:
		next = later(next, w.lastWrite.Add(statusInterval))
	case routine:
		next = later(next, w.lastWrite.Add(resyncInterval))
	}
	return max(next.Sub(now), 0)
}

// recordWrite takes a write from the budget.
func (w *workloadState) recordWrite(now time.Time) {
	w.lastWrite, w.bucketFullAt = now, later(w.bucketFullAt, now).Add(statusInterval)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
