package controller

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// How often a workload's status is written at most: a second one writeBurst times at once, and then one for each
// statusInterval, whatever happens. What is not urgent waits for statusInterval after the last write, and routine for
// resyncInterval.
const (
	statusInterval = 5 * time.Second
	writeBurst     = 5
)

// weight tells how soon a change of a status is to be written.
type weight int

const (
	none    weight = iota
	routine        // the control plane has a newer version, or is behind by other numbers
	news           // health, pods, conditions
	urgent         // a resource appeared or is gone, the spec is another one
)

// weigh compares a status with the one that stands.
func weigh(status, stands v1alpha1.ThreeportWorkloadStatus) weight {
	switch {
	case equality.Semantic.DeepEqual(status, stands):
		return none
	case status.ObservedGeneration != stands.ObservedGeneration, status.Delivery.Retried != stands.Delivery.Retried,
		!sameStates(status.Resources, stands.Resources):
		return urgent
	case equality.Semantic.DeepEqual(*withoutRoutine(status), *withoutRoutine(stands)):
		return routine
	}
	return news
}

// sameStates compares what is seen of resources, as far as both statuses list them: which ones are left out of a status
// that is too large depends on how long the messages are.
func sameStates(a, b []v1alpha1.ResourceStatus) bool {
	type identity struct{ group, kind, namespace, name string }
	of := func(r v1alpha1.ResourceStatus) identity { return identity{r.Group, r.Kind, r.Namespace, r.Name} }
	states := make(map[identity][]v1alpha1.ResourceState, len(a)) // more than one if it is listed in several versions
	for _, r := range a {
		states[of(r)] = append(states[of(r)], r.State)
	}
	return !slices.ContainsFunc(b, func(r v1alpha1.ResourceStatus) bool {
		before := states[of(r)]
		return len(before) > 0 && !slices.Contains(before, r.State)
	})
}

// withoutRoutine returns a status without what changes all the time in a busy workload, or in an outage.
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

// written is what this process remembers of writing a workload's status.
type written struct {
	begun time.Time // when it was first looked at
	last  time.Time // when it was written; or begun, if another process wrote it before
	// paid is up to when the writes so far are paid for, at one for each statusInterval.
	paid      time.Time
	announced time.Time // the time of the latest change that was announced
}

// record returns what is remembered of a workload; with mu held.
func (r *Reconciler) record(workload string) *written {
	w := r.written[workload]
	if w == nil {
		w = &written{begun: r.now()}
		r.written[workload] = w
	}
	return w
}

// wait returns how long a write has to wait.
func (w *written) wait(now time.Time, weighs weight) time.Duration {
	next := w.paid.Add(-(writeBurst - 1) * statusInterval)
	switch weighs {
	case none, urgent:
	case news:
		next = later(next, w.last.Add(statusInterval))
	case routine:
		next = later(next, w.last.Add(resyncInterval))
	}
	return max(next.Sub(now), 0)
}

// wrote notes a write.
func (w *written) wrote(now time.Time) {
	w.last, w.paid = now, later(w.paid, now).Add(statusInterval)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
