package assess

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// verdictOf combines the state of a resource with the verdict on its objects.
func verdictOf(s target.ResourceStatus, judged health.Verdict) health.Verdict {
	switch s.State {
	case target.Present:
		if judged.Status != "" {
			return judged
		}
		return health.Verdict{Status: health.Unknown, Reason: "NotJudged"}
	case target.Absent:
		return health.Verdict{Status: health.Down, Reason: "Absent", Message: s.String() + " does not exist"}
	case target.Forbidden:
		if notChecked(s) {
			return health.Verdict{Status: health.Unknown, Reason: health.NotChecked, Message: s.Message}
		}
	case target.Pending, target.KindNotInstalled, target.Unavailable:
	}
	return health.Verdict{Status: health.Unknown, Reason: string(s.State), Message: s.Message}
}

// notChecked reports whether a resource is a Secret that the agent may not watch. An installation need not permit Secrets, so
// the verdict on a workload leaves such a Secret out.
func notChecked(s target.ResourceStatus) bool {
	return s.State == target.Forbidden && s.GroupKind() == schema.GroupKind{Kind: "Secret"}
}

// ResourceStatuses returns the state and the health of each resource of a workload, in the order in which they are listed. It
// also counts the workload's Pods: those of its resources, and those that belong to it by its label only. It records the start of each
// health that is new.
func (a *Assessor) ResourceStatuses(workload string) (statuses []target.ResourceStatus, pods target.Count) {
	now := a.config.Now() // before the verdicts are read, so that newer ones of another reader win
	judged := a.assessments.verdicts(workload)
	for _, verdict := range judged {
		pods.Total += verdict.pods.Total
		pods.Healthy += verdict.pods.Healthy
	}
	wl, ok := a.targets.Workload(workload)
	if !ok {
		return nil, pods
	}
	statuses = make([]target.ResourceStatus, 0, len(wl.Resources))
	for _, r := range wl.Resources {
		s, verdict := a.cluster.ResourceStatus(r), judged[r.Ref]
		v := verdictOf(s, verdict.Verdict)
		s.Health, s.Reason, s.Cause, s.Pods = string(v.Status), v.Reason, v.Message, verdict.pods
		if v == verdict.Verdict {
			s.Since = verdict.since
		}
		statuses = append(statuses, s)
	}
	a.starts.set(workload, statuses, now)
	return statuses, pods
}

// Health is [Assessor.Verdict] in words; empty while the verdict is not known. It records the verdict for the damping, too.
func (a *Assessor) Health(workload string) (status, reason, message string) {
	v, ok := a.Verdict(workload)
	if !ok {
		return "", "", ""
	}
	return string(v.Status), v.Reason, v.Message
}

// Verdict returns the verdict on a workload's resources, damped if it flaps. It returns false while the state of a
// resource is not known. The call takes part in the damping that [Assessor.Note] has started: it records the verdict, which may be a change.
func (a *Assessor) Verdict(workload string) (health.Verdict, bool) {
	v, _, ok := a.damped(workload)
	return v, ok
}

// undamped returns the verdict on a workload's resources as it is now.
func (a *Assessor) undamped(workload string) (health.Verdict, bool) {
	wl, ok := a.targets.Workload(workload)
	if !ok {
		return health.Verdict{}, false
	}
	judged := a.assessments.verdicts(workload)
	all := make([]health.ResourceVerdict, 0, len(wl.Resources)+1)
	var unchecked []health.ResourceVerdict
	for _, r := range wl.Resources {
		s, verdict := a.cluster.ResourceStatus(r), judged[r.Ref]
		if s.State == target.Pending || s.State == target.Present && verdict.Status == "" {
			return health.Verdict{}, false
		}
		v := health.ResourceVerdict{ObjectRef: health.ObjectRef{Kind: r.Kind, Name: r.Name}, Verdict: verdictOf(s, verdict.Verdict)}
		if notChecked(s) {
			unchecked = append(unchecked, v)
		} else {
			all = append(all, v)
		}
	}
	if labelled, ok := judged[target.Ref{}]; ok {
		all = append(all, health.ResourceVerdict{Verdict: labelled.Verdict})
	}
	return health.Workload(all, unchecked...), true
}
