package informers

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Of what Kubernetes writes no Event for, the watcher makes one: of the ends of containers, which pods tell of as long as
// they exist, and of changes of a workload's status, which stand in its ThreeportWorkload. Both can be told again and
// again, and have UIDs of their own, so that nothing has to be remembered for them to be told once.

// ownRetention is for how long the Events that the watcher makes count as those that the cluster has: for as long as an
// API server keeps its own. A row of one that is older is as little missed as that of an Event which has expired.
const ownRetention = time.Hour

// ends are the ends of containers that were offered: of each container the latest.
type ends struct {
	mu sync.Mutex
	of map[types.UID]map[string]int32 // by pod and container
}

func newEnds(uids []types.UID) *ends {
	e := &ends{of: map[types.UID]map[string]int32{}}
	for _, uid := range uids {
		if pod, container, restart, ok := observe.ParseTerminationUID(uid); ok {
			e.add(pod, container, restart)
		}
	}
	return e
}

// add notes an end that is to be offered. It returns the UID of what was offered of the container before, which may be the
// same, and false if that is a later one.
func (e *ends) add(pod types.UID, container string, restart int32) (before types.UID, isLatest bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	last, known := e.of[pod][container]
	if known && restart < last {
		return "", false
	}
	if e.of[pod] == nil {
		e.of[pod] = map[string]int32{}
	}
	e.of[pod][container] = restart
	if known {
		before = observe.TerminationUID(pod, container, last)
	}
	return before, true
}

// uids returns the UIDs of the Events that were offered of a pod.
func (e *ends) uids(pod types.UID) []types.UID {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []types.UID
	for container, restart := range e.of[pod] {
		out = append(out, observe.TerminationUID(pod, container, restart))
	}
	return out
}

func (e *ends) pods() []types.UID {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]types.UID, 0, len(e.of))
	for pod := range e.of {
		out = append(out, pod)
	}
	return out
}

func (e *ends) remove(pod types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.of, pod)
}

// reportEnds offers the ends of a pod's containers. An Event has one row, so if several workloads claim the pod, the
// first gets it.
func (w *Watcher) reportEnds(pod *corev1.Pod, id target.Identity, claim target.Attribution) {
	for _, end := range observe.ContainerTerminations(pod) {
		before, isLatest := w.ends.add(id.UID, end.Container, end.Restart)
		if !isLatest {
			continue
		}
		ev := observe.NewTermination(id, end, claim)
		if before != ev.UID {
			w.memory.end(ev.UID, id.Ref)
		}
		w.sink.Offer(ev)
		if before != "" && before != ev.UID {
			w.forgetEnd(before)
		}
	}
}

// withdrawEnds drops what is pending of the ends of a pod that nobody claims any more.
func (w *Watcher) withdrawEnds(pod types.UID) {
	for _, uid := range w.ends.uids(pod) {
		w.sink.Cancel(observe.EventKey(uid))
	}
}

// forgetEnds forgets the ends of a pod that is gone.
func (w *Watcher) forgetEnds(pod types.UID) {
	for _, uid := range w.ends.uids(pod) {
		w.forgetEnd(uid)
	}
	w.ends.remove(pod)
}

func (w *Watcher) forgetEnd(uid types.UID) {
	w.memory.forgetEnd(uid)
	w.sink.Forget(observe.EventKey(uid))
}

// tidyEnds forgets the ends of pods that belong to nobody any more.
func (w *Watcher) tidyEnds(keep func(types.UID) bool) {
	for _, pod := range w.ends.pods() {
		if !keep(pod) {
			w.withdrawEnds(pod)
			w.forgetEnds(pod)
		}
	}
}

// RecordTransition tells of the latest change of a workload's status. The same again is no news.
func (w *Watcher) RecordTransition(workload string, change target.HealthTransition) {
	wl, ok := w.targets.Workload(workload)
	if !ok || change.UID == "" || change.To == "" || change.At.IsZero() {
		return
	}
	ref := target.Ref{Group: v1alpha1.GroupVersion.Group, Kind: "ThreeportWorkload", Name: workload}
	ev := observe.NewTransition(ref, wl.Instance, change)
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.announced[workload]
	if before.UID != ev.UID {
		w.memory.change(workload, ev.UID)
	}
	w.announced[workload] = ev
	w.sink.Offer(ev)
	if last := w.posted[wl.Instance]; w.round.Load() != 0 && last.status == change.To && last.since.IsZero() {
		w.markStatus(workload) // since when is known now
	}
	if before.UID != "" && before.UID != ev.UID {
		w.sink.Forget(before.Key())
	}
}

// forgetChange forgets the change of a workload that is gone, with w.mu held.
func (w *Watcher) forgetChange(workload string) {
	if before, ok := w.announced[workload]; ok {
		delete(w.announced, workload)
		w.memory.forgetChange(workload)
		w.sink.Forget(before.Key())
	}
}

// tidyChanges forgets the changes of workloads that were deleted while nothing watched.
func (w *Watcher) tidyChanges() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for workload := range w.announced {
		if _, ok := w.targets.Workload(workload); !ok {
			w.forgetChange(workload)
		}
	}
}

// ownEvents returns the reports of the Events that the watcher makes of an instance's pods and workloads, as far as they
// are not too old.
func (w *Watcher) ownEvents(instance target.Instance, concerned []target.Identity) []observe.Event {
	var out []observe.Event
	since := w.now().Add(-ownRetention)
	for _, id := range concerned {
		if id.UID == "" || id.GroupKind() != podKind.GroupKind() {
			continue
		}
		pod, ok := w.cachedPod(id)
		if !ok {
			continue
		}
		latest := map[string]observe.ContainerTermination{}
		for _, end := range observe.ContainerTerminations(pod) {
			if end.Time.After(since) {
				latest[end.Container] = end
			}
		}
		if len(latest) == 0 {
			continue
		}
		claims := w.targets.Attributions(id)
		if len(claims) == 0 || claims[0].Instance != instance {
			continue
		}
		for _, end := range latest {
			out = append(out, observe.NewTermination(id, end, claims[0]))
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ev := range w.announced {
		if ev.Workload == instance && ev.Time.After(since) {
			out = append(out, ev)
		}
	}
	return out
}

func (w *Watcher) cachedPod(id target.Identity) (*corev1.Pod, bool) {
	inf, ok := w.pool.find(nil, id.Ref)
	if !ok {
		return nil, false
	}
	cached, _ := inf.object(id.Ref)
	pod, ok := cached.(*corev1.Pod)
	return pod, ok && pod.UID == id.UID
}
