package reporter

import (
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// transitions records the last transition of each workload's health. It implements assess.Transitions.
type transitions struct {
	mu   sync.Mutex
	last map[string]transition // by workload
}

// transition is the Event about a transition of a workload's health, and the current cause of that health.
type transition struct {
	observe.Event
	cause target.Cause
}

func newTransitions() *transitions { return &transitions{last: map[string]transition{}} }

// set records the last transition of a workload, and returns the one before.
func (t *transitions) set(workload string, last transition) (before transition, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, known = t.last[workload]
	t.last[workload] = last
	return before, known
}

// remove removes the transition of a workload that is no longer declared.
func (t *transitions) remove(workload string) (transition, bool) {
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

// CauseSince returns when a cause of a workload's status became what it is, if it is the recorded one; else zero. It may outlast a status.
func (t *transitions) CauseSince(workload, reason string) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cause := t.last[workload].cause; health.IsSameCause(reason, cause.Reason) {
		return cause.Since
	}
	return time.Time{}
}

// after returns the Events about transitions of an instance's workloads after a time.
func (t *transitions) after(since time.Time, instance target.Instance) []observe.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []observe.Event
	for _, last := range t.last {
		if last.Workload == instance && last.Time.After(since) {
			out = append(out, last.Event)
		}
	}
	return out
}
