package watch

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/health"
	"github.com/threeport/threeport-agent/internal/observe"
	"github.com/threeport/threeport-agent/internal/target"
)

// board holds the verdicts on listed resources and on what descends from them, so that a change of one pod
// does not read the others.
type board struct {
	mu        sync.Mutex
	workloads map[string]map[target.Ref]*standing
}

// standing is how one listed resource stands.
type standing struct {
	uid     types.UID
	own     health.Verdict
	judged  bool
	derived map[types.UID]health.Verdict
	sum     health.Derived
}

func newBoard() *board { return &board{workloads: map[string]map[target.Ref]*standing{}} }

// assess judges an object, and reports whether its verdict is news. The body is that of a listed object.
func (b *board) assess(claim target.Claim, id target.Identity, body runtime.Object, cached any) bool {
	pod, isPod := cached.(*corev1.Pod)
	var v health.Verdict
	switch {
	case isPod:
		v = health.Pod(pod)
	case claim.Listed:
		v = health.Object(id.GroupKind(), body)
	default:
		return false // what stands between a resource and its pods is judged by them
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.standing(claim)
	if claim.Listed {
		news := !s.judged || s.own != v || s.uid != id.UID
		s.own, s.uid, s.judged = v, id.UID, true
		return news
	}
	old, known := s.derived[id.UID]
	if known && old == v {
		return false
	}
	s.count(old, known, -1)
	s.derived[id.UID] = v
	s.count(v, true, 1)
	return true
}

func (s *standing) count(v health.Verdict, known bool, n int) {
	switch {
	case !known:
	case v.Status == health.Healthy:
		s.sum.Healthy += n
	case v.Status == health.Unhealthy || v.Status == health.Down:
		s.sum.Failing[v] += n
		if s.sum.Failing[v] <= 0 {
			delete(s.sum.Failing, v)
		}
	}
}

// drop removes an object that is gone, or that is the workload's no more.
func (b *board) drop(claim target.Claim, id target.Identity) {
	b.mu.Lock()
	defer b.mu.Unlock()
	resources := b.workloads[claim.Workload]
	s := resources[claim.Resource.Ref]
	switch {
	case s == nil:
		return
	case claim.Listed:
		if s.uid == id.UID {
			s.judged = false
		}
	default:
		old, known := s.derived[id.UID]
		s.count(old, known, -1)
		delete(s.derived, id.UID)
	}
	if s.judged || len(s.derived) > 0 {
		return
	}
	delete(resources, claim.Resource.Ref)
	if len(resources) == 0 {
		delete(b.workloads, claim.Workload)
	}
}

func (b *board) standing(claim target.Claim) *standing {
	resources := b.workloads[claim.Workload]
	if resources == nil {
		resources = map[target.Ref]*standing{}
		b.workloads[claim.Workload] = resources
	}
	s := resources[claim.Resource.Ref]
	if s == nil {
		s = &standing{derived: map[types.UID]health.Verdict{}, sum: health.Derived{Failing: map[health.Verdict]int{}}}
		resources[claim.Resource.Ref] = s
	}
	return s
}

func (b *board) forget(workload string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.workloads, workload)
}

// verdicts returns how the resources of a workload stand.
func (b *board) verdicts(workload string) map[target.Ref]health.Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[target.Ref]health.Verdict{}
	for ref, s := range b.workloads[workload] {
		own := s.own
		if ref == (target.Ref{}) {
			own = health.Verdict{Status: health.Healthy}
		} else if !s.judged {
			continue
		}
		out[ref] = health.Combine(own, s.sum)
	}
	return out
}

// verdict judges a resource by what is seen of it.
func verdict(s target.Sight, judged health.Verdict) health.Verdict {
	switch s.State {
	case target.Present:
		if judged.Status != "" {
			return judged
		}
		return health.Verdict{Status: health.Unknown, Reason: "NotJudged"}
	case target.Absent:
		return health.Verdict{Status: health.Down, Reason: "Absent", Message: s.String() + " does not exist"}
	case target.Pending, target.KindNotInstalled, target.Forbidden, target.Unavailable:
	}
	return health.Verdict{Status: health.Unknown, Reason: string(s.State), Message: s.Message}
}

// Verdict returns the verdict on a workload, the worst of its resources'; false while some of them have
// not been seen for the first time.
func (w *Watcher) Verdict(workload string) (health.Verdict, bool) {
	verdicts := w.board.verdicts(workload)
	all := make([]health.Verdict, 0, len(verdicts)+1)
	wl, ok := w.targets.Workload(workload)
	if !ok {
		return health.Verdict{}, false
	}
	for _, r := range wl.Resources {
		s := w.sight(r)
		judged := verdicts[r.Ref]
		if s.State == target.Pending || s.State == target.Present && judged.Status == "" {
			return health.Verdict{}, false
		}
		all = append(all, verdict(s, judged))
	}
	if labelled, ok := verdicts[target.Ref{}]; ok {
		all = append(all, labelled)
	}
	if len(all) == 0 {
		return health.Verdict{Status: health.Unknown, Reason: "NothingListed"}, true
	}
	return health.Worst(all...), true
}

// Health returns the verdict on a workload in words; empty while it is not known.
func (w *Watcher) Health(workload string) (status, reason, message string) {
	v, ok := w.Verdict(workload)
	if !ok {
		return "", "", ""
	}
	return string(v.Status), v.Reason, v.Message
}

// markStatus makes a worker judge a workload after a while, in which more changes may come.
func (w *Watcher) markStatus(workload string) { w.statuses.AddAfter(workload, w.config.StatusDelay) }

// reconcileWorkloads begins to judge the workloads that are new, judges again those whose list changed, and
// ends with those that are gone.
func (w *Watcher) reconcileWorkloads() {
	declared := map[string]target.Workload{}
	for _, name := range w.targets.Workloads() {
		if wl, ok := w.targets.Workload(name); ok {
			declared[name] = wl
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	judged := map[target.Instance]struct{}{}
	for name, wl := range declared {
		judged[wl.Instance] = struct{}{}
		if old, ok := w.tracked[name]; !ok || old.Instance != wl.Instance || !slices.Equal(old.Resources, wl.Resources) {
			w.markStatus(name)
		}
	}
	for name, old := range w.tracked {
		if _, ok := declared[name]; !ok {
			w.board.forget(name)
		}
		if _, ok := judged[old.Instance]; !ok {
			key := observe.Status{Workload: old.Instance}.Key()
			w.sink.Withdraw(key)
			w.sink.Forget(key)
		}
		for other, wl := range declared { // what is left of its instance
			if _, ok := declared[name]; !ok && wl.Instance == old.Instance {
				w.markStatus(other)
			}
		}
	}
	w.tracked = declared
}

// reconcileStatus reports the verdict on a workload's instance.
func (w *Watcher) reconcileStatus(_ context.Context, workload string) error {
	if v, ok := w.instanceVerdict(workload); ok {
		w.mu.Lock()
		// Not under the mutex it could come after the withdrawal of a workload that is gone.
		if wl, ok := w.tracked[workload]; ok {
			w.sink.Offer(observe.Status{Workload: wl.Instance, Status: string(v.Status)})
		}
		w.mu.Unlock()
	}
	w.changed(workload)
	return nil
}

// instanceVerdict returns the worst verdict on the workloads of the same instance: an instance has one status,
// however many ThreeportWorkloads declare parts of it.
func (w *Watcher) instanceVerdict(workload string) (health.Verdict, bool) {
	w.mu.Lock()
	var parts []string
	for name, wl := range w.tracked {
		if wl.Instance == w.tracked[workload].Instance {
			parts = append(parts, name)
		}
	}
	w.mu.Unlock()
	verdicts := make([]health.Verdict, len(parts))
	for i, name := range parts {
		v, ok := w.Verdict(name)
		if !ok {
			return health.Verdict{}, false
		}
		verdicts[i] = v
	}
	return health.Worst(verdicts...), len(parts) > 0
}
