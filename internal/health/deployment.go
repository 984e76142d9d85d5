package health

import (
	"fmt"
	"math"
	"regexp"
	"time"
)

// deployment assesses a Deployment by its conditions and its numbers. Its controller applies the deadline only during a
// rollout. After it, missing replicas have the same time to become ready.
//
// Source: https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#deployment-status
func deployment(s *fields, ctx Context) Assessment {
	progressing := s.condition("Progressing")
	a := deploymentStatus(s, ctx, progressing)
	a.Revision = newReplicaSet(progressing)
	return a
}

func deploymentStatus(s *fields, ctx Context, progressing condition) Assessment {
	want := s.numberOr(1, "spec", "replicas")
	r := rollout{
		want: want, updated: want,
		exist: s.numberOr(0, "status", "replicas"), latest: s.numberOr(0, "status", "updatedReplicas"),
		ready: s.numberOr(0, "status", "availableReplicas"),
	}
	failure := s.condition("ReplicaFailure")
	switch {
	case r.want == 0 && r.exist == 0:
		return idle(s) // its conditions are about the time before
	case failure.status == "True":
		return r.failing(s, camelReason(failure.reason, "ReplicaFailure"), ", and its pods cannot be created"+colon(sanitizeControllerMessage(failure.message)),
			failure.since)
	case progressing.status == "False" && progressing.reason == "ProgressDeadlineExceeded":
		return r.failing(s, progressing.reason, ", and its rollout does not progress within its deadline", progressing.since)
	case progressing.status == "False":
		return r.failing(s, camelReason(progressing.reason, "NotProgressing"), ", and its rollout does not progress"+colon(sanitizeControllerMessage(progressing.message)),
			progressing.since)
	case s.flag("spec", "paused"):
		if r.latest == r.exist && r.progress(s).Status == Healthy {
			return verdict(Healthy, "Paused", s.subject()+" is paused")
		}
		return verdict(Reconciling, "Paused", fmt.Sprintf("%s is paused, with %d of %d replicas ready", s.subject(), r.ready, r.want))
	}
	if a, failing := r.cannotCreate(s, ctx); failing {
		return a
	}
	return r.deploying(s, ctx, progressing)
}

// deploying assesses a Deployment whose conditions report no fault.
func (r rollout) deploying(s *fields, ctx Context, progressing condition) Assessment {
	if old := r.exist - r.latest; r.latest >= r.updated && old > 0 {
		return verdict(Reconciling, "RollingOut", fmt.Sprintf("%s has %d old %s left", s.subject(), old, plural(old, "replica")))
	}
	a := r.progress(s)
	if a.Reason != "ReplicasNotReady" {
		return a
	}
	if waiting := s.numberOr(0, "status", "readyReplicas") - r.ready; waiting > 0 && s.numberOr(0, "spec", "minReadySeconds") > 0 {
		a.Message += fmt.Sprintf(", and %d for less than its minReadySeconds", waiting)
	}
	limit := deploymentDeadline(s)
	available := s.condition("Available")
	if limit > 0 && progressing.reason != "NewReplicaSetAvailable" {
		if available.status == "False" {
			a.Since = available.since
		}
		return a // in a rollout the controller applies the deadline
	}
	a.Reason = replicasMissing
	if available.status != "False" || available.since.IsZero() || limit == 0 {
		return a // enough replicas are ready, or there is no deadline
	}
	end := available.since.Add(limit)
	if !ctx.Now.Before(end) {
		return r.failing(s, replicasMissing, ", for longer than its deadline of "+formatLimit(limit), end)
	}
	a.Since, a.Recheck = available.since, end
	return a
}

func plural(n int64, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// replicasMissing is the reason of a Deployment that lacks replicas without a rollout: a ready replica was lost, or more
// are wanted. Its controller applies no deadline then.
const replicasMissing = "ReplicasMissing"

// deploymentDeadline returns the deadline of a rollout; 0 for none.
//
// Source: spec.progressDeadlineSeconds, whose largest value means none.
func deploymentDeadline(s *fields) time.Duration {
	seconds := s.numberOr(600, "spec", "progressDeadlineSeconds")
	if seconds >= math.MaxInt32 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// newReplicaSetName matches the messages `ReplicaSet "web-78" is progressing.` and `Created new replica set "web-78"`.
var newReplicaSetName = regexp.MustCompile(`(?i)\breplica ?set "([^"]{1,253})"`)

// newReplicaSet returns the name of the ReplicaSet that the condition Progressing is about; empty if the message has none.
//
// Source: syncRolloutStatus and getNewReplicaSet of the Deployment controller.
func newReplicaSet(progressing condition) string {
	if found := newReplicaSetName.FindStringSubmatch(progressing.message); found != nil {
		return found[1]
	}
	return ""
}
