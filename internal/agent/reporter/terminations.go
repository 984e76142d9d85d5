package reporter

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// reportTerminations offers the terminations of a pod's containers as Events. An Event has one row, so the first of
// several workloads gets it. The reports of a pod that belongs to no workload are cancelled.
func (r *objectReporter) reportTerminations(pod *corev1.Pod, id target.Identity, attributions []target.Attribution) {
	if len(attributions) == 0 {
		r.cancelTerminations(id.UID)
		return
	}
	for _, termination := range observe.ContainerTerminations(pod) {
		before, isLatest := r.reported.terminations.add(id, termination.Container, termination.Restart)
		if !isLatest {
			continue
		}
		ev := observe.NewTermination(id, termination, attributions[0])
		r.sink.Offer(ev)
		if before != "" && before != ev.UID {
			r.forgetTermination(before)
		}
	}
}

func (r *objectReporter) cancelTerminations(pod types.UID) {
	for _, uid := range r.reported.terminations.uids(pod) {
		r.sink.Cancel(observe.EventKey(uid))
	}
}

// forgetTerminations forgets the terminations of a pod that is deleted.
func (r *objectReporter) forgetTerminations(pod types.UID) {
	for _, uid := range r.reported.terminations.uids(pod) {
		r.forgetTermination(uid)
	}
	r.reported.terminations.remove(pod)
}

func (r *objectReporter) forgetTermination(uid types.UID) {
	r.reported.terminations.forgetRecord(uid)
	r.sink.Forget(observe.EventKey(uid))
}

// pruneTerminations forgets the terminations of pods that no longer belong to a workload.
func (r *objectReporter) pruneTerminations(keep func(pod types.UID) bool) {
	for _, pod := range r.reported.terminations.pods() {
		if !keep(pod) {
			r.cancelTerminations(pod)
			r.forgetTerminations(pod)
		}
	}
}

// containerTerminations records the latest offered termination of each container.
type containerTerminations struct {
	store records

	mu       sync.Mutex
	restarts map[types.UID]map[string]int32 // by pod and container
}

func newContainerTerminations(store records) *containerTerminations {
	t := &containerTerminations{store: store, restarts: map[types.UID]map[string]int32{}}
	for uid := range store.load(terminationTable) {
		if pod, container, restart, ok := observe.ParseTerminationUID(types.UID(uid)); ok {
			t.set(pod, container, restart)
		}
	}
	return t
}

// add records a termination. It returns the UID of the recorded termination of the container, which may be the same, and
// false if that is a later one.
func (t *containerTerminations) add(pod target.Identity, container string, restart int32) (before types.UID, isLatest bool) {
	last, known := t.last(pod.UID, container)
	if known && restart < last {
		return "", false
	}
	t.set(pod.UID, container, restart)
	if !known || last != restart {
		t.store.put(terminationTable, string(observe.TerminationUID(pod.UID, container, restart)), pod.Namespace+"/"+pod.Name)
	}
	if known {
		before = observe.TerminationUID(pod.UID, container, last)
	}
	return before, true
}

func (t *containerTerminations) last(pod types.UID, container string) (int32, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	restart, ok := t.restarts[pod][container]
	return restart, ok
}

func (t *containerTerminations) set(pod types.UID, container string, restart int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.restarts[pod] == nil {
		t.restarts[pod] = map[string]int32{}
	}
	t.restarts[pod][container] = restart
}

// uids returns the UIDs of the offered Events about a pod.
func (t *containerTerminations) uids(pod types.UID) []types.UID {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []types.UID
	for container, restart := range t.restarts[pod] {
		out = append(out, observe.TerminationUID(pod, container, restart))
	}
	return out
}

func (t *containerTerminations) pods() []types.UID {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]types.UID, 0, len(t.restarts))
	for pod := range t.restarts {
		out = append(out, pod)
	}
	return out
}

func (t *containerTerminations) remove(pod types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.restarts, pod)
}

func (t *containerTerminations) forgetRecord(uid types.UID) {
	t.store.delete(terminationTable, string(uid))
}

func (t *containerTerminations) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.restarts)
}
