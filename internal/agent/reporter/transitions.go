package reporter

import (
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// transitions records the Event about the last transition of each workload's health. It implements assess.Transitions.
type transitions struct {
	mu   sync.Mutex
	last map[string]observe.Event // by workload
}

func newTransitions() *transitions { return &transitions{last: map[string]observe.Event{}} }

// set records the last transition of a workload, and returns the one before.
func (t *transitions) set(workload string, ev observe.Event) (before observe.Event, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, known = t.last[workload]
	t.last[workload] = ev
	return before, known
}

// remove removes the transition of a workload that is no longer declared.
func (t *transitions) remove(workload string) (observe.Event, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, ok := t.last[workload]
	delete(t.last, workload)
	return before, ok
}

// Since returns the time of the last transition of a workload, if it was to the given status; else zero.
func (t *transitions) Since(workload, status string) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ev := t.last[workload]; ev.Reason == observe.ReasonWorkload+status {
		return ev.Time
	}
	return time.Time{}
}

// after returns the Events about transitions of an instance's workloads after a time.
func (t *transitions) after(since time.Time, instance target.Instance) []observe.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []observe.Event
	for _, ev := range t.last {
		if ev.Workload == instance && ev.Time.After(since) {
			out = append(out, ev)
		}
	}
	return out
}
