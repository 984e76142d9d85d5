package reporter

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// reportTerminations reports the terminations of a pod's containers as Events. An Event has one row, so the first of
// several workloads gets it. The reports of a pod that belongs to no workload are cancelled.
func (r *objectReporter) reportTerminations(pod *corev1.Pod, id target.Identity, attributions []target.Attribution) {
	terminations := observe.ContainerTerminations(pod)
	if len(attributions) == 0 {
		for _, t := range terminations {
			r.sink.Cancel(observe.EventKey(observe.TerminationUID(id.UID, t.Container, t.Restart)))
		}
		r.sink.ForgetExcept(observe.SyntheticSubject(id.UID))
		return
	}
	keys := make([]observe.Key, len(terminations))
	for i, t := range terminations {
		ev := observe.NewTermination(id, t, attributions[0])
		keys[i] = ev.Key()
		r.sink.Offer(ev)
	}
	r.sink.ForgetExcept(observe.SyntheticSubject(id.UID), keys...)
}
