package controller

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// deliveryStatus returns the progress of delivery in the form of the status.
func (r *Reconciler) deliveryStatus(p target.DeliveryProgress) v1alpha1.DeliveryStatus {
	d := v1alpha1.DeliveryStatus{Rejected: p.Rejected, Dropped: p.Dropped}
	for _, rejection := range p.Rejections {
		d.Rejections = append(d.Rejections, v1alpha1.Rejection{
			Report: truncate(rejection.Report, maxReportBytes), Reason: truncateMessage(rejection.Reason, 1),
			Time: metav1.NewTime(rejection.Time.Truncate(time.Second)), // the resolution of metav1.Time
		})
	}
	if delay := r.now().Sub(p.Since); p.Pending > 0 && delay > target.OverdueAfter {
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
	step := target.OverdueAfter
	for _, seconds := range []time.Duration{10, 30, 60, 120, 300, 600, 1800} {
		if s := seconds * time.Second; delay >= s {
			step = s
		}
	}
	return step
}
