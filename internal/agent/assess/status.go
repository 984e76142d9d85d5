package assess

import (
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// lastStatus is the last status of an instance that was due.
type lastStatus struct {
	status, version string
	since           time.Time // when status last changed; zero if that is not known
	shared          bool      // several workloads declared the instance
	sharedSince     time.Time // since of the status before, if that was of several workloads
	at              time.Time
	changedAt       time.Time // when a status with another word was last due
}

// Status returns the status of an instance: the worst verdict on the workloads that declare parts of it. With several workloads, the
// cause also names the worst of the others. It returns false while the verdict on one of them is not known.
func (a *Assessor) Status(instance target.Instance) (observe.Status, bool) {
	out := observe.Status{Workload: instance}
	workloads := a.targets.WorkloadsOf(instance)
	verdicts := make([]health.ResourceVerdict, len(workloads))
	for i, workload := range workloads {
		v, ok := a.Verdict(workload.Name)
		if !ok {
			return out, false
		}
		verdicts[i] = health.ResourceVerdict{ObjectRef: health.ObjectRef{Kind: "ThreeportWorkload", Name: workload.Name}, Verdict: v}
	}
	if len(workloads) == 0 {
		return out, false
	}
	worst := health.Worst(verdicts[0].Verdict)
	if len(verdicts) > 1 {
		worst = health.Workload(verdicts)
	}
	out.Status, out.Reason, out.Cause = string(worst.Status), worst.Reason, worst.Message
	out.Since = a.since(out, workloads)
	out.CauseSince = a.causeSince(out.Reason, workloads)
	return out, true
}

// since returns when the status of an instance last changed: as the transition of its only workload recorded it, so that the control
// plane and the ThreeportWorkload have one time. Else as the assessor saw it, or as a transition of one of its workloads recorded it;
// else zero. A transition that is older than a status of several workloads is not its end: that came with the end of another
// workload.
func (a *Assessor) since(s observe.Status, workloads []target.Workload) time.Time {
	a.mu.Lock()
	last := a.statuses[s.Workload]
	a.mu.Unlock()
	changes := last.status != "" && last.status != s.Status
	if len(workloads) == 1 {
		if at := a.transitions.Since(workloads[0].Name, s.Status); at.After(last.sharedBefore(s.Status)) {
			return at
		}
	}
	if changes {
		return time.Time{} // AdmitStatus sets it
	}
	if !last.since.IsZero() {
		return last.since
	}
	return earliest(workloads, func(workload string) time.Time { return a.transitions.Since(workload, s.Status) })
}

// causeSince returns when a reason became what it is: the earliest time that one of the workloads recorded; else zero.
func (a *Assessor) causeSince(reason string, workloads []target.Workload) time.Time {
	if reason == "" {
		return time.Time{}
	}
	return earliest(workloads, func(workload string) time.Time { return a.transitions.CauseSince(workload, reason) })
}

// earliest returns the earliest time that one of the workloads has; zero if none has one.
func earliest(workloads []target.Workload, timeOf func(workload string) time.Time) (first time.Time) {
	for _, workload := range workloads {
		if at := timeOf(workload.Name); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// sharedBefore returns the start of the status before the given one if that was of several workloads; else zero.
func (l lastStatus) sharedBefore(status string) time.Time {
	switch {
	case l.status == status:
		return l.sharedSince
	case l.shared:
		return l.since
	}
	return time.Time{}
}

// AdmitStatus reports whether a status may be reported now; if not, wait is when to ask again. The first status of an
// instance is due at once. A changed status word is due a StatusInterval after the last change of the word, so that a change of
// the cause does not delay it. Any other change is due a StatusInterval after the last report. A repeat of the last status is
// due. The returned status has the time of its last change.
func (a *Assessor) AdmitStatus(status observe.Status) (out observe.Status, wait time.Duration) {
	now, shared := a.config.Now(), len(a.targets.WorkloadsOf(status.Workload)) > 1
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.statuses[status.Workload]
	if last.version == status.Version() {
		return status, 0
	}
	next := lastStatus{
		status: status.Status, shared: shared, sharedSince: last.sharedBefore(status.Status), at: now, changedAt: last.changedAt,
	}
	before := last.at
	if last.status != status.Status {
		next.changedAt, before = now, last.changedAt
	}
	if wait := before.Add(a.config.StatusInterval).Sub(now); !before.IsZero() && wait > 0 {
		return status, wait
	}
	if last.status != "" && last.status != status.Status && status.Since.IsZero() {
		status.Since = now.UTC() // until the transition is recorded
	}
	next.since, next.version = status.Since, status.Version()
	a.statuses[status.Workload] = next
	return status, 0
}

// SinceDiffers reports whether the last status of an instance has the given word, and another time of its change or none.
func (a *Assessor) SinceDiffers(instance target.Instance, status string, at time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.statuses[instance]
	return last.status == status && !last.since.Equal(at)
}

// LastStatusTime returns when a status of an instance was last due, for tests.
func (a *Assessor) LastStatusTime(instance target.Instance) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.statuses[instance].at
}
