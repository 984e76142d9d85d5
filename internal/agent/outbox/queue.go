package outbox

import (
	"container/heap"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
)

// The classes of lanes that have something to send. They take turns.
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

// queues are the lanes that have something to send and nothing out, by class.
type queues struct {
	heaps [classes]laneHeap
	turn  int // the class that was served last
}

// add queues a lane. It is due when its first entry may be tried again.
func (q *queues) add(l *lane, now time.Time) {
	due := now
	if retryAt := l.first().retry.retryAt; retryAt.After(now) {
		due = retryAt
	}
	q.heaps[classOf(l.first())].add(l, due)
}

func (q *queues) isEmpty() bool {
	for class := range q.heaps {
		if q.heaps[class].Len() > 0 {
			return false
		}
	}
	return true
}

// next returns the lane that is next, or else the earliest time at which one is due, zero if none is queued.
func (q *queues) next(now time.Time, withQuarantined bool) (*lane, time.Time) {
	var earliest time.Time
	for i := range classes {
		class := (q.turn + 1 + i) % classes
		h := &q.heaps[class]
		if h.Len() == 0 || class == classQuarantined && !withQuarantined {
			continue
		}
		due := h.lanes[0].place.due
		if !due.After(now) {
			q.turn = class
			return h.lanes[0], time.Time{}
		}
		if earliest.IsZero() || due.Before(earliest) {
			earliest = due
		}
	}
	return nil, earliest
}

// nextProbe is next for the probe of an outage: the lane whose first entry was tried least. If the outage is only a few
// reports that fail, the first report without a fault ends it.
func (q *queues) nextProbe(now time.Time) (*lane, time.Time) {
	var best *lane
	var earliest time.Time
	for class := range q.heaps {
		for _, l := range q.heaps[class].lanes {
			switch due := l.place.due; {
			case due.After(now):
				if earliest.IsZero() || due.Before(earliest) {
					earliest = due
				}
			case best == nil || l.attempts() < best.attempts() || l.attempts() == best.attempts() && due.Before(best.place.due):
				best = l
			}
		}
	}
	return best, earliest
}

func (l *lane) attempts() int { return l.first().retry.attempts }

// endOutage makes everything that waits a part of the backlog, except for the quarantine. It removes and returns the lanes
// that have to be queued again. The others keep their turn: thousands may wait through many outages.
func (q *queues) endOutage(now time.Time) (again []*lane) {
	for class := range classQuarantined {
		for _, l := range q.heaps[class].lanes {
			if class == classFresh || l.place.due.After(now) {
				again = append(again, l)
			}
			l.first().retry.waits, l.first().backlog = 0, true
		}
	}
	for _, l := range again {
		l.first().retry.retryAt = time.Time{}
		l.dequeue()
	}
	return again
}

// takeAll removes and returns all lanes, to be queued again without a wait.
func (q *queues) takeAll() (all []*lane) {
	for class := range q.heaps {
		all = append(all, q.heaps[class].lanes...)
	}
	for _, l := range all {
		l.first().retry.retryAt = time.Time{}
		l.dequeue()
	}
	return all
}

// laneHeap is a heap of lanes by the time at which they are due, first come first served.
type laneHeap struct {
	lanes []*lane
	turns uint64
}

// heapPlace is the place of a lane in a heap.
type heapPlace struct {
	in    *laneHeap // nil if the lane is in none
	index int
	due   time.Time
	turn  uint64
}

// add adds a lane that is due at a time.
func (h *laneHeap) add(l *lane, due time.Time) {
	h.turns++
	l.place = heapPlace{in: h, due: due, turn: h.turns}
	heap.Push(h, l)
}

// isQueued reports whether a lane is in a heap.
func (l *lane) isQueued() bool { return l.place.in != nil }

// dequeue removes a lane from its heap, if it is in one.
func (l *lane) dequeue() {
	if l.isQueued() {
		heap.Remove(l.place.in, l.place.index)
		l.place.in = nil
	}
}

// Len, Less, Swap, Push and Pop are for package heap.
func (h *laneHeap) Len() int { return len(h.lanes) }

func (h *laneHeap) Less(i, j int) bool {
	x, y := h.lanes[i].place, h.lanes[j].place
	if x.due.Equal(y.due) {
		return x.turn < y.turn
	}
	return x.due.Before(y.due)
}

func (h *laneHeap) Swap(i, j int) {
	h.lanes[i], h.lanes[j] = h.lanes[j], h.lanes[i]
	h.lanes[i].place.index, h.lanes[j].place.index = i, j
}

// Push appends a lane.
func (h *laneHeap) Push(x any) {
	l := x.(*lane)
	l.place.index = len(h.lanes)
	h.lanes = append(h.lanes, l)
}

// Pop removes the last lane.
func (h *laneHeap) Pop() any {
	last := len(h.lanes) - 1
	l := h.lanes[last]
	h.lanes[last] = nil
	h.lanes = h.lanes[:last]
	return l
}
