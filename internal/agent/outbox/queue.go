package outbox

import (
	"container/heap"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
)

// The classes of groups that have something to send. They take turns.
const (
	classState       = iota // operations, statuses and trees
	classFresh              // Events
	classBacklog            // Events that waited for the end of an outage, or for this process to start
	classQuarantined        // reports that fail while others succeed
	classes
)

func classOf(e *entry) int {
	_, isEvent := e.report.(observe.Event)
	switch {
	case e.retry.quarantined():
		return classQuarantined
	case !isEvent:
		return classState
	case e.backlog:
		return classBacklog
	}
	return classFresh
}

// queues are the groups that have something to send and nothing out, by class.
type queues struct {
	heaps [classes]groupHeap
	turn  int // the class that was served last
}

// add queues a group. It is due when its first entry may be tried again.
func (q *queues) add(g *group, now time.Time) {
	due := now
	if retryAt := g.first().retry.retryAt; retryAt.After(now) {
		due = retryAt
	}
	q.heaps[classOf(g.first())].add(g, due)
}

func (q *queues) isEmpty() bool {
	for class := range q.heaps {
		if q.heaps[class].Len() > 0 {
			return false
		}
	}
	return true
}

// next returns the group that is next, or else the earliest time at which one is due, zero if none is queued.
func (q *queues) next(now time.Time, withQuarantined bool) (*group, time.Time) {
	var earliest time.Time
	for i := range classes {
		class := (q.turn + 1 + i) % classes
		h := &q.heaps[class]
		if h.Len() == 0 || class == classQuarantined && !withQuarantined {
			continue
		}
		due := h.groups[0].place.due
		if !due.After(now) {
			q.turn = class
			return h.groups[0], time.Time{}
		}
		if earliest.IsZero() || due.Before(earliest) {
			earliest = due
		}
	}
	return nil, earliest
}

// nextProbe is next for the probe of an outage: the group whose first entry was tried least. If the outage is only a few
// reports that fail, the first report without a fault ends it.
func (q *queues) nextProbe(now time.Time) (*group, time.Time) {
	var best *group
	var earliest time.Time
	for class := range q.heaps {
		for _, g := range q.heaps[class].groups {
			switch due := g.place.due; {
			case due.After(now):
				if earliest.IsZero() || due.Before(earliest) {
					earliest = due
				}
			case best == nil || g.attempts() < best.attempts() || g.attempts() == best.attempts() && due.Before(best.place.due):
				best = g
			}
		}
	}
	return best, earliest
}

func (g *group) attempts() int { return g.first().retry.attempts }

// endOutage makes the first report of each waiting group a part of the backlog, except for the quarantine. It removes and
// returns the groups that have to be queued again. The others keep their turn: thousands may wait through many outages.
func (q *queues) endOutage(now time.Time) (again []*group) {
	for class := range classQuarantined {
		for _, g := range q.heaps[class].groups {
			if class == classFresh || g.place.due.After(now) {
				again = append(again, g)
			}
			g.first().retry.waits, g.first().backlog = 0, true
		}
	}
	for _, g := range again {
		g.first().retry.retryAt = time.Time{}
		g.dequeue()
	}
	return again
}

// takeAll removes and returns all groups, to be queued again without a wait.
func (q *queues) takeAll() (all []*group) {
	for class := range q.heaps {
		all = append(all, q.heaps[class].groups...)
	}
	for _, g := range all {
		g.first().retry.retryAt = time.Time{}
		g.dequeue()
	}
	return all
}

// groupHeap is a heap of groups by the time at which they are due, first come first served.
type groupHeap struct {
	groups []*group
	turns  uint64
}

// heapPlace is the place of a group in a heap.
type heapPlace struct {
	in    *groupHeap // nil if the group is in none
	index int
	due   time.Time
	turn  uint64
}

// add adds a group that is due at a time.
func (h *groupHeap) add(g *group, due time.Time) {
	h.turns++
	g.place = heapPlace{in: h, due: due, turn: h.turns}
	heap.Push(h, g)
}

// isQueued reports whether a group is in a heap.
func (g *group) isQueued() bool { return g.place.in != nil }

// dequeue removes a group from its heap, if it is in one.
func (g *group) dequeue() {
	if g.isQueued() {
		heap.Remove(g.place.in, g.place.index)
		g.place.in = nil
	}
}

// Len, Less, Swap, Push and Pop are for package heap.
func (h *groupHeap) Len() int { return len(h.groups) }

func (h *groupHeap) Less(i, j int) bool {
	x, y := h.groups[i].place, h.groups[j].place
	if x.due.Equal(y.due) {
		return x.turn < y.turn
	}
	return x.due.Before(y.due)
}

func (h *groupHeap) Swap(i, j int) {
	h.groups[i], h.groups[j] = h.groups[j], h.groups[i]
	h.groups[i].place.index, h.groups[j].place.index = i, j
}

// Push appends a group.
func (h *groupHeap) Push(x any) {
	g := x.(*group)
	g.place.index = len(h.groups)
	h.groups = append(h.groups, g)
}

// Pop removes the last group.
func (h *groupHeap) Pop() any {
	last := len(h.groups) - 1
	g := h.groups[last]
	h.groups[last] = nil
	h.groups = h.groups[:last]
	return g
}
