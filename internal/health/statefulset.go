package health

import "fmt"

// statefulSet assesses a StatefulSet by its numbers. It has no deadline and usually no conditions. The startup limit
// applies unless its pods give better evidence.
//
// Source: https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#update-strategies
func statefulSet(s *fields, ctx Context) Assessment {
	want := s.numberOr(1, "spec", "replicas")
	r := rollout{
		want: want, exist: s.numberOr(0, "status", "replicas"), latest: s.numberOr(0, "status", "updatedReplicas"),
		ready: s.numberOr(0, "status", "readyReplicas"),
	}
	if s.numberOr(0, "spec", "minReadySeconds") > 0 {
		r.ready = s.numberOr(0, "status", "availableReplicas")
	}
	if s.text("spec", "updateStrategy", "type") != "OnDelete" {
		// Pods below the partition are not updated. The partition does not depend on spec.ordinals.start.
		r.updated = max(0, want-s.numberOr(0, "spec", "updateStrategy", "rollingUpdate", "partition"))
	}
	a := r.createOrdered(s, ctx)
	if s.text("spec", "updateStrategy", "type") != "OnDelete" {
		a.Revision = s.text("status", "updateRevision")
	}
	return a
}

// createOrdered assesses a StatefulSet by its numbers.
func (r rollout) createOrdered(s *fields, ctx Context) Assessment {
	if a, failing := r.cannotCreate(s, ctx); failing {
		return a
	}
	a := r.progress(s)
	// Pods are created one after another, unless podManagementPolicy is Parallel.
	if a.Reason != "ReplicasNotReady" {
		return a
	}
	if waiting := r.want - r.exist; waiting > 0 && r.exist > 0 && s.text("spec", "podManagementPolicy") != "Parallel" {
		if waiting == 1 {
			a.Message += ", and 1 waits for those before it"
		} else {
			a.Message += fmt.Sprintf(", and %d wait for those before them", waiting)
		}
	}
	message := a.Message
	a = pending(ctx, s.created(), startup, Unhealthy, a.Reason, message)
	if a.Status == Unhealthy {
		a.Phase, a.WithoutTimeout = Overdue, message
	}
	return a
}
