package outbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
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
	// Probe is true if it is sent in an outage, to see whether that is over.
	Probe bool
	// Settled is the version of the key's report that was settled last; empty if none was.
	Settled string
	// Repair is true if the control plane accepted this version before and has something else by now: it is to be written
	// over what is there, whatever version that has.
	Repair bool
}

// Config sets what an outbox takes, how it paces it and how much it holds.
type Config struct {
	// Supports reports whether a report has a place in the control plane at hand; the others are not taken. If it is nil
	// all are. The answer may change; it must not call the outbox.
	Supports func(observe.Report) bool
	// InitialSync makes an [InitialSync] the first item of each workload, for which its operations and Events wait.
	InitialSync bool
	// MaxBytes bounds what is kept in memory and on disk, about; 0 does not. Only Events are dropped for it.
	MaxBytes int64
	// Backoff bounds the wait before a report is sent again.
	Backoff Backoff
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{MaxBytes: 256 << 20, Backoff: Backoff{Base: 500 * time.Millisecond, Max: time.Minute}}
}

// Outbox holds reports.
type Outbox struct {
	config Config
	memory Store // nil for none

	mu        sync.Mutex
	entries   map[observe.Key]*entry
	lanes     map[observe.OrderingKey]*lane
	agendas   [classes]laneHeap
	turn      int // the class that was served last
	instances map[target.Instance]*instance
	events    events
	outage    breaker
	answers   uint64 // counts what the control plane took or refused
	pending   int    // entries with a report
	failed    int    // those of them whose last try failed
	out       int    // items taken and not settled
	slowOut   int    // those of them that are slow
	dead      int    // entries with a dead letter
	closed    bool
	wake      chan struct{} // closed and replaced when Next has to look again
}

// New returns an outbox. What memory kept of an earlier one is there again; it may be nil.
func New(config Config, memory Store) *Outbox {
	if config.Supports == nil {
		config.Supports = func(observe.Report) bool { return true }
	}
	o := &Outbox{
		config:    config,
		memory:    memory,
		entries:   map[observe.Key]*entry{},
		lanes:     map[observe.OrderingKey]*lane{},
		instances: map[target.Instance]*instance{},
		events:    newEvents(),
		outage:    breaker{failing: map[observe.Key]struct{}{}},
		wake:      make(chan struct{}),
	}
	if memory != nil {
		o.restore()
	}
	return o
}

// Offer puts in a report, in place of one of the same key that waits. After [Outbox.Close] it does nothing.
func (o *Outbox) Offer(r observe.Report) {
	if !o.config.Supports(r) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if in := o.instances[r.Instance()]; in != nil {
		in.undeclared = false
	}
	o.offer(r)
	o.shed()
}

// offer puts in a report that is carried; with mu held.
func (o *Outbox) offer(r observe.Report) {
	e := o.entryOf(r)
	e.forgets, e.restored = false, false
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
		if e.dead != nil {
			e.dead.report = r // for when it is tried again
		} else {
			o.note(e, r)
		}
	default:
		o.enqueue(e, r)
	}
}

// enqueue makes a report pending that its key had nothing pending before.
func (o *Outbox) enqueue(e *entry, r observe.Report) {
	e.since = time.Now()
	o.pend(e, r)
	e.lane.queue = append(e.lane.queue, e)
	o.schedule(e.lane)
}

// Next takes out the report that is next to be sent. It blocks until there is one, the context ends, or
// the outbox is closed and empty ([ErrClosed]).
func (o *Outbox) Next(ctx context.Context) (Item, error) {
	items, err := o.NextBatch(ctx, 1)
	if err != nil {
		return Item{}, err
	}
	return items[0], nil
}

// NextBatch is Next for one report, and for whatever else is ready to be sent with it, up to a number of reports. It does
// not wait for more. Each is of another lane, and is to be settled by itself. A probe, an [InitialSync], and a report that
// alone keeps failing come alone.
func (o *Outbox) NextBatch(ctx context.Context, most int) ([]Item, error) {
	for {
		// What is ready could go on for ever: a caller that stops puts back what it takes.
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		items, due, wake, err := o.takeBatch(most)
		if err != nil || len(items) > 0 {
			return items, err
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

// takeBatch returns items, or when to look again at the latest (zero: not before the wake channel closes).
func (o *Outbox) takeBatch(most int) (items []Item, due time.Time, wake <-chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	l, due := o.pick(now)
	if l == nil {
		if o.closed && o.out == 0 && o.nothingDue() {
			err = ErrClosed
		}
		return nil, due, o.wake, err
	}
	more := !l.goesAlone()
	for items = append(items, o.takeFrom(l)); more && len(items) < most; items = append(items, o.takeFrom(l)) {
		turn := o.turn
		if l, _ = o.pick(now); l == nil || l.goesAlone() {
			o.turn = turn // it is next, and does not lose its turn
			break
		}
	}
	return items, time.Time{}, nil, nil
}

// goesAlone reports whether what is first in a lane is not sent together with others.
func (l *lane) goesAlone() bool {
	e := l.queue[0]
	_, adopts := e.report.(InitialSync)
	return adopts || e.pace.slow()
}

// takeFrom takes out what is first in a lane that is on an agenda.
func (o *Outbox) takeFrom(l *lane) Item {
	l.remove()
	e := l.queue[0]
	l.queue = slices.Delete(l.queue, 0, 1)
	l.out = e
	e.pace.attempts++
	e.pace.takenAt = o.answers
	o.out++
	if e.pace.slow() {
		o.slowOut++
	}
	return Item{
		Report: e.report, Receipt: e.receipt, Attempt: e.pace.attempts, Since: e.since, Probe: o.outage.on,
		Settled: e.version, Repair: e.repair,
	}
}

// nothingDue reports whether no lane waits for its time.
func (o *Outbox) nothingDue() bool {
	for class := range o.agendas {
		if o.agendas[class].Len() > 0 {
			return false
		}
	}
	return true
}

// Ack settles an item: the control plane has it.
func (o *Outbox) Ack(item Item, receipt Receipt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.settle(item)
	receipt.Accepted = true
	e.receipt, e.modified = receipt, item.Receipt.Accepted
	if in := o.instances[item.Report.Instance()]; in != nil {
		in.accepted++
		in.lastError = ""
	}
	o.conclude(e, item)
	o.note(e, item.Report)
	e.pace.attempts = 0
	o.keepReceipt(e)
	o.retire(e)
}

// AckNotFound settles an item: the row that it was for does not exist any more. It is dropped, and its receipt forgotten.
func (o *Outbox) AckNotFound(item Item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.settle(item)
	e.receipt = Receipt{}
	o.unnote(e)
	o.conclude(e, item)
	o.dropReceipt(e)
	o.retire(e)
}

// Requeue settles an item that was not delivered, and that is nobody's fault: the control plane at hand takes reports in
// another way than it did. It is next again, as after a failed try, or dropped if it has no place there.
func (o *Outbox) Requeue(item Item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.settle(item)
	e.renewed = time.Time{}
	if e.report != nil && !o.config.Supports(e.report) {
		o.unpend(e)
	}
	if e.report != nil {
		e.lane.queue = slices.Insert(e.lane.queue, 0, e)
	}
	o.retire(e)
	o.schedule(e.lane)
}

// Cancel drops what is pending or was refused of a key, which is not to be reported about any more. What is out
// cannot be stopped, but is not sent again if it fails. The receipt stays, so that what comes back does not make a
// second row.
func (o *Outbox) Cancel(key observe.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.entries[key]
	if e == nil || e.report == nil && e.dead == nil {
		return
	}
	if e.dead != nil { // the control plane does not have it: if it comes back it is news
		e.version, e.settled = "", false
		o.bury(e, nil)
		o.keepReceipt(e)
	}
	o.unqueue(e)
	o.unpend(e)
	o.retire(e)
	o.broadcast()
}

// unqueue takes an entry out of the queue of its lane, if it is in it.
func (o *Outbox) unqueue(e *entry) {
	l := e.lane
	at := slices.Index(l.queue, e)
	if at < 0 {
		return
	}
	l.queue = slices.Delete(l.queue, at, at+1)
	if at == 0 { // the next one need not wait for the retry of this one
		l.remove()
		o.schedule(l)
	}
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

// Close ends intake. What is pending can still be taken; what waits for its next try, or for the end of an outage, has
// it at once.
func (o *Outbox) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.outage.until = time.Time{}
	for class := range o.agendas {
		for _, l := range slices.Clone(o.agendas[class].lanes) {
			l.queue[0].pace.retryAt = time.Time{}
			l.remove()
			o.schedule(l)
		}
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
	if e.pace.slow() {
		o.slowOut--
	}
	o.broadcast() // for those that wait for the end, for the next probe, or for the next that is slow
	return e
}

// conclude ends the life of a report that the control plane took or refused, and goes on with the next of its key or
// its lane.
func (o *Outbox) conclude(e *entry, item Item) {
	o.answered(e, item.Probe)
	e.version, e.settled, e.dropped = item.Report.Version(), true, false
	o.bury(e, nil)
	if e.report != nil && e.report.Version() != e.version { // replaced while it was out: still first in its lane
		e.since = e.renewed
		o.unfail(e)
		e.lane.queue = slices.Insert(e.lane.queue, 0, e)
	} else {
		o.unpend(e)
	}
	e.renewed = time.Time{}
	o.schedule(e.lane)
}

// pend makes a report what is to be delivered of a key, in place of what was.
func (o *Outbox) pend(e *entry, r observe.Report) {
	e.repair = false
	switch {
	case e.report == nil:
		o.pending++
		o.bury(e, nil)
	case e.report.Instance() == r.Instance():
		e.report = r
		o.keepPending(e)
		return
	default:
		o.discharge(e)
		if !e.isOut() { // whether its lane waits for an adoption is another workload's question now
			e.lane.remove()
			defer o.schedule(e.lane)
		}
	}
	e.report = r
	o.account(r.Instance()).pending[e] = struct{}{}
	o.keepPending(e)
}

// unpend ends that something is to be delivered of a key.
func (o *Outbox) unpend(e *entry) {
	if e.report == nil {
		return
	}
	o.pending--
	o.unfail(e)
	o.discharge(e)
	e.report, e.backlog, e.repair = nil, false, false
	o.keepPending(e)
}

func (o *Outbox) unfail(e *entry) {
	if e.pace.failed {
		e.pace.failed = false
		o.failed--
	}
}

// retire drops an entry that is idle and to be forgotten, and with its last entry the lane.
func (o *Outbox) retire(e *entry) {
	if !e.isIdle() || !e.forgets || e.dead != nil {
		return
	}
	if o.entries[e.key] != e {
		return // it is retired already
	}
	delete(o.entries, e.key)
	o.unnote(e)
	o.dropReceipt(e)
	l := e.lane
	if l.entries = slices.DeleteFunc(l.entries, func(other *entry) bool { return other == e }); len(l.entries) == 0 {
		delete(o.lanes, l.name)
	}
}

// entryOf returns the entry of a report's key, a new one if need be.
func (o *Outbox) entryOf(r observe.Report) *entry {
	e := o.entry(r.Key(), r.OrderingKey())
	if in := o.instances[r.Instance()]; in != nil && in.known != nil {
		if known, ok := in.known[e.key]; ok {
			delete(in.known, e.key)
			o.learn(e, known)
		}
	}
	return e
}

func (o *Outbox) entry(key observe.Key, name observe.OrderingKey) *entry {
	if e := o.entries[key]; e != nil {
		return e
	}
	l := o.lanes[name]
	if l == nil {
		l = newLane(name)
		o.lanes[l.name] = l
	}
	e := &entry{key: key, lane: l}
	l.entries = append(l.entries, e)
	o.entries[key] = e
	return e
}

func (o *Outbox) broadcast() {
	close(o.wake)
	o.wake = make(chan struct{})
}
