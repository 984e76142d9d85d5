package health

// replicaSet assesses a ReplicaSet or a ReplicationController. Neither updates its pods.
//
// Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/replica-set-v1/#ReplicaSetStatus and
// that of ReplicationController, which has the same fields.
func replicaSet(s *fields, ctx Context) Assessment {
	r := rollout{
		want: s.numberOr(1, "spec", "replicas"), exist: s.numberOr(0, "status", "replicas"),
		ready: s.numberOr(0, "status", "readyReplicas"),
	}
	if s.numberOr(0, "spec", "minReadySeconds") > 0 {
		r.ready = s.numberOr(0, "status", "availableReplicas")
	}
	if c := s.condition("ReplicaFailure"); c.status == "True" && r.want+r.exist > 0 {
		words := ", and its pods cannot be created"
		if c.reason == "FailedDelete" {
			words = ", and its pods cannot be deleted"
		}
		return r.failing(s, camelReason(c.reason, "ReplicaFailure"), words+colon(sanitizeControllerMessage(c.message)), c.since)
	}
	if a, failing := r.cannotCreate(s, ctx); failing {
		return a
	}
	a := r.progress(s)
	if a.idle() && len(s.list("metadata", "ownerReferences")) > 0 {
		return healthy // a Deployment keeps it for a rollback
	}
	return a
}
