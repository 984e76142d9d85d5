package controller

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// The words of a verdict that conditions have words of their own for.
const (
	statusHealthy = "Healthy"
	statusUnknown = "Unknown"
)

// verdict is what the watcher says of a workload, in texts that can be stored. Without a status it is not judged.
type verdict struct{ status, reason, message string }

func (r *Reconciler) verdict(workload string) verdict {
	status, reason, message := r.watcher.Health(workload)
	if status == "" {
		return verdict{}
	}
	v := verdict{cut(status, mostWord), word(reason, ""), cut(message, mostMessage)}
	if v.message == "" && v.status != statusHealthy {
		v.message = cut(reason, mostMessage) // it is all that there is to answer
	}
	return v
}

// logHealth puts the verdict into a status. The one that stands there is the log of changes: a change is what differs
// from it. A workload that is not judged has not changed.
func logHealth(status *v1alpha1.ThreeportWorkloadStatus, stands v1alpha1.ThreeportWorkloadStatus, v verdict, now time.Time) {
	status.Health, status.Reason, status.Message = stands.Health, stands.Reason, stands.Message
	status.HealthSince, status.HealthChange = stands.HealthSince, stands.HealthChange
	if v.status == "" {
		return
	}
	status.Health, status.Reason, status.Message = v.status, v.reason, v.message
	if v.status == stands.Health {
		return
	}
	at := now.Truncate(time.Second) // as it is stored
	if before := stands.HealthSince; before != nil && !at.After(before.Time) {
		at = before.Add(time.Second) // another clock, or the same second: each change has a time of its own
	}
	status.HealthSince = &metav1.Time{Time: at}
	status.HealthChange = &v1alpha1.HealthChange{From: stands.Health, To: v.status, Reason: v.reason, Message: v.message}
}

// announce tells the watcher of the change that stands in a workload's status. It is told again and again, so that one
// which was written just before the end of a process, or by another leader, is told too. That a new workload is Unknown
// at first is no news.
func (r *Reconciler) announce(wl *v1alpha1.ThreeportWorkload) {
	s := wl.Status
	if s.HealthChange == nil || s.HealthSince == nil || s.HealthChange.From == "" && s.HealthChange.To == statusUnknown {
		return
	}
	r.mu.Lock()
	written := r.record(wl.Name)
	stale := s.HealthSince.Time.Before(written.announced) // the cache is behind what was written
	if !stale {
		written.announced = s.HealthSince.Time
	}
	r.mu.Unlock()
	if !stale {
		r.watcher.RecordTransition(wl.Name, target.HealthTransition{
			UID: wl.UID, From: s.HealthChange.From, To: s.HealthChange.To,
			Reason: s.HealthChange.Reason, Message: s.HealthChange.Message, At: s.HealthSince.Time,
		})
	}
}
