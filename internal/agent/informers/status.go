package informers

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// verdict judges a resource by what is seen of it.
func verdict(s target.ResourceStatus, judged health.Verdict) health.Verdict {
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

// ResourceStatuses returns what is seen of each resource of a workload, in the order in which they are listed.
func (w *Watcher) ResourceStatuses(workload string) []target.ResourceStatus {
	wl, ok := w.targets.Workload(workload)
	if !ok {
		return nil
	}
	judged := w.board.judgements(workload)
	out := make([]target.ResourceStatus, 0, len(wl.Resources))
	for _, r := range wl.Resources {
		s := w.sight(r)
		j := judged[r.Ref]
		v := verdict(s, j.Verdict)
		s.Health, s.Reason, s.Cause, s.Pods = string(v.Status), v.Reason, v.Message, j.pods
		out = append(out, s)
	}
	return out
}

// Verdict returns the verdict on a workload, the worst of its resources', damped if it flaps; false while some of them
// have not been seen for the first time.
func (w *Watcher) Verdict(workload string) (health.Verdict, bool) {
	v, ok := w.undamped(workload)
	if !ok {
		return v, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.flapping[workload]; f != nil {
		v, _ = f.Damp(v, w.now())
	}
	return v, true
}

// undamped returns the worst verdict on a workload's resources, and says how many others are not Healthy.
func (w *Watcher) undamped(workload string) (health.Verdict, bool) {
	wl, ok := w.targets.Workload(workload)
	if !ok {
		return health.Verdict{}, false
	}
	judged := w.board.judgements(workload)
	all := make([]health.Verdict, 0, len(wl.Resources)+1)
	for _, r := range wl.Resources {
		s := w.sight(r)
		j := judged[r.Ref]
		if s.State == target.Pending || s.State == target.Present && j.Status == "" {
			return health.Verdict{}, false
		}
		all = append(all, verdict(s, j.Verdict))
	}
	if labelled, ok := judged[target.Ref{}]; ok {
		all = append(all, labelled.Verdict)
	}
	if len(all) == 0 {
		return health.NothingListed, true
	}
	worst := health.Worst(all...)
	others := -1
	for _, v := range all {
		if v.Status != health.Healthy {
			others++
		}
	}
	switch {
	case others == 1:
		worst.Message += "; 1 other resource is not Healthy"
	case others > 1:
		worst.Message += fmt.Sprintf("; %d other resources are not Healthy", others)
	}
	return worst, true
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
	parts := map[target.Instance][]string{}
	for name, wl := range declared {
		parts[wl.Instance] = append(parts[wl.Instance], name)
		if old, ok := w.tracked[name]; !ok || old.Instance != wl.Instance || !slices.Equal(old.Resources, wl.Resources) {
			w.markStatus(name)
			w.treeOfInstance(wl.Instance).changed = true
		}
		if w.flapping[name] == nil {
			w.flapping[name] = &health.Flapping{}
		}
	}
	for name, old := range w.tracked {
		if len(parts[old.Instance]) == 0 {
			for _, key := range []observe.Key{
				observe.Status{Workload: old.Instance}.Key(), observe.Tree{Workload: old.Instance}.Key(),
			} {
				w.sink.Cancel(key)
				w.sink.Forget(key)
			}
			delete(w.posted, old.Instance)
			delete(w.trees, old.Instance)
		}
		if _, ok := declared[name]; !ok {
			w.board.forget(name)
			delete(w.flapping, name)
			w.forgetChange(name)
			for _, other := range parts[old.Instance] { // what is left of its instance
				w.markStatus(other)
				w.treeOfInstance(old.Instance).changed = true
			}
		}
	}
	w.tracked = declared
}

// post is what was offered last of an instance's status, and when.
type post struct {
	status, version string
	delivery        observe.DeliveryCounts
	since           time.Time // when the status became what it is; zero if that is not known
	at              time.Time
}

// reconcileStatus reports the verdict on a workload's instance.
func (w *Watcher) reconcileStatus(_ context.Context, workload string) error {
	w.noteVerdict(workload)
	w.mu.Lock()
	instance := w.tracked[workload].Instance
	w.mu.Unlock()
	if status, ok := w.status(instance); ok {
		w.postStatus(workload, status)
		w.postTree(workload, instance)
	}
	w.changed(workload)
	return nil
}

// noteVerdict tells of the verdict on a workload what damps it, and comes again when that may end.
func (w *Watcher) noteVerdict(workload string) {
	v, ok := w.undamped(workload)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f, now := w.flapping[workload], w.now()
	if f == nil {
		return
	}
	f.Note(v, now)
	if _, until := f.Damp(v, now); !until.IsZero() {
		w.statuses.AddAfter(workload, until.Sub(now))
	}
}

// postStatus offers the status of a workload's instance: the first at once, and another when enough time has passed. In
// between it comes again for the one that it is by then.
func (w *Watcher) postStatus(workload string, status observe.Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// Not under the mutex it could come after the withdrawal of a workload that is gone.
	if w.tracked[workload].Instance != status.Workload {
		return
	}
	now, last := w.now(), w.posted[status.Workload]
	if last.version != status.Version() {
		if wait := last.at.Add(w.config.StatusInterval).Sub(now); !last.at.IsZero() && wait > 0 {
			w.statuses.AddAfter(workload, wait)
			return
		}
		since := status.Since
		if last.status != "" && last.status != status.Status {
			since = now.UTC()
		}
		if status.Round != 0 {
			status.Since = since
		}
		w.posted[status.Workload] = post{status.Status, status.Version(), status.DeliveryCounts, since, now}
	}
	w.sink.Offer(status)
}

// status returns the worst verdict on the workloads of an instance, which has one status, however many
// ThreeportWorkloads declare parts of it; false while some of it has not been seen for the first time.
func (w *Watcher) status(instance target.Instance) (observe.Status, bool) {
	w.mu.Lock()
	var parts []string
	for name, wl := range w.tracked {
		if wl.Instance == instance {
			parts = append(parts, name)
		}
	}
	w.mu.Unlock()
	out := observe.Status{Workload: instance}
	verdicts := make([]health.Verdict, len(parts))
	for i, name := range parts {
		v, ok := w.Verdict(name)
		if !ok {
			return out, false
		}
		verdicts[i] = v
	}
	if len(parts) == 0 {
		return out, false
	}
	worst := health.Worst(verdicts...)
	out.Status = string(worst.Status)
	if out.Round = w.round.Load(); out.Round == 0 {
		return out, true
	}
	out.Reason, out.Cause, out.Since = worst.Reason, worst.Message, w.statusSince(out, parts)
	if w.config.Delivery != nil {
		out.DeliveryCounts = w.config.Delivery(instance)
	}
	return out, true
}

// statusSince returns since when the status of an instance is what it is, as far as that was seen, or is announced of one
// of its workloads; else zero.
func (w *Watcher) statusSince(s observe.Status, parts []string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.posted[s.Workload]
	if last.status != "" && last.status != s.Status {
		return time.Time{} // it has just become so
	}
	since := last.since
	for _, name := range parts {
		if ev := w.announced[name]; last.since.IsZero() && ev.Reason == observe.ReasonWorkload+s.Status &&
			(since.IsZero() || ev.Time.Before(since)) {
			since = ev.Time
		}
	}
	return since
}

// Detail tells whether the control plane takes all that is true of workloads, with causes and trees, or words only. Either
// way all is offered anew: it may be another control plane.
func (w *Watcher) Detail(on bool) {
	w.mu.Lock()
	if w.round.Store(0); on {
		w.round.Store(max(w.now().UnixMicro(), w.rounds+1))
		w.rounds = w.round.Load()
	}
	for _, t := range w.trees {
		t.changed = true
	}
	for name := range w.tracked {
		w.markStatus(name)
	}
	w.mu.Unlock()
	if on {
		w.ReassessAll()
	}
}

// recountEvery is how often it is looked whether a workload's reports are delivered as its status says.
const recountEvery = 15 * time.Second

// recount has the statuses told again whose counts of reports are not right any more.
func (w *Watcher) recount() {
	if w.round.Load() == 0 || w.config.Delivery == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, wl := range w.tracked {
		if last, ok := w.posted[wl.Instance]; ok && last.delivery != w.config.Delivery(wl.Instance) {
			w.markStatus(name)
		}
	}
}
