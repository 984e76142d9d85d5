package informers

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// recorder is a Sink that keeps what it is given.
type recorder struct {
	mu       sync.Mutex
	offered  []observe.Report
	times    []time.Time // when each was
	clock    func(observe.Report) time.Time
	versions map[observe.Key]string // what was offered last
	withdrew []observe.Key
	forgot   []observe.Key
}

func (r *recorder) Offer(report observe.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.versions == nil {
		r.versions = map[observe.Key]string{}
	}
	// As an outbox does: a version that it has is no news.
	if version, ok := r.versions[report.Key()]; ok && version == report.Version() {
		return
	}
	r.versions[report.Key()] = report.Version()
	at := time.Now()
	if r.clock != nil {
		at = r.clock(report)
	}
	r.offered, r.times = append(r.offered, report), append(r.times, at)
}

func (r *recorder) Cancel(key observe.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.withdrew = append(r.withdrew, key)
}

func (r *recorder) Forget(key observe.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgot = append(r.forgot, key)
}

// operations returns what was offered about a name, oldest first.
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

func (r *recorder) withdrawn(key observe.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.withdrew, key)
}

// lives tells of operations which incarnation they are of, and whether it is deleted, with repeats left out:
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
