package outbox

import (
	"container/heap"
	"time"

	"github.com/threeport/threeport-agent/internal/observe"
)

// entry is one key. It is idle (only its receipt counts), queued in its lane, or out.
type entry struct {
	key     observe.Key
	lane    *lane
	report  observe.Report // what is still to be delivered; nil if nothing is
	receipt Receipt
	version string // of the last report that was accepted or rejected
	settled bool   // there was one
	// attempts are those since the last success: a rejected try may have been preceded by an ambiguous one.
	attempts int
	failed   bool      // it is pending, and its last try failed
	retryAt  time.Time // it is not sent before
	since    time.Time // when it became pending
	renewed  time.Time // when what is out was replaced; zero if it was not
	forgets  bool      // drop the entry once it is idle
}

func (e *entry) isOut() bool { return e.lane.out == e }

// lane is the order among the entries that share one.
type lane struct {
	name    observe.Lane
	entries int      // of this lane, idle ones too
	queue   []*entry // those with something to send, without the one that is out
	out     *entry   // being sent
	due     time.Time
	turn    uint64
	index   int // in the agenda; -1 if it is not in it
}

func newLane(name observe.Lane) *lane { return &lane{name: name, index: -1} }

// agenda is a heap of the lanes that have something to send, by when they may, first come first served.
type agenda struct {
	lanes []*lane
	turns uint64
}

// add puts in a lane that is due at a time.
func (a *agenda) add(l *lane, due time.Time) {
	a.turns++
	l.due, l.turn = due, a.turns
	heap.Push(a, l)
}

// remove takes out a lane, if it is in.
func (a *agenda) remove(l *lane) {
	if l.index >= 0 {
		heap.Remove(a, l.index)
	}
}

// Len, Less, Swap, Push and Pop are for package heap.
func (a *agenda) Len() int { return len(a.lanes) }

func (a *agenda) Less(i, j int) bool {
	x, y := a.lanes[i], a.lanes[j]
	if x.due.Equal(y.due) {
		return x.turn < y.turn
	}
	return x.due.Before(y.due)
}

func (a *agenda) Swap(i, j int) {
	a.lanes[i], a.lanes[j] = a.lanes[j], a.lanes[i]
	a.lanes[i].index, a.lanes[j].index = i, j
}

// Push appends a lane.
func (a *agenda) Push(x any) {
	l := x.(*lane)
	l.index = len(a.lanes)
	a.lanes = append(a.lanes, l)
}

// Pop takes the last lane.
func (a *agenda) Pop() any {
	last := len(a.lanes) - 1
	l := a.lanes[last]
	a.lanes[last] = nil
	a.lanes = a.lanes[:last]
	l.index = -1
	return l
}
