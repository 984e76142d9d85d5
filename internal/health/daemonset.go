package health

// daemonSet assesses a DaemonSet by its numbers. It is Healthy if no node is selected. Pods on nodes that are not selected
// any more do not count: a taint with NoSchedule lets them run.
//
// Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/daemon-set-v1/#DaemonSetStatus
func daemonSet(s *fields, ctx Context) Assessment {
	want, ok := s.number("status", "desiredNumberScheduled")
	if !ok {
		s.note("status", "desiredNumberScheduled") // it is required
	}
	r := rollout{
		want: want, updated: want, exist: s.numberOr(want, "status", "currentNumberScheduled"),
		ready: s.numberOr(0, "status", "numberReady"), latest: s.numberOr(0, "status", "updatedNumberScheduled"),
	}
	if s.numberOr(0, "spec", "minReadySeconds") > 0 {
		r.ready = s.numberOr(0, "status", "numberAvailable")
	}
	if s.text("spec", "updateStrategy", "type") == "OnDelete" {
		r.updated = 0
	}
	if a, failing := r.cannotCreate(s, ctx); failing {
		return a
	}
	r.exist = want
	return r.progress(s)
}
