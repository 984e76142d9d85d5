package reporter

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// transitions records the offered Event about the last transition of each workload's health. It implements
// assess.Transitions.
type transitions struct {
	store records

	mu   sync.Mutex
	last map[string]observe.Event // by workload; of an earlier process the UID only
}

func newTransitions(store records) *transitions {
	t := &transitions{store: store, last: map[string]observe.Event{}}
	for workload, uid := range store.load(transitionTable) {
		t.last[workload] = observe.Event{UID: types.UID(uid)}
	}
	return t
}

// set records the last transition of a workload, and returns the recorded one.
func (t *transitions) set(workload string, ev observe.Event) (before observe.Event) {
	t.mu.Lock()
	before = t.last[workload]
	t.last[workload] = ev
	t.mu.Unlock()
	if before.UID != ev.UID {
		t.store.put(transitionTable, workload, string(ev.UID))
	}
	return before
}

// remove removes the transition of a workload that is no longer declared.
func (t *transitions) remove(workload string) (observe.Event, bool) {
	t.mu.Lock()
	before, ok := t.last[workload]
	delete(t.last, workload)
	t.mu.Unlock()
	if ok {
		t.store.delete(transitionTable, workload)
	}
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

func (t *transitions) workloads() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.last))
}

func (t *transitions) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.last)
}
