package health

import (
	"cmp"
	"fmt"
)

// rollout is how far the pods of an object are from what is declared.
type rollout struct {
	want    int64 // pods that are declared
	updated int64 // of them, those to be of the latest template
	exist   int64 // pods that there are, in whatever version
	ready   int64
	latest  int64 // pods of the latest template
}

// pods judges an object that keeps a number of pods. Those of an earlier template count as ready in its
// status: it is not Healthy before they are gone.
func pods(s *fields, kind string) Verdict {
	if kind == "Deployment" {
		if c := s.condition("Progressing"); c.status == "False" {
			v := Verdict{Unhealthy, cmp.Or(c.reason, "NotProgressing"), cmp.Or(c.message, "the rollout does not progress")}
			if s.numberOr(0, "status", "availableReplicas") == 0 {
				v.Status = Down
			}
			return v
		}
	}
	if c := s.condition("ReplicaFailure"); c.status == "True" {
		return Verdict{Unhealthy, cmp.Or(c.reason, "ReplicaFailure"), cmp.Or(c.message, "pods cannot be created")}
	}
	switch r := rolloutOf(s, kind); {
	case r.latest < r.updated:
		return Verdict{Reconciling, "RollingOut", fmt.Sprintf("%s has %d of %d replicas updated", kind, r.latest, r.updated)}
	case kind == "Deployment" && r.exist > r.latest:
		return Verdict{Reconciling, "RollingOut", fmt.Sprintf("%s has %d old replicas left", kind, r.exist-r.latest)}
	case r.exist > r.want:
		return Verdict{Reconciling, "ScalingDown", fmt.Sprintf("%s has %d replicas left of which %d are wanted", kind, r.exist, r.want)}
	case r.ready < r.want:
		return Verdict{Reconciling, "ReplicasNotReady", fmt.Sprintf("%s has %d of %d replicas ready", kind, r.ready, r.want)}
	}
	return Verdict{Status: Healthy}
}

func rolloutOf(s *fields, kind string) rollout {
	count := func(name string) int64 { return s.numberOr(0, "status", name) }
	if kind == "DaemonSet" {
		want, ok := s.number("status", "desiredNumberScheduled")
		if !ok {
			s.note("status", "desiredNumberScheduled") // it is required
		}
		r := rollout{want: want, updated: want, exist: want, ready: count("numberReady"), latest: count("updatedNumberScheduled")}
		if s.text("spec", "updateStrategy", "type") == "OnDelete" {
			r.updated = 0
		}
		return r
	}
	want := s.numberOr(1, "spec", "replicas")
	r := rollout{want: want, updated: want, exist: count("replicas"), latest: count("updatedReplicas")}
	switch kind {
	case "Deployment":
		r.ready = count("availableReplicas")
	case "StatefulSet":
		r.ready = count("readyReplicas")
		r.updated = max(0, want-s.numberOr(0, "spec", "updateStrategy", "rollingUpdate", "partition"))
		if s.text("spec", "updateStrategy", "type") == "OnDelete" {
			r.updated = 0
		}
	default: // a ReplicaSet does not update its pods
		r.ready, r.updated = count("readyReplicas"), 0
	}
	return r
}
