package controller

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// lateAfter is the age at which a pending report appears in the status. A younger report is about to be delivered, and
// would cost two writes of the status.
const lateAfter = 5 * time.Second

// deliveryStatus returns the progress of delivery in the form of the status.
func (r *Reconciler) deliveryStatus(p Progress) v1alpha1.DeliveryStatus {
	d := v1alpha1.DeliveryStatus{Rejected: p.Rejected, Dropped: p.Dropped}
	for _, rejection := range p.Rejections {
		rejection.Report, rejection.Reason = truncate(rejection.Report, maxReportBytes), truncateMessage(rejection.Reason, 1)
		rejection.Time = metav1.NewTime(rejection.Time.Truncate(time.Second)) // the resolution of metav1.Time
		d.Rejections = append(d.Rejections, rejection)
	}
	if delay := r.now().Sub(p.Since); p.Pending > 0 && delay > lateAfter {
		since := metav1.NewTime(p.Since.Truncate(time.Second))
		d.Pending, d.PendingSince, d.LastError = int64(p.Pending), &since, truncateMessage(p.LastError, 1)
		d.DelaySeconds = int64(delayStep(delay).Seconds())
	}
	return d
}

// delayStep rounds a delay down to one of a few steps, so that the status does not change all the time.
func delayStep(delay time.Duration) time.Duration {
	if delay >= time.Hour {
		return delay.Truncate(time.Hour)
	}
	step := lateAfter
	for _, seconds := range []time.Duration{10, 30, 60, 120, 300, 600, 1800} {
		if s := seconds * time.Second; delay >= s {
			step = s
		}
	}
	return step
}
