package controller

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/health"
)

// maxNoteBytes is the limit of the API server for the note of an Event.
const maxNoteBytes = 1024

// recordEvents writes Kubernetes Events about the changes that a stored status has made. If the process ends between the two writes,
// the Event is missing.
func (r *Reconciler) recordEvents(wl *v1alpha1.ThreeportWorkload, before v1alpha1.ThreeportWorkloadStatus) {
	if r.events == nil {
		return
	}
	r.recordHealthEvent(wl, before.Health)
	r.recordDeliveryEvent(wl, before.Conditions)
}

// recordHealthEvent writes an Event if the health has changed. Every new workload is Unknown at first, which has no Event.
func (r *Reconciler) recordHealthEvent(wl *v1alpha1.ThreeportWorkload, before string) {
	s := wl.Status
	if s.Health == before || s.Health == "" || before == "" && s.Health == statusUnknown {
		return
	}
	eventType := corev1.EventTypeNormal
	if s.Health == string(health.Unhealthy) || s.Health == string(health.Down) {
		eventType = corev1.EventTypeWarning
	}
	note := "The workload is " + s.Health
	if before != "" {
		note += ", it was " + before
	}
	if cause := joinUnique(s.Reason, s.Message); cause != "" {
		note += ": " + cause
	}
	r.events.Eventf(wl, nil, eventType, s.Health, "Assess", "%s", truncate(note, maxNoteBytes))
}

// recordDeliveryEvent writes an Event if the control plane begins or ceases to refuse reports. Pending reports are no change: they may
// still be refused.
func (r *Reconciler) recordDeliveryEvent(wl *v1alpha1.ThreeportWorkload, before []metav1.Condition) {
	after := meta.FindStatusCondition(wl.Status.Conditions, v1alpha1.ConditionDelivered)
	if after == nil || !r.isNewAnswer(wl.Name, meta.FindStatusCondition(before, v1alpha1.ConditionDelivered), after) {
		return
	}
	eventType := corev1.EventTypeNormal
	if after.Status != metav1.ConditionTrue {
		eventType = corev1.EventTypeWarning
	}
	r.events.Eventf(wl, nil, eventType, after.Reason, "Deliver", "%s", truncate(after.Message, maxNoteBytes))
}

// isNewAnswer records the reason of the condition Delivered, and reports whether it differs from the last one. Pending does not count.
func (r *Reconciler) isNewAnswer(workload string, before, after *metav1.Condition) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.writesOf(workload)
	if w.answered == "" && before != nil && before.Reason != reasonPending { // an earlier process wrote the status
		w.answered = before.Reason
	}
	if after.Reason == reasonPending {
		return false
	}
	last := cmp.Or(w.answered, reasonDelivered)
	w.answered = after.Reason
	return last != after.Reason
}
