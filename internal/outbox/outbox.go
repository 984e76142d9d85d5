package outbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/observe"
	"github.com/threeport/threeport-agent/internal/target"
)

// ErrClosed is returned by [Outbox.Next] when intake has ended and everything is settled.
var ErrClosed = errors.New("outbox is closed and empty")

// Receipt is what the control plane gave for a key when it accepted a report.
type Receipt struct {
	// Accepted is true once any report of the key was accepted.
	Accepted bool
	// RowID is the control plane's row for the key; 0 where reports of the kind make no row.
	RowID int64
}

// Item is a report that was taken out to be sent.
type Item struct {
	Report  observe.Report
	Receipt Receipt
	// Attempt counts the tries to send the key's reports since the last success, from 1.
	Attempt int
	// Since is when the key became pending.
	Since time.Time
}

// Outbox holds reports in memory.
type Outbox struct {
	carries func(observe.Report) bool
	now     func() time.Time

	mu        sync.Mutex
	entries   map[observe.Key]*entry
	lanes     map[observe.Lane]*lane
	ready     []*lane // lanes with something to send now, in turn
	waiting   []*lane // lanes that wait for their next try
	out       int     // items taken and not settled
	instances map[target.Instance]*instance
	closed    bool
	wake      chan struct{} // closed and replaced when Next has to look again
}

// entry is one key. It is idle (only its receipt counts), queued in its lane, or out.
type entry struct {
	key      observe.Key
	lane     *lane
	report   observe.Report // nil when idle
	receipt  Receipt
	version  string // of the last report that was accepted or rejected
	attempts int
	since    time.Time
	forgets  bool // drop the entry once it is idle
}

type lane struct {
	name    observe.Lane
	entries int // of this lane, idle ones too
	queue   []*entry
	out     *entry    // being sent
	retryAt time.Time // not before
	listed  bool      // in ready or waiting
}

// New returns an empty outbox that keeps the reports which carries accepts; the others have no place in
// the control plane at hand. A nil carries accepts all.
func New(carries func(observe.Report) bool) *Outbox {
	if carries == nil {
		carries = func(observe.Report) bool { return true }
	}
	return &Outbox{
		carries:   carries,
		now:       time.Now,
		entries:   map[observe.Key]*entry{},
		lanes:     map[observe.Lane]*lane{},
		instances: map[target.Instance]*instance{},
		wake:      make(chan struct{}),
	}
}

// Offer puts in a report, in place of one of the same key that waits. After [Outbox.Close] it does nothing.
func (o *Outbox) Offer(r observe.Report) {
	if !o.carries(r) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	key, version := r.Key(), r.Version()
	e := o.entries[key]
	if e == nil {
		e = &entry{key: key, lane: o.laneOf(r.Lane())}
		e.lane.entries++
		o.entries[key] = e
	}
	e.forgets = false
	switch {
	case e.report != nil:
		if e.report.Version() == version {
			return
		}
		o.instance(e.report.Instance()).pending.remove(e)
		e.report = r
		o.instance(r.Instance()).pending.add(e)
	case e.version == version:
		return
	default:
		e.report = r
		e.since = o.now()
		o.instance(r.Instance()).pending.add(e)
		if e.lane.out != e {
			e.lane.queue = append(e.lane.queue, e)
			o.schedule(e.lane)
		}
	}
}

// Next takes out the report that is next to be sent. It blocks until there is one, the context ends, or
// the outbox is closed and empty ([ErrClosed]).
func (o *Outbox) Next(ctx context.Context) (Item, error) {
	for {
		item, due, wake, err := o.take()
		if err != nil || item.Report != nil {
			return item, err
		}
		var timer <-chan time.Time
		if !due.IsZero() {
			t := time.NewTimer(due.Sub(o.now()))
			defer t.Stop()
			timer = t.C
		}
		select {
		case <-ctx.Done():
			return Item{}, context.Cause(ctx)
		case <-wake:
		case <-timer:
		}
	}
}

// take returns an item, or when to look again at the latest (zero: not before the wake channel closes).
func (o *Outbox) take() (item Item, due time.Time, wake <-chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	o.waiting = slices.DeleteFunc(o.waiting, func(l *lane) bool {
		if l.retryAt.After(now) {
			if due.IsZero() || l.retryAt.Before(due) {
				due = l.retryAt
			}
			return false
		}
		o.ready = append(o.ready, l)
		return true
	})
	if len(o.ready) == 0 {
		if o.closed && len(o.waiting) == 0 && o.out == 0 {
			err = ErrClosed
		}
		return Item{}, due, o.wake, err
	}
	l := o.ready[0]
	o.ready = slices.Delete(o.ready, 0, 1)
	l.listed = false
	e := l.queue[0]
	l.queue = slices.Delete(l.queue, 0, 1)
	l.out = e
	e.attempts++
	o.out++
	return Item{Report: e.report, Receipt: e.receipt, Attempt: e.attempts, Since: e.since}, due, nil, nil
}

// Accept settles an item: the control plane has it.
func (o *Outbox) Accept(item Item, receipt Receipt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.settle(item)
	receipt.Accepted = true
	e.receipt = receipt
	in := o.instance(item.Report.Instance())
	in.accepted++
	in.lastError = ""
	o.conclude(e, item)
}

// Retry settles an item: it is to be sent again, or what has replaced it by then, after a while. Its lane
// waits for it.
func (o *Outbox) Retry(item Item, after time.Duration, cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.settle(item)
	o.instance(item.Report.Instance()).lastError = cause.Error()
	e.lane.queue = slices.Insert(e.lane.queue, 0, e)
	e.lane.retryAt = o.now().Add(after)
	o.schedule(e.lane)
}

// Reject settles an item: the control plane will never take it. It is counted and shown, and dropped; a
// newer version is tried again.
func (o *Outbox) Reject(item Item, cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.settle(item)
	o.instance(item.Report.Instance()).reject(Rejection{item.Report.String(), cause.Error(), o.now()})
	o.conclude(e, item)
}

// Withdraw drops what is pending of a key, which is not to be reported about any more. The receipt stays, so
// that what comes back does not make a second row.
func (o *Outbox) Withdraw(key observe.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.entries[key]
	if e == nil || e.report == nil || e.lane.out == e {
		return
	}
	o.instance(e.report.Instance()).pending.remove(e)
	e.report = nil
	e.lane.queue = slices.DeleteFunc(e.lane.queue, func(q *entry) bool { return q == e })
	if len(e.lane.queue) == 0 {
		o.unschedule(e.lane)
	}
	o.retire(e)
	o.broadcast()
}

// Forget drops what is known of a key once nothing of it is pending: nothing more will come.
func (o *Outbox) Forget(key observe.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.entries[key]; e != nil {
		e.forgets = true
		o.retire(e)
	}
}

// Close ends intake. What is pending can still be taken.
func (o *Outbox) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.broadcast()
}

// settle takes an item back.
func (o *Outbox) settle(item Item) *entry {
	e := o.entries[item.Report.Key()]
	e.lane.out = nil
	o.out--
	o.broadcast()
	return e
}

// conclude ends the life of a report, and goes on with the next of its key or its lane.
func (o *Outbox) conclude(e *entry, item Item) {
	e.version = item.Report.Version()
	e.attempts = 0
	e.lane.retryAt = time.Time{}
	if e.report.Version() == e.version {
		o.instance(e.report.Instance()).pending.remove(e)
		e.report = nil
		o.retire(e)
	} else { // replaced while it was out: still first in its lane
		e.since = o.now()
		e.lane.queue = slices.Insert(e.lane.queue, 0, e)
	}
	o.schedule(e.lane)
}

// retire drops an entry that is idle and to be forgotten, and with its last entry the lane.
func (o *Outbox) retire(e *entry) {
	if e.report != nil || !e.forgets {
		return
	}
	delete(o.entries, e.key)
	e.lane.entries--
	if e.lane.entries == 0 {
		delete(o.lanes, e.lane.name)
	}
}

// schedule lists a lane as ready or waiting if it has something to send.
func (o *Outbox) schedule(l *lane) {
	if l.listed || l.out != nil || len(l.queue) == 0 {
		return
	}
	l.listed = true
	if l.retryAt.After(o.now()) {
		o.waiting = append(o.waiting, l)
	} else {
		o.ready = append(o.ready, l)
	}
	o.broadcast()
}

func (o *Outbox) laneOf(name observe.Lane) *lane {
	l := o.lanes[name]
	if l == nil {
		l = &lane{name: name}
		o.lanes[name] = l
	}
	return l
}

func (o *Outbox) unschedule(l *lane) {
	if !l.listed {
		return
	}
	l.listed = false
	same := func(other *lane) bool { return other == l }
	o.ready = slices.DeleteFunc(o.ready, same)
	o.waiting = slices.DeleteFunc(o.waiting, same)
}

func (o *Outbox) broadcast() {
	close(o.wake)
	o.wake = make(chan struct{})
}
