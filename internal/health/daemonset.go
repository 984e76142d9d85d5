package health

// daemonSet judges a DaemonSet by its numbers. That no node is to have a pod is as good as that all that are to have one
// do. Pods on nodes that are not to have one any more are no trouble: a taint that forbids new pods lets them be.
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
