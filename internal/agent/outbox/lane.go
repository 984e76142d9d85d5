package outbox

import (
	"container/heap"
	"container/list"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
)

// entry is one key. It is idle (only its receipt counts), queued in its lane, or out.
type entry struct {
	key     observe.Key
	lane    *lane
	report  observe.Report // what is still to be delivered; nil if nothing is
	receipt Receipt
	version string // of the last report that was accepted, rejected or dropped
	settled bool   // there was one
	dropped bool   // it was dropped to keep the bound
	// modified is true if what was accepted of it last was not the first.
	modified bool
	operand  *operand // where its workload's account tells of it; nil if it does not
	dead     *deadLetter
	pace     pace
	since    time.Time // when it became pending
	renewed  time.Time // when what is out was replaced; zero if it was not
	forgets  bool      // drop the entry once it is idle
	backlog  bool      // it waited for the end of an outage
	repair   bool      // what is to be delivered was accepted before
	// restored is true if the memory kept what is to be delivered, and nothing was offered since.
	restored bool
	stored   stored
}

// stored is what the memory has of an entry besides the receipt.
type stored struct {
	kept  bool          // the report that is to be delivered
	place *list.Element // among what may be dropped
	bytes int64         // about
}

func (e *entry) isOut() bool { return e.lane.out == e }

func (e *entry) isIdle() bool { return e.report == nil && !e.isOut() }

// lane is the order among the entries that share one.
type lane struct {
	name    observe.OrderingKey
	entries []*entry // of this lane, idle ones too, in the order in which they came up
	queue   []*entry // those with something to send, without the one that is out
	out     *entry   // being sent
	due     time.Time
	turn    uint64
	in      *laneHeap // nil if it is in none
	index   int       // there
}

func newLane(name observe.OrderingKey) *lane { return &lane{name: name} }

// laneHeap is a heap of lanes that have something to send, by when they may, first come first served.
type laneHeap struct {
	lanes []*lane
	turns uint64
}

// add puts in a lane that is due at a time.
func (a *laneHeap) add(l *lane, due time.Time) {
	a.turns++
	l.due, l.turn, l.in = due, a.turns, a
	heap.Push(a, l)
}

// remove takes a lane out of its agenda, if it is in one.
func (l *lane) remove() {
	if l.in != nil {
		heap.Remove(l.in, l.index)
		l.in = nil
	}
}

// Len, Less, Swap, Push and Pop are for package heap.
func (a *laneHeap) Len() int { return len(a.lanes) }

func (a *laneHeap) Less(i, j int) bool {
	x, y := a.lanes[i], a.lanes[j]
	if x.due.Equal(y.due) {
		return x.turn < y.turn
	}
	return x.due.Before(y.due)
}

func (a *laneHeap) Swap(i, j int) {
	a.lanes[i], a.lanes[j] = a.lanes[j], a.lanes[i]
	a.lanes[i].index, a.lanes[j].index = i, j
}

// Push appends a lane.
func (a *laneHeap) Push(x any) {
	l := x.(*lane)
	l.index = len(a.lanes)
	a.lanes = append(a.lanes, l)
}

// Pop takes the last lane.
func (a *laneHeap) Pop() any {
	last := len(a.lanes) - 1
	l := a.lanes[last]
	a.lanes[last] = nil
	a.lanes = a.lanes[:last]
	return l
}
