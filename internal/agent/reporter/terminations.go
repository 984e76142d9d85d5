package reporter

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// reportTerminations reports the terminations of a pod's containers as Events to each instance of the pod. The reports of a pod
// that belongs to no workload are cancelled.
func (r *objectReporter) reportTerminations(ctx context.Context, pod *corev1.Pod, id target.Identity, attributions []target.Attribution) {
	terminations := observe.ContainerTerminations(pod)
	if len(attributions) == 0 {
		for _, t := range terminations {
			r.sink.Cancel(observe.EventKey(observe.TerminationUID(id.UID, t.Container, t.Restart)))
		}
		r.sink.DropRejected(observe.SyntheticSubject(id.UID)) // those of earlier restarts
		r.sink.ForgetExcept(observe.SyntheticSubject(id.UID))
		return
	}
	var reports []observe.Event
	for _, t := range terminations {
		reports = append(reports, eachInstance(r.sink, attributions, newTermination(id, t))...)
	}
	offerAll(ctx, r.sink, observe.SyntheticSubject(id.UID), reports)
}

// newTermination returns a function that makes the report of a termination to an instance.
func newTermination(id target.Identity, t observe.ContainerTermination) func(target.Attribution) observe.Event {
	return func(attribution target.Attribution) observe.Event { return observe.NewTermination(id, t, attribution) }
}
