package health

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// workloadRules are of what keeps pods running.
var workloadRules = map[schema.GroupKind]rule{
	{Kind: "Pod"}:                        podFields,
	{Group: "apps", Kind: "Deployment"}:  withSubject(unlessBehind(deployment)),
	{Group: "apps", Kind: "ReplicaSet"}:  withSubject(unlessBehind(replicaSet)),
	{Kind: "ReplicationController"}:      withSubject(unlessBehind(replicaSet)),
	{Group: "apps", Kind: "StatefulSet"}: withSubject(unlessBehind(statefulSet)),
	{Group: "apps", Kind: "DaemonSet"}:   withSubject(unlessBehind(daemonSet)),
}

// named makes a rule tell the name of what it judges.
func withSubject(judge rule) rule {
	return func(s *fields, ctx Context) Assessment {
		a := judge(s, ctx)
		a.Subject = s.subject()
		return a
	}
}

// rollout is how far the pods of an object are from what is declared.
type rollout struct {
	want    int64 // pods that are declared
	updated int64 // of them, those to be of the latest template
	exist   int64 // pods that there are, in whatever version
	ready   int64 // pods that are ready, for as long as they have to be
	latest  int64 // pods of the latest template
}

// standing says how many are ready: "Deployment web has 0 of 5 replicas ready".
func (r rollout) readyMessage(s *fields) string {
	return fmt.Sprintf("%s has %d of %d %s ready", s.subject(), r.ready, r.want, podNoun(s))
}

// pods names what an object keeps: a DaemonSet's status tells of pods, that of all others of replicas.
func podNoun(s *fields) string {
	if s.kind.Kind == "DaemonSet" {
		return "pods"
	}
	return "replicas"
}

// failing judges an object that something is wrong with: it is Down if none of its pods is ready.
func (r rollout) failing(s *fields, reason, words string, since time.Time) Assessment {
	a := verdict(Unhealthy, reason, r.readyMessage(s)+words)
	if r.ready == 0 && r.want > 0 {
		a.Status = Down
	}
	a.Since = since
	return a
}

// progress judges an object by its numbers alone. Pods of an earlier template count as ready in its status: it is not
// Healthy before they are gone.
func (r rollout) progress(s *fields) Assessment {
	switch {
	case r.ready < r.want && r.exist <= r.latest: // there is no pod of an earlier template
		return verdict(Reconciling, "ReplicasNotReady", r.readyMessage(s))
	case r.latest < r.updated:
		return verdict(Reconciling, "RollingOut", fmt.Sprintf("%s has %d of %d %s updated", s.subject(), r.latest, r.updated, podNoun(s)))
	case r.exist > r.want:
		return verdict(Reconciling, "ScalingDown",
			fmt.Sprintf("%s has %d %s left of which %d are wanted", s.subject(), r.exist, podNoun(s), r.want))
	case r.ready < r.want:
		return verdict(Reconciling, "ReplicasNotReady", r.readyMessage(s))
	}
	return healthy
}

// createRetry is how long ago a controller may have failed to create a pod for that to be true still: it tries again
// after up to 1,000 s.
//
// Source: client-go, workqueue.DefaultControllerRateLimiter.
const createRetry = 1000 * time.Second

// cannotCreate judges an object pods of which are missing, and whose controller has failed to create them; false if
// there is no sign of it.
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

// isTrue reads a field that is true or false.
func isTrue(s *fields, path ...string) bool {
	return s.flag(path...)
}
