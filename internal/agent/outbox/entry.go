package outbox

import (
	"slices"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
)

// entry is the state of one key. It is idle, queued in its lane, or out.
type entry struct {
	key  observe.Key
	lane *lane
	pending
	delivered
	dead  *deadLetter
	retry retryState
	evict evictable
	// operation is where the workload's account has the accepted operation; nil if it has none.
	operation *operationSlot
	forgets   bool // drop the entry once it is idle
	persisted bool // the store has the pending report
}

// pending is what is still to be delivered of a key.
type pending struct {
	report   observe.Report // nil if nothing is
	since    time.Time      // when the key became pending
	replaced time.Time      // when the report that is out was replaced; zero if it was not
	failed   bool           // its last try failed
	backlog  bool           // it waited for the end of an outage, or for this process to start
	repair   bool           // the control plane accepted it before and lost it
	restored bool           // it comes from the store, and nothing was offered since
}

// delivered is what is known of a key at the control plane.
type delivered struct {
	receipt  Receipt
	version  string // of the last report that was accepted, rejected or dropped
	settled  bool   // there was one
	dropped  bool   // it was dropped to keep the bound
	modified bool   // it was accepted, and not as the first of its key
}

func (e *entry) isOut() bool { return e.lane.out == e }

func (e *entry) isIdle() bool { return e.report == nil && !e.isOut() }

// lane has the entries that share an ordering key.
type lane struct {
	name    observe.OrderingKey
	entries []*entry // all of them, in the order in which their keys came up
	queue   []*entry // those with something to send, without the one that is out
	out     *entry   // being sent
	place   heapPlace
}

// first returns the entry that is next to be sent.
func (l *lane) first() *entry { return l.queue[0] }

// putFirst makes an entry the next one to be sent.
func (l *lane) putFirst(e *entry) { l.queue = slices.Insert(l.queue, 0, e) }

// goesAlone reports whether the first entry of a lane is not sent together with others.
func (l *lane) goesAlone() bool {
	_, syncs := l.first().report.(InitialSync)
	return syncs || l.first().retry.quarantined()
}

// index has all entries and lanes.
type index struct {
	entries map[observe.Key]*entry
	lanes   map[observe.OrderingKey]*lane
}

func newIndex() index {
	return index{entries: map[observe.Key]*entry{}, lanes: map[observe.OrderingKey]*lane{}}
}

// get returns the entry of a key, a new one if there is none.
func (x *index) get(key observe.Key, name observe.OrderingKey) *entry {
	if e := x.entries[key]; e != nil {
		return e
	}
	l := x.lanes[name]
	if l == nil {
		l = &lane{name: name}
		x.lanes[name] = l
	}
	e := &entry{key: key, lane: l}
	l.entries = append(l.entries, e)
	x.entries[key] = e
	return e
}

// remove removes an entry, and its lane if it is the last one. It returns false if the entry was removed before.
func (x *index) remove(e *entry) bool {
	if x.entries[e.key] != e {
		return false
	}
	delete(x.entries, e.key)
	l := e.lane
	if l.entries = slices.DeleteFunc(l.entries, func(other *entry) bool { return other == e }); len(l.entries) == 0 {
		delete(x.lanes, l.name)
	}
	return true
}
