package outbox

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Config sets how much an outbox holds and how it paces deliveries.
type Config struct {
	// Protocol is the first protocol; nil for one that takes all reports.
	Protocol Protocol
	// InitialSync makes an [InitialSync] the first item of each workload, for which its operations and Events wait.
	InitialSync bool
	// MaxSyncs is how many initial syncs are made at a time, so that they do not occupy all senders; 0 for any number.
	MaxSyncs int
	// MaxLarge is how many operations are sent at a time whose body is read then; 0 for any number. A user may change an object that
	// hundreds of workloads list, again and again.
	MaxLarge int
	// MaxBytes bounds the estimated size of the reports in memory and in the store; 0 for no bound. Only Events are
	// evicted.
	MaxBytes int64
	// Backoff bounds the wait before a report is sent again.
	Backoff Backoff
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{MaxBytes: 256 << 20, Backoff: Backoff{Base: 500 * time.Millisecond, Max: time.Minute}}
}

// Outbox holds reports. Its exported methods lock mu, and so does takeBatch. All other methods, and those of its parts, are
// called with mu held.
type Outbox struct {
	config      Config
	persistence persistence

	mu sync.Mutex
	index
	protocol  protocolState
	queues    queues
	breaker   breaker
	accounts  map[target.Instance]*account
	evictable evictionQueue
	dropped   droppedRanges
	counts    counts
	closed    bool
	wake      chan struct{} // capacity 1: has a value when a taker has to look again
}

// New returns an outbox that begins with the records of an earlier process. The store may be nil.
func New(config Config, store Store) *Outbox {
	o := &Outbox{
		config:      config,
		persistence: persistence{store},
		index:       newIndex(),
		protocol:    newProtocolState(config.Protocol),
		breaker:     newBreaker(config.Backoff),
		accounts:    map[target.Instance]*account{},
		evictable:   newEvictionQueue(),
		dropped:     newDroppedRanges(),
		wake:        make(chan struct{}, 1),
	}
	o.restore(o.persistence.load())
	return o
}

// SetLimits changes MaxSyncs and MaxLarge of the [Config].
func (o *Outbox) SetLimits(maxSyncs, maxLarge int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.config.MaxSyncs, o.config.MaxLarge = maxSyncs, maxLarge
	o.wakeTaker()
}

// Offer puts in a report, in place of a pending one of the same key. A version that is pending or settled already changes
// nothing. The last report of a key, such as a deletion, is the one after which the key is forgotten. After [Outbox.Close] it does
// nothing.
func (o *Outbox) Offer(r observe.Report) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if !o.protocol.takes(r) {
		if e := o.entries[r.Key()]; e != nil && isLast(r) {
			o.forget(e) // no later report of the key follows
		}
		return
	}
	if end, ok := r.(observe.Status); ok && end.EndsWatch {
		o.offerLast(end)
		return
	}
	if a := o.accounts[r.Instance()]; a != nil {
		o.setDeclared(r.Instance(), a)
	}
	o.offer(r)
	o.enforceBound()
}

func (o *Outbox) offer(r observe.Report) {
	e := o.entryOf(r)
	e.forgets, e.restored = isLast(r), false
	switch version := o.protocol.version(r); {
	case e.report != nil:
		if o.protocol.version(e.report) == version {
			return
		}
		if e.isInFlight() && e.replaced.IsZero() {
			e.replaced = time.Now()
		} else {
			leave(e.report, leftReplaced, e.retry.attempts)
		}
		o.setPending(e, enter(r))
	case e.isInFlight(): // it was cancelled meanwhile
		e.since = time.Now()
		e.replaced = e.since
		o.setPending(e, enter(r))
	case e.ended(version):
		if e.dead != nil {
			e.dead.report = r // for RetryRejected
		} else {
			o.recordOperation(e, r)
		}
	default:
		o.enqueue(e, enter(r))
	}
	o.gc(e)
}

// entryOf returns the entry of a report's key. A new one learns what the control plane has.
func (o *Outbox) entryOf(r observe.Report) *entry {
	e := o.getOrAddFor(r)
	if a := o.accounts[r.Instance()]; a != nil {
		if known, ok := a.sync.take(e.key); ok {
			o.learn(e, known)
		}
	}
	return e
}

// ForgetExcept forgets the keys of a subject, except those to keep. It drops their pending reports and dead letters, except
// Events and deletions: those are delivered first. The dead letter of a deletion is dropped too: the subject is a row that the
// workload no longer names. A later Offer cancels the forgetting.
func (o *Outbox) ForgetExcept(subject observe.Subject, keep ...observe.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if key := observe.Key(subject); !slices.Contains(keep, key) {
		o.forgetArchived(key)
	}
	for _, e := range o.about(subject) {
		if slices.Contains(keep, e.key) {
			continue
		}
		e.forgets = true
		if !e.mustDeliver() || e.dead != nil && isDeletion(e.dead.report) {
			o.cancel(e)
		}
		o.gc(e)
	}
}

// forgetArchived forgets an archived Event.
func (o *Outbox) forgetArchived(key observe.Key) {
	if _, ok := o.archive.take(key); ok {
		o.persistence.deleteReceipt(key)
	}
}

// Cancel drops the pending report or the dead letter of a key that is not to be reported now. A report that is being
// sent is not sent again if it fails. The receipt stays, so that a later report does not create a second row.
func (o *Outbox) Cancel(key observe.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.entries[key]; e != nil {
		o.cancel(e)
	}
}

// DropRejected drops the dead letters of a subject, and its reports for rows that the control plane has not, except those to the
// given instances. Nothing names these rows any longer.
func (o *Outbox) DropRejected(subject observe.Subject, except ...target.Instance) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.about(subject) {
		if to, ok := e.undeliverableTo(); ok && !slices.Contains(except, to) {
			o.cancel(e)
		}
	}
}

func (o *Outbox) cancel(e *entry) {
	if e.report == nil && e.dead == nil {
		return
	}
	if e.dead != nil { // the control plane does not have it, so the next Offer is sent
		e.forgetVersion()
		o.setDead(e, nil)
		o.persistence.saveReceipt(e)
	}
	o.unqueue(e)
	o.clearPending(e, leftWithdrawn)
	o.gc(e)
	o.wakeTaker()
}

// ForgetRestoredEvents forgets the Events of an earlier process that this process has not offered. Pending ones are delivered
// first. Operations stay: nothing but their receipts says that the control plane has the object.
func (o *Outbox) ForgetRestoredEvents() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, e := range o.entries {
		if _, isEvent := key.EventUID(); isEvent && e.restored {
			o.forget(e)
		}
	}
	for _, key := range o.archive.restored() {
		o.forgetArchived(key)
	}
}

// forget drops all that is known of a key, once the key is idle and has no dead letter. A later Offer cancels this.
func (o *Outbox) forget(e *entry) {
	e.forgets = true
	o.gc(e)
}

// Knows reports whether the outbox knows a key: from this process or an earlier one.
func (o *Outbox) Knows(key observe.Key) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.knows(key)
}

// Events returns the UIDs of the cluster's Events that the outbox knows at the call. A UID may come more than once.
func (o *Outbox) Events() iter.Seq[types.UID] {
	o.mu.Lock()
	defer o.mu.Unlock()
	archived := slices.AppendSeq(make([]uuid.UUID, 0, len(o.archive)), maps.Keys(o.archive)) // a text takes four times the memory
	var others []types.UID
	for key, e := range o.entries {
		if uid, ok := e.subject.EventUID(); ok && !o.dropped.has(key) {
			others = append(others, uid)
		}
	}
	return func(yield func(types.UID) bool) {
		for _, id := range archived {
			if !yield(types.UID(id.String())) {
				return
			}
		}
		for _, uid := range others {
			if !yield(uid) {
				return
			}
		}
	}
}

// Close ends intake. Pending reports can still be taken, at once: Close ends all waits for a retry and for the end of an
// outage.
func (o *Outbox) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.offerFiltered(time.Now())
	o.breaker.until = time.Time{}
	for _, g := range o.queues.takeAll() {
		o.schedule(g)
	}
	o.wakeTaker()
}

// enqueue makes a report pending for a key without a pending report.
func (o *Outbox) enqueue(e *entry, r observe.Report) {
	e.since = time.Now()
	o.setPending(e, r)
	e.group.queue = append(e.group.queue, e)
	o.schedule(e.group)
}

// unqueue removes an entry from the queue of its group, if it is there.
func (o *Outbox) unqueue(e *entry) {
	g := e.group
	at := slices.Index(g.queue, e)
	if at < 0 {
		return
	}
	g.queue = slices.Delete(g.queue, at, at+1)
	if at == 0 { // the next entry does not wait for the retry of this one
		g.dequeue()
		o.schedule(g)
	}
}

// schedule queues a group if its first entry may be sent.
func (o *Outbox) schedule(g *group) {
	if g.isQueued() || g.inFlight != nil || len(g.queue) == 0 {
		return
	}
	if a := o.accounts[g.first().report.Instance()]; a != nil && a.holds(g.first()) {
		return
	}
	o.queues.add(g, time.Now())
	o.wakeTaker()
}

// setPending makes a report the pending one of a key.
func (o *Outbox) setPending(e *entry, r observe.Report) {
	before := e.report
	e.repair = false
	switch {
	case e.report == nil:
		o.counts.pending++
		o.setDead(e, nil)
	case haveSameRows(before, r):
		e.report = r
		o.storePending(e, before)
		return
	default:
		o.unaccount(e)
		if e.refusal != "" { // it is about the other row
			e.refusal, e.refusedBy, e.retry.waits, e.retry.retryAt = "", "", 0, time.Time{}
		}
		if !e.isInFlight() { // the other workload's initial sync decides whether the group waits
			e.group.dequeue()
			defer o.schedule(e.group)
		}
	}
	e.report = r
	o.account(r.Instance()).pending[e] = struct{}{}
	o.storePending(e, before)
}

// clearPending ends that a key has a pending report. The report leaves as given, for its span.
func (o *Outbox) clearPending(e *entry, left string) {
	if e.report == nil {
		return
	}
	o.counts.pending--
	o.clearFailed(e)
	o.unaccount(e)
	before := e.report
	leave(before, left, e.retry.attempts)
	e.report, e.backlog, e.repair, e.refusal, e.refusedBy = nil, false, false, "", ""
	o.storePending(e, before)
}

func (o *Outbox) clearFailed(e *entry) {
	if e.failed {
		e.failed = false
		o.counts.failed--
	}
}

// storePending brings the eviction queue and the store in line with the pending report of an entry, which was another
// before.
func (o *Outbox) storePending(e *entry, before observe.Report) {
	o.evictable.remove(e)
	if ev, isEvent := e.report.(observe.Event); isEvent {
		o.makeEvictable(e, ev)
	}
	switch {
	case mustPersist(e.report):
		o.persistence.savePending(e.key, e.report)
	case mustPersist(before):
		o.persistence.deletePending(e.key)
	}
}

func (o *Outbox) makeEvictable(e *entry, ev observe.Event) {
	if !o.dropped.has(e.key) {
		o.evictable.add(e, ev, o.isConfirmed(ev.Workload))
	}
}

// gc drops an entry that is idle and to be forgotten, or archives it. It does nothing to an entry that was dropped before. The caller
// changes nothing of the entry afterwards.
func (o *Outbox) gc(e *entry) {
	if !e.isIdle() || e.dead != nil || o.entries[e.key] != e {
		return
	}
	switch {
	case e.forgets:
		o.remove(e)
		o.removeOperation(e)
		o.persistence.deleteReceipt(e.key)
	case !o.dropped.has(e.key) && o.archive.add(e):
		o.remove(e)
	}
}

// wakeTaker makes one of the waiting takers look again. That taker wakes another one if there is more to do: see takeBatch. If each report
// woke all takers, an Event would take a quarter more CPU.
func (o *Outbox) wakeTaker() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}
