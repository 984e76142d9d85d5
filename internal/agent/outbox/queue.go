package outbox

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// The classes of groups that have something to send. They take turns.
const (
	classState       = iota // operations, statuses and trees
	classLarge              // large operations
	classSync               // initial syncs
	classFresh              // Events
	classBacklog            // Events that waited for the end of an outage, or for this process to start
	classQuarantined        // reports that fail while others succeed
	classes
)

func classOf(e *entry) int {
	_, isEvent := e.report.(observe.Event)
	_, isSync := e.report.(InitialSync)
	switch {
	case e.retry.quarantined():
		return classQuarantined
	case isSync:
		return classSync
	case isLarge(e.report):
		return classLarge
	case !isEvent:
		return classState
	case e.backlog:
		return classBacklog
	}
	return classFresh
}

// isLarge reports whether a report takes long to send, because its body is read then.
func isLarge(r observe.Report) bool {
	op, ok := r.(observe.Operation)
	return ok && op.Source != nil
}

// queues are the groups that have something to send and nothing out, by class.
type queues struct {
	classes [classes]classQueue
	turn    int // the class that was served last
}

// classQueue has the groups of a class. In ready are those that are due; their instances take turns, so that thousands of reports of one
// do not delay those of others. In waiting are those that are due later.
type classQueue struct {
	ready, waiting groupHeap
	served         uint64                     // the turn of the group that was next last
	lastTurn       map[target.Instance]uint64 // of each instance with a group in ready
}

// add queues a group. It is due when its first entry may be tried again.
func (q *queues) add(g *group, now time.Time) {
	due := now
	if retryAt := g.first().retry.retryAt; retryAt.After(now) {
		due = retryAt
	}
	q.classes[classOf(g.first())].add(g, due, now)
}

func (q *classQueue) add(g *group, due, now time.Time) {
	if due.After(now) {
		q.waiting.add(g, due, 0)
		return
	}
	q.wakeDue(now)
	q.addReady(g, due)
}

// wakeDue moves the groups that are due to ready.
func (q *classQueue) wakeDue(now time.Time) {
	for q.waiting.Len() > 0 && !q.waiting.groups[0].place.due.After(now) {
		g := q.waiting.groups[0]
		due := g.place.due
		g.dequeue()
		q.addReady(g, due)
	}
}

// addReady gives a group the next turn of its instance. An initial sync comes before those that have had more turns: with hundreds of
// long ones, a new one would wait for a turn of each.
func (q *classQueue) addReady(g *group, due time.Time) {
	if first := g.first(); classOf(first) == classSync {
		q.ready.add(g, due, uint64(first.retry.turns)+1) //nolint:gosec // a count
		return
	}
	if q.lastTurn == nil {
		q.lastTurn = map[target.Instance]uint64{}
	}
	if q.ready.Len() == 0 {
		clear(q.lastTurn)
	}
	instance := g.first().report.Instance()
	turn := max(q.served, q.lastTurn[instance]) + 1
	q.lastTurn[instance] = turn
	q.ready.add(g, due, turn)
}

// next returns the group that is next, or else the earliest time at which one is due, zero if there is none.
func (q *classQueue) next(now time.Time) (*group, time.Time) {
	q.wakeDue(now)
	switch {
	case q.ready.Len() > 0:
		q.served = q.ready.groups[0].place.turn
		return q.ready.groups[0], time.Time{}
	case q.waiting.Len() > 0:
		return nil, q.waiting.groups[0].place.due
	}
	return nil, time.Time{}
}

// groups visits all groups of a class.
func (q *classQueue) groups(yield func(*group) bool) {
	for _, heap := range []*groupHeap{&q.ready, &q.waiting} {
		for _, g := range heap.groups {
			if !yield(g) {
				return
			}
		}
	}
}

func (q *queues) isEmpty() bool {
	for class := range q.classes {
		for range q.classes[class].groups {
			return false
		}
	}
	return true
}

// next returns the group that is next, or else the earliest time at which one is due, zero if none is queued. It leaves out the full
// classes: their reports that are being sent are at the limit.
func (q *queues) next(now time.Time, full [classes]bool) (*group, time.Time) {
	var earliest time.Time
	for i := range classes {
		class := (q.turn + 1 + i) % classes
		if full[class] {
			continue
		}
		g, due := q.classes[class].next(now)
		if g != nil {
			q.turn = class
			return g, time.Time{}
		}
		if earliest.IsZero() || !due.IsZero() && due.Before(earliest) {
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
	for class := range q.classes {
		for g := range q.classes[class].groups {
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
		for g := range q.classes[class].groups {
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
	for class := range q.classes {
		all = slices.AppendSeq(all, q.classes[class].groups)
	}
	for _, g := range all {
		g.first().retry.retryAt = time.Time{}
		g.dequeue()
	}
	return all
}

// groupHeap is a heap of groups by their turn, then by the time at which they are due, first come first served.
type groupHeap struct {
	groups []*group
	added  uint64
}

// heapPlace is the place of a group in a heap.
type heapPlace struct {
	in    *groupHeap // nil if the group is in none
	index int
	turn  uint64 // 0 if it waits
	due   time.Time
	order uint64 // in which the groups were added
}

// add adds a group with its turn, and the time at which it is due.
func (h *groupHeap) add(g *group, due time.Time, turn uint64) {
	h.added++
	g.place = heapPlace{in: h, turn: turn, due: due, order: h.added}
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
	return cmp.Or(cmp.Compare(x.turn, y.turn), x.due.Compare(y.due), cmp.Compare(x.order, y.order)) < 0
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
	if h.groups = h.groups[:last]; last == 0 {
		h.groups = nil // the array keeps the memory of its largest size
	}
	return g
}
