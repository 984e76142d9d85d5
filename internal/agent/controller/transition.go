package controller

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// The statuses that the conditions distinguish.
const (
	statusHealthy   = "Healthy"
	statusUnhealthy = "Unhealthy"
	statusDown      = "Down"
	statusUnknown   = "Unknown"
)

// verdict is the verdict on a workload, its texts short enough to be stored. The zero verdict means that the
// workload has not been assessed.
type verdict struct{ status, reason, message string }

// verdict returns the reporter's verdict on a workload; Unknown for an excluded one.
func (r *Reconciler) verdict(workload string) verdict {
	if exclusion := r.lists.exclusion(workload); exclusion != "" {
		return verdict{statusUnknown, reasonTooManyResources, exclusion}
	}
	status, reason, message := r.reporter.Health(workload)
	if status == "" {
		return verdict{}
	}
	v := verdict{
		status: truncate(status, maxReasonBytes), reason: conditionReason(reason, ""), message: truncate(message, maxMessageBytes),
	}
	if v.message == "" && v.status != statusHealthy {
		v.message = truncate(reason, maxMessageBytes) // The reason is the only explanation; conditionReason may have changed it.
	}
	return v
}

// transitionTime is when a workload got its health: with the first of its resources that have the same health, or else now. If another
// resource was worse until now, the transition is the end of that.
func transitionTime(resources []v1alpha1.ResourceStatus, current v1alpha1.ThreeportWorkloadStatus, health string, now time.Time) time.Time {
	if current.Health == statusDown || current.Health == statusUnhealthy {
		return now
	}
	at := now
	for i := range resources {
		since := resources[i].HealthSince
		if resources[i].Health == health && since != nil && since.Time.Before(at) {
			at = since.Time
		}
	}
	if before := current.HealthSince; before != nil && at.Before(before.Time) && !isInitial(current.HealthChange) {
		return now
	}
	return at
}

// isInitial reports whether a transition is the first one to Unknown. Every new workload has it, so it says nothing about the
// cluster, and is not reported.
func isInitial(change *v1alpha1.HealthChange) bool {
	return change != nil && change.From == "" && change.To == statusUnknown
}

// setHealth writes a verdict into a status. The current status is the log of transitions: a verdict with another health
// is a transition at a time. A workload that has not been assessed keeps its health.
func setHealth(status *v1alpha1.ThreeportWorkloadStatus, current v1alpha1.ThreeportWorkloadStatus, v verdict, at time.Time) {
	status.Health, status.Reason, status.Message = current.Health, current.Reason, current.Message
	status.HealthSince, status.NotHealthySince, status.HealthChange = current.HealthSince, current.NotHealthySince, current.HealthChange
	if v.status == "" {
		return
	}
	status.Health, status.Reason, status.Message = v.status, v.reason, v.message
	if v.status == current.Health {
		return
	}
	at = at.Truncate(time.Second) // the resolution of metav1.Time
	if before := current.HealthSince; before != nil && !at.After(before.Time) && !isInitial(current.HealthChange) {
		// The transitions fall into one second, or this clock is behind. The time identifies a transition, so it must differ.
		at = before.Add(time.Second)
	}
	status.HealthSince = &metav1.Time{Time: at}
	switch {
	case v.status == statusHealthy:
		status.NotHealthySince = nil
	case current.NotHealthySince == nil && current.Health != "" && current.Health != statusHealthy:
		status.NotHealthySince = current.HealthSince // it was never Healthy, and an earlier agent wrote its status
	case current.NotHealthySince == nil, isInitial(current.HealthChange):
		status.NotHealthySince = status.HealthSince
	}
	status.HealthChange = &v1alpha1.HealthChange{From: current.Health, To: v.status, Reason: v.reason, Message: v.message}
}

// oneMoment is how far the starts of a health and of its cause may be apart to be one start: statuses are written seconds apart.
const oneMoment = 5 * time.Second

// causeSince returns since when the reason of a status holds: since the current status, or since the change of health, or since now.
// It returns nil if there is no reason, or if an earlier agent wrote the current one.
func causeSince(status, current v1alpha1.ThreeportWorkloadStatus, now time.Time) *metav1.Time {
	now = now.Truncate(time.Second) // the resolution of metav1.Time
	switch {
	case status.Reason == "":
		return nil
	case health.IsSameCause(status.Reason, current.Reason):
		return current.CauseSince
	case status.Health != current.Health, status.HealthSince != nil && now.Sub(status.HealthSince.Time) <= oneMoment:
		return status.HealthSince
	}
	return &metav1.Time{Time: now}
}

// recordTransition gives the reporter the transition that is stored in a workload's status. Each reconcile repeats it, so
// that a transition is reported even if the process or the leader that stored it ended before.
func (r *Reconciler) recordTransition(wl *v1alpha1.ThreeportWorkload) {
	s := wl.Status
	if s.HealthChange == nil || s.HealthSince == nil || isInitial(s.HealthChange) {
		return
	}
	stale := false
	r.states.update(wl, r.now(), func(w *workloadState) {
		stale = s.HealthSince.Time.Before(w.lastTransition) // The cache does not have the latest write yet.
		w.lastTransition = later(w.lastTransition, s.HealthSince.Time)
	})
	if !stale {
		cause := target.Cause{Reason: s.Reason}
		if s.CauseSince != nil {
			cause.Since = s.CauseSince.UTC()
		}
		r.reporter.RecordTransition(wl.Name, target.HealthTransition{
			UID: wl.UID, From: s.HealthChange.From, To: s.HealthChange.To,
			Reason: s.HealthChange.Reason, Message: s.HealthChange.Message, At: s.HealthSince.Time, Cause: cause,
		})
	}
}
