package reporter

import (
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// recorder is a Sink that records its calls.
type recorder struct {
	mu        sync.Mutex
	offered   []observe.Report
	times     []time.Time                          // when each was
	bySubject map[observe.Subject][]observe.Report // the offered ones: a slow sink would make the caches lag
	byKey     map[observe.Key][]observe.Report
	clock     func(observe.Report) time.Time
	versions  map[observe.Key]string // the last one of each key that was offered or dropped
	cancelled []observe.Key
	forgot    []observe.Key
	retained  map[observe.Subject][]observe.Key // by the last call of ForgetExcept
	restored  []types.UID                       // Events of an earlier process
	reoffer   chan struct{}                     // nil unless a test sets it
	dropped   []droppedEvent
	retried   map[target.Instance]bool // instances whose initial sync may begin
}

// droppedEvent is an Event that a filter left out.
type droppedEvent struct {
	observe.Event
	filter string
}

func (r *recorder) IsSyncDeferred(target.Instance) bool { return true }

// RetrySync records that the objects of an instance have been listed.
func (r *recorder) RetrySync(id target.Instance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.retried == nil {
		r.retried = map[target.Instance]bool{}
	}
	r.retried[id] = true
}

func (r *recorder) isRetried(id target.Instance) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.retried[id]
}

// Reopen forgets what was offered of the status and the objects of an instance.
func (r *recorder) Reopen(id target.Instance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, report := range r.offered {
		if _, isEvent := report.(observe.Event); !isEvent && report.Instance() == id {
			delete(r.versions, report.Key())
		}
	}
}

func (r *recorder) Reoffer() <-chan struct{} { return r.reoffer }

func (r *recorder) Offer(report observe.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Like an outbox, it ignores a report of a version that was offered or dropped.
	if version, ok := r.versions[report.Key()]; ok && version == report.Version() {
		return
	}
	r.setVersion(report)
	at := time.Now()
	if r.clock != nil {
		at = r.clock(report)
	}
	r.offered, r.times = append(r.offered, report), append(r.times, at)
	if r.byKey == nil {
		r.bySubject, r.byKey = map[observe.Subject][]observe.Report{}, map[observe.Key][]observe.Report{}
	}
	subject, key := observe.SubjectOf(report), report.Key()
	r.bySubject[subject], r.byKey[key] = append(r.bySubject[subject], report), append(r.byKey[key], report)
}

func (r *recorder) setVersion(report observe.Report) {
	if r.versions == nil {
		r.versions = map[observe.Key]string{}
	}
	r.versions[report.Key()] = report.Version()
}

// clear forgets what was offered, so that the same versions are recorded again.
func (r *recorder) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.offered, r.times, r.bySubject, r.byKey, r.versions = nil, nil, nil, nil, nil
}

func (r *recorder) Cancel(key observe.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancelled = append(r.cancelled, key)
}

// DropRejected does nothing: the recorder rejects no report.
func (r *recorder) DropRejected(observe.Subject, ...target.Instance) {}

// ForgetExcept does as an outbox: it forgets the offered keys of a subject, except those to keep, and cancels them unless
// they are Events or deletions.
func (r *recorder) ForgetExcept(subject observe.Subject, keep ...observe.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.retained == nil {
		r.retained = map[observe.Subject][]observe.Key{}
	}
	r.retained[subject] = keep
	for _, report := range r.bySubject[subject] {
		if slices.Contains(keep, report.Key()) {
			continue
		}
		r.forgot = append(r.forgot, report.Key())
		op, isOperation := report.(observe.Operation)
		if _, isEvent := report.(observe.Event); !isEvent && (!isOperation || !op.Deleted) {
			r.cancelled = append(r.cancelled, report.Key())
		}
	}
}

// lastRetained returns the keys to keep in the last call of ForgetExcept for a subject.
func (r *recorder) lastRetained(subject observe.Subject) []observe.Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.retained[subject]
}

// retainsNone reports whether the reporter has asked to forget all keys of a subject.
func (r *recorder) retainsNone(subject observe.Subject) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	keep, ok := r.retained[subject]
	return ok && len(keep) == 0
}

func (r *recorder) ForgetRestoredEvents() {}

func (r *recorder) IsConfirmed(instance target.Instance) bool { return instance.ID%2 == 0 }

func (r *recorder) Drop(ev observe.Event, filter string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.dropped, func(other droppedEvent) bool {
		return other.UID == ev.UID && other.ResourceVersion == ev.ResourceVersion
	}) {
		return false
	}
	r.dropped = append(r.dropped, droppedEvent{ev, filter})
	r.setVersion(ev)
	return true
}

// droppedBy returns the numbers of dropped Events by their filters.
func (r *recorder) droppedBy() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]int{}
	for _, ev := range r.dropped {
		out[ev.filter]++
	}
	return out
}

func (r *recorder) Has(report observe.Report) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.byKey[report.Key()], func(other observe.Report) bool { return report.Version() == other.Version() })
}

func (r *recorder) Knows(key observe.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byKey[key]) > 0
}

// Events returns the Events that were offered, by this process or, as far as the test says so, by an earlier one.
func (r *recorder) Events() iter.Seq[types.UID] {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Clone(r.restored)
	for _, report := range r.offered {
		if ev, ok := report.(observe.Event); ok && !ev.Synthetic {
			out = append(out, ev.UID)
		}
	}
	return slices.Values(out)
}

// operations returns the offered operations of a name, oldest first.
func (r *recorder) operations(ref target.Ref) []observe.Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []observe.Operation
	for _, report := range r.offered {
		if op, ok := report.(observe.Operation); ok && op.Object.Ref == ref {
			out = append(out, op)
		}
	}
	return out
}

// events returns the Events that were offered with a reason.
func (r *recorder) events(reason string) []observe.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []observe.Event
	for _, report := range r.offered {
		if ev, ok := report.(observe.Event); ok && ev.Reason == reason {
			out = append(out, ev)
		}
	}
	return out
}

// status returns the last status of a workload.
func (r *recorder) status(instance target.Instance) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, report := range slices.Backward(r.offered) {
		if s, ok := report.(observe.Status); ok && s.Workload == instance {
			return s.Status
		}
	}
	return ""
}

func (r *recorder) isCancelled(key observe.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.cancelled, key)
}

// lives formats operations as incarnation numbers, with a suffix for deletions, and without repeats:
// "1 1-deleted 2" is an object that was deleted and created again.
func lives(operations []observe.Operation) string {
	incarnations := map[string]int{}
	var out []string
	for _, op := range operations {
		uid := string(op.Object.UID)
		if incarnations[uid] == 0 {
			incarnations[uid] = len(incarnations) + 1
		}
		word := fmt.Sprint(incarnations[uid])
		if op.Deleted {
			word += "-deleted"
		}
		if len(out) == 0 || out[len(out)-1] != word {
			out = append(out, word)
		}
	}
	return fmt.Sprint(out)
}

func (r *recorder) forgotten(key observe.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.forgot, key)
}
