package health

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// workloadRules has the rules of pods and of kinds that keep pods running.
var workloadRules = map[schema.GroupKind]rule{
	{Kind: "Pod"}:                        podFields,
	{Group: "apps", Kind: "Deployment"}:  unlessBehind(deployment),
	{Group: "apps", Kind: "ReplicaSet"}:  unlessBehind(replicaSet),
	{Kind: "ReplicationController"}:      unlessBehind(replicaSet),
	{Group: "apps", Kind: "StatefulSet"}: unlessBehind(statefulSet),
	{Group: "apps", Kind: "DaemonSet"}:   unlessBehind(daemonSet),
}

// rollout has the numbers of the pods of a workload.
type rollout struct {
	want    int64 // declared pods
	updated int64 // declared pods that need the latest template
	exist   int64 // existing pods of any template
	ready   int64 // pods that have been ready for minReadySeconds
	latest  int64 // existing pods of the latest template
}

// readyMessage returns how many pods are ready: "Deployment web has 0 of 5 replicas ready".
func (r rollout) readyMessage(s *fields) string {
	return fmt.Sprintf("%s has %d of %d %s ready", s.subject(), r.ready, r.want, podNoun(s))
}

// podNoun returns the noun that the status of a kind uses for its pods.
func podNoun(s *fields) string {
	if s.kind.Kind == "DaemonSet" {
		return "pods"
	}
	return "replicas"
}

// failing assesses a workload with a fault: it is Down if none of its pods is ready.
func (r rollout) failing(s *fields, reason, words string, since time.Time) Assessment {
	a := verdict(Unhealthy, reason, r.readyMessage(s)+words)
	if r.ready == 0 && r.want > 0 {
		a.Status = Down
	}
	a.Since = since
	return a
}

// progress assesses a workload by its numbers alone. Pods of an earlier template count as ready in the status, so the
// workload is not Healthy before they are gone.
func (r rollout) progress(s *fields) Assessment {
	switch {
	case r.ready < r.want && r.exist <= r.latest: // all pods have the latest template
		return verdict(Reconciling, "ReplicasNotReady", r.readyMessage(s))
	case r.latest < r.updated:
		return verdict(Reconciling, "RollingOut", fmt.Sprintf("%s has %d of %d %s updated", s.subject(), r.latest, r.updated, podNoun(s)))
	case r.exist > r.want:
		return verdict(Reconciling, "ScalingDown",
			fmt.Sprintf("%s has %d %s left of which %d are wanted", s.subject(), r.exist, podNoun(s), r.want))
	case r.ready < r.want:
		return verdict(Reconciling, "ReplicasNotReady", r.readyMessage(s))
	case r.want == 0:
		return idle(s)
	}
	return healthy
}

// idle assesses a workload that wants no pod and has none.
func idle(s *fields) Assessment {
	if s.kind.Kind == "DaemonSet" {
		return verdict(Healthy, NoNodeSelected, s.subject()+" selects no node")
	}
	return verdict(Healthy, ScaledToZero, s.subject()+" is scaled to 0")
}

// createRetry is how long a failure to create a pod counts. A controller tries again after up to 1,000 s.
//
// Source: client-go, workqueue.DefaultControllerRateLimiter.
const createRetry = 1000 * time.Second

// cannotCreate assesses a workload whose controller has failed to create missing pods; false without such a Warning.
//
// Source: the controllers' Event FailedCreate.
func (r rollout) cannotCreate(s *fields, ctx Context) (Assessment, bool) {
	until := ctx.Warning.Time.Add(createRetry)
	if ctx.Warning.Reason != failedCreate || r.exist >= r.want || !ctx.Now.Before(until) {
		return Assessment{}, false
	}
	a := r.failing(s, failedCreate, ", and its pods cannot be created"+colon(sanitizeControllerMessage(ctx.Warning.Message)), ctx.Warning.Time)
	a.Recheck = until
	return a, true
}

const failedCreate = "FailedCreate"
