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
	// Instance is the workload that the row was made for; zero if somebody else made it.
	Instance target.Instance
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

	mu        sync.Mutex
	entries   map[observe.Key]*entry
	lanes     map[observe.Lane]*lane
	agenda    agenda
	instances map[target.Instance]*instance
	pending   int // entries with a report
	failed    int // those of them whose last try failed
	out       int // items taken and not settled
	closed    bool
	wake      chan struct{} // closed and replaced when Next has to look again
}

// New returns an empty outbox that keeps the reports which carries accepts; the others have no place in
// the control plane at hand. A nil carries accepts all.
func New(carries func(observe.Report) bool) *Outbox {
	if carries == nil {
		carries = func(observe.Report) bool { return true }
	}
	return &Outbox{
		carries:   carries,
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
	e := o.entryOf(r)
	e.forgets = false
	switch version := r.Version(); {
	case e.report != nil:
		if e.report.Version() == version {
			return
		}
		if e.isOut() && e.renewed.IsZero() {
			e.renewed = time.Now()
		}
		o.pend(e, r)
	case e.isOut(): // it was withdrawn meanwhile
		e.since = time.Now()
		e.renewed = e.since
		o.pend(e, r)
	case e.settled && e.version == version:
	default:
		e.since = time.Now()
		o.pend(e, r)
		e.lane.queue = append(e.lane.queue, e)
		o.schedule(e.lane)
	}
}

// Next takes out the report that is next to be sent. It blocks until there is one, the context ends, or
// the outbox is closed and empty ([ErrClosed]).
func (o *Outbox) Next(ctx context.Context) (Item, error) {
	for {
		// What is ready could go on for ever: a caller that stops puts back what it takes.
		if ctx.Err() != nil {
			return Item{}, context.Cause(ctx)
		}
		item, due, wake, err := o.take()
		if err != nil || item.Report != nil {
			return item, err
		}
		await(ctx, wake, due)
	}
}

// await returns when the context ends, the channel closes, or a time has come, if it is not zero.
func await(ctx context.Context, wake <-chan struct{}, due time.Time) {
	var come <-chan time.Time
	if !due.IsZero() {
		timer := time.NewTimer(time.Until(due))
		defer timer.Stop()
		come = timer.C
	}
	select {
	case <-ctx.Done():
	case <-wake:
	case <-come:
	}
}

// take returns an item, or when to look again at the latest (zero: not before the wake channel closes).
func (o *Outbox) take() (item Item, due time.Time, wake <-chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.agenda.Len() == 0 {
		if o.closed && o.out == 0 {
			err = ErrClosed
		}
		return Item{}, time.Time{}, o.wake, err
	}
	l := o.agenda.lanes[0]
	if l.due.After(time.Now()) {
		return Item{}, l.due, o.wake, nil
	}
	o.agenda.remove(l)
	e := l.queue[0]
	l.queue = slices.Delete(l.queue, 0, 1)
	l.out = e
	e.attempts++
	o.out++
	return Item{Report: e.report, Receipt: e.receipt, Attempt: e.attempts, Since: e.since}, time.Time{}, nil, nil
}

// Accept settles an item: the control plane has it.
func (o *Outbox) Accept(item Item, receipt Receipt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.settle(item)
	receipt.Accepted = true
	e.receipt = receipt
	e.attempts = 0
	if in := o.instances[item.Report.Instance()]; in != nil {
		in.accepted++
		in.lastError = ""
	}
	o.conclude(e, item)
}

// Retry settles an item: it is to be sent again, or what has replaced it by then, after a while. Its lane
// waits for it. If it was withdrawn meanwhile, it is dropped.
func (o *Outbox) Retry(item Item, after time.Duration, cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.settle(item)
	if in := o.instances[item.Report.Instance()]; in != nil {
		in.lastError = cause.Error()
	}
	e.retryAt = time.Now().Add(after)
	e.renewed = time.Time{}
	if e.report != nil {
		if !e.failed {
			e.failed = true
			o.failed++
		}
		e.lane.queue = slices.Insert(e.lane.queue, 0, e)
	}
	o.retire(e)
	o.schedule(e.lane)
}

// Reject settles an item: the control plane will never take it. It is counted and shown, and dropped; a
// newer version is tried again.
func (o *Outbox) Reject(item Item, cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.settle(item)
	if in := o.instances[item.Report.Instance()]; in != nil {
		in.reject(Rejection{item.Report.String(), cause.Error(), time.Now()})
	}
	o.conclude(e, item)
}

// Withdraw drops what is pending of a key, which is not to be reported about any more. What is out cannot be
// stopped, but is not sent again if it fails. The receipt stays, so that what comes back does not make a
// second row.
func (o *Outbox) Withdraw(key observe.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.entries[key]
	if e == nil || e.report == nil {
		return
	}
	o.unpend(e)
	if l := e.lane; !e.isOut() {
		at := slices.Index(l.queue, e)
		l.queue = slices.Delete(l.queue, at, at+1)
		if at == 0 { // the next one need not wait for the retry of this one
			o.agenda.remove(l)
			o.schedule(l)
		}
	}
	o.retire(e)
	o.broadcast()
}

// Forget drops what is known of a key once nothing of it is pending: nothing more will come. An Offer after
// it takes it back.
func (o *Outbox) Forget(key observe.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.entries[key]; e != nil {
		e.forgets = true
		o.retire(e)
	}
}

// Close ends intake. What is pending can still be taken; what waits for its next try has it at once.
func (o *Outbox) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for _, l := range slices.Clone(o.agenda.lanes) {
		l.queue[0].retryAt = time.Time{}
		o.agenda.remove(l)
		o.schedule(l)
	}
	o.broadcast()
}

// settle takes an item back.
func (o *Outbox) settle(item Item) *entry {
	e := o.entries[item.Report.Key()]
	if e == nil || !e.isOut() {
		panic("outbox: " + item.Report.String() + " is settled twice, or was never taken")
	}
	e.lane.out = nil
	o.out--
	if o.closed {
		o.broadcast()
	}
	return e
}

// conclude ends the life of a report, and goes on with the next of its key or its lane.
func (o *Outbox) conclude(e *entry, item Item) {
	e.version, e.settled = item.Report.Version(), true
	if e.report != nil && e.report.Version() != e.version { // replaced while it was out: still first in its lane
		e.since = e.renewed
		o.unfail(e)
		e.lane.queue = slices.Insert(e.lane.queue, 0, e)
	} else {
		o.unpend(e)
	}
	e.renewed = time.Time{}
	o.retire(e)
	o.schedule(e.lane)
}

// pend makes a report what is to be delivered of a key, in place of what was.
func (o *Outbox) pend(e *entry, r observe.Report) {
	switch {
	case e.report == nil:
		o.pending++
	case e.report.Instance() == r.Instance():
		e.report = r
		return
	default:
		o.discharge(e)
	}
	e.report = r
	o.account(r.Instance()).pending[e] = struct{}{}
}

// unpend ends that something is to be delivered of a key.
func (o *Outbox) unpend(e *entry) {
	if e.report == nil {
		return
	}
	o.pending--
	o.unfail(e)
	o.discharge(e)
	e.report = nil
}

func (o *Outbox) unfail(e *entry) {
	if e.failed {
		e.failed = false
		o.failed--
	}
}

// retire drops an entry that is idle and to be forgotten, and with its last entry the lane.
func (o *Outbox) retire(e *entry) {
	if e.report != nil || e.isOut() || !e.forgets {
		return
	}
	delete(o.entries, e.key)
	e.lane.entries--
	if e.lane.entries == 0 {
		delete(o.lanes, e.lane.name)
	}
}

// schedule puts a lane on the agenda if it has something to send.
func (o *Outbox) schedule(l *lane) {
	if l.index >= 0 || l.out != nil || len(l.queue) == 0 {
		return
	}
	due := time.Now()
	if first := l.queue[0]; first.retryAt.After(due) {
		due = first.retryAt
	}
	o.agenda.add(l, due)
	o.broadcast()
}

// entryOf returns the entry of a report's key, a new one if need be.
func (o *Outbox) entryOf(r observe.Report) *entry {
	key := r.Key()
	if e := o.entries[key]; e != nil {
		return e
	}
	l := o.lanes[r.Lane()]
	if l == nil {
		l = newLane(r.Lane())
		o.lanes[l.name] = l
	}
	l.entries++
	e := &entry{key: key, lane: l}
	o.entries[key] = e
	return e
}

func (o *Outbox) broadcast() {
	close(o.wake)
	o.wake = make(chan struct{})
}
