package controller

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/health"
)

// maxNoteBytes limits the note of an Event before the ellipsis: the API server allows 1,024 bytes.
const maxNoteBytes = 1024 - len("…")

// recordEvents writes Kubernetes Events about the changes that a stored status has made. If the process ends between the two
// writes, the Event is missing.
func (r *Reconciler) recordEvents(ctx context.Context, wl *v1alpha1.ThreeportWorkload, before v1alpha1.ThreeportWorkloadStatus) {
	r.recordHealthEvent(ctx, wl, before.Health)
	r.recordDeliveryEvent(ctx, wl, before.Conditions)
}

// recordHealthEvent writes an Event if the health has changed. Every new workload is Unknown at first, which has no Event.
func (r *Reconciler) recordHealthEvent(ctx context.Context, wl *v1alpha1.ThreeportWorkload, before string) {
	s := wl.Status
	if s.Health == before || s.Health == "" || before == "" && s.Health == statusUnknown {
		return
	}
	eventType := corev1.EventTypeNormal
	if health.Status(s.Health).IsFault() {
		eventType = corev1.EventTypeWarning
	}
	note := "The workload is " + s.Health
	if before != "" {
		note += ", it was " + before
	}
	if cause := joinUnique(s.Reason, s.Message); cause != "" {
		note += ": " + cause
	}
	r.events.record(ctx, wl, eventsv1.Event{Type: eventType, Reason: s.Health, Action: "Assess", Note: note})
}

// recordDeliveryEvent writes an Event if the control plane begins or ceases to refuse reports. Pending reports are no change:
// they may still be refused.
func (r *Reconciler) recordDeliveryEvent(ctx context.Context, wl *v1alpha1.ThreeportWorkload, before []metav1.Condition) {
	after := meta.FindStatusCondition(wl.Status.Conditions, v1alpha1.ConditionDelivered)
	if after == nil || !r.recordAnswer(wl, meta.FindStatusCondition(before, v1alpha1.ConditionDelivered), after) {
		return
	}
	eventType := corev1.EventTypeNormal
	if after.Status != metav1.ConditionTrue {
		eventType = corev1.EventTypeWarning
	}
	r.events.record(ctx, wl, eventsv1.Event{Type: eventType, Reason: after.Reason, Action: "Deliver", Note: after.Message})
}

// recordAnswer records the reason of the condition Delivered, and reports whether it differs from the last one. Pending does
// not count.
func (r *Reconciler) recordAnswer(wl *v1alpha1.ThreeportWorkload, before, after *metav1.Condition) bool {
	differs := false
	r.states.update(wl, r.now(), func(w *workloadState) {
		if w.answered == "" && before != nil && before.Reason != reasonPending { // an earlier process wrote the status
			w.answered = before.Reason
		}
		if after.Reason != reasonPending {
			differs = after.Reason != cmp.Or(w.answered, reasonDelivered)
			w.answered = after.Reason
		}
	})
	return differs
}

// eventRecorder writes Kubernetes Events. A failure is logged, and the first one only if the agent may not write Events: an
// earlier ClusterRole does not permit it. The recorder of client-go would log an error for each Event.
type eventRecorder struct {
	create    func(context.Context, *eventsv1.Event) error
	forbidden sync.Once // for the log
}

// eventName returns the name of an Event about an object. The API server limits names to 253 bytes, and a part of one must not end in a
// dot or a dash.
func eventName(object string, at time.Time) string {
	const maxObjectName = 200
	return fmt.Sprintf("%s.%x", strings.TrimRight(object[:min(len(object), maxObjectName)], ".-"), at.UnixNano())
}

// record completes an Event about a ThreeportWorkload and writes it.
func (r *eventRecorder) record(ctx context.Context, wl *v1alpha1.ThreeportWorkload, ev eventsv1.Event) {
	const controllerName = "threeport-agent"
	host, _ := os.Hostname() // only for people
	now := time.Now()
	// Events about cluster-scoped objects are in this namespace.
	ev.ObjectMeta = metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: eventName(wl.Name, now)}
	ev.EventTime = metav1.NewMicroTime(now)
	ev.ReportingController, ev.ReportingInstance = controllerName, truncate(controllerName+"-"+host, 128)
	ev.Note = truncate(ev.Note, maxNoteBytes)
	ev.Regarding = corev1.ObjectReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "ThreeportWorkload", Name: wl.Name, UID: wl.UID, ResourceVersion: wl.ResourceVersion,
	}
	err := r.create(ctx, &ev)
	switch {
	case err == nil:
	case apierrors.IsForbidden(err):
		r.forbidden.Do(func() {
			ctrl.LoggerFrom(ctx).Info("The agent may not write Kubernetes Events: apply the ClusterRole threeport-agent-workloads of this version", "error", err.Error())
		})
	default:
		ctrl.LoggerFrom(ctx).Info("A Kubernetes Event was not written", "reason", ev.Reason, "error", err.Error())
	}
}
