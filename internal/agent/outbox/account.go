package outbox

import (
	"maps"
	"slices"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// maxRejections bounds the rejections in a [target.DeliveryProgress].
const maxRejections = 10

// DeliveryCounts counts the operations and Events of a workload that are not delivered. Pending are those that have waited
// for more than [target.OverdueAfter], Rejected those that the control plane rejected, Dropped are Events.
type DeliveryCounts struct{ Pending, Rejected, Dropped int64 }

// account has the reports of one instance.
type account struct {
	pending   map[*entry]struct{}
	dead      map[*entry]struct{}
	accepted  int64
	lastError string
	// removed are the rows that the control plane removed, by the ID of the resource; 0 is the instance's row.
	removed    map[int64]bool
	sync       initialSync
	operations operations
	// awaited is the refused report for which the instance's Events wait, because the control plane does not know the instance or has
	// not assigned it; nil for none.
	awaited *entry
	// forgets is true after [Outbox.ForgetInstance]: the workload is gone, and its refused reports are discarded. The account is
	// dropped once nothing is pending.
	forgets bool
	// undeclared is true if the instance is known from the records of an earlier process only, or by its last status. The account is
	// dropped once nothing is pending. A declaration before that begins the initial sync.
	undeclared bool
}

// holds reports whether a pending report waits for another one of its instance.
func (a *account) holds(e *entry) bool {
	_, isEvent := e.report.(observe.Event)
	return a.sync.holds(e.report) || isEvent && a.awaited != nil && a.awaited != e
}

// deadLetters returns the entries with a dead letter, the newest first.
func (a *account) deadLetters() []*entry {
	out := make([]*entry, 0, len(a.dead))
	for e := range a.dead {
		out = append(out, e)
	}
	slices.SortFunc(out, func(x, y *entry) int { return y.dead.Time.Compare(x.dead.Time) })
	return out
}

// pendingSince returns since when the oldest report is pending; zero if none is.
func (a *account) pendingSince() (oldest time.Time) {
	for e := range a.pending {
		if oldest.IsZero() || e.since.Before(oldest) {
			oldest = e.since
		}
	}
	return oldest
}

// delayedSince is pendingSince without the reports that wait for a change of the workload. All reports of an instance that is unknown
// or not assigned wait for it, also those that were not tried yet.
func (a *account) delayedSince() (oldest time.Time) {
	if a.refuses(target.UnknownInstance) || a.refuses(target.NotAssigned) {
		return time.Time{}
	}
	refused := func(e *entry) bool { return e.report != nil && e.refusal.IsOfWorkload() }
	for e := range a.pending {
		if slices.ContainsFunc(e.group.entries, refused) { // the others of the group wait for it
			continue
		}
		if oldest.IsZero() || e.since.Before(oldest) {
			oldest = e.since
		}
	}
	return oldest
}

// refusal returns why the control plane refuses pending reports, and the error of that report. An unknown instance explains the
// others.
func (a *account) refusal() (refusal target.Refusal, cause string) {
	for e := range a.pending {
		if e.refusal != "" && refusal != target.UnknownInstance {
			refusal, cause = e.refusal, e.refusedBy
		}
	}
	return refusal, cause
}

// refuses reports whether a pending report of the account has a refusal.
func (a *account) refuses(refusal target.Refusal) bool {
	for e := range a.pending {
		if e.refusal == refusal {
			return true
		}
	}
	return false
}

func newAccount(synced bool) *account {
	return &account{pending: map[*entry]struct{}{}, dead: map[*entry]struct{}{}, sync: initialSync{done: synced}}
}

// account returns the account of a workload, a new one if there is none.
func (o *Outbox) account(id target.Instance) *account {
	a := o.accounts[id]
	if a == nil {
		a = newAccount(!o.config.InitialSync)
		o.accounts[id] = a
		if !a.sync.done {
			o.beginInitialSync(id)
		}
	}
	return a
}

// unaccount removes a pending entry from its workload's account.
func (o *Outbox) unaccount(e *entry) {
	id := e.report.Instance()
	a := o.accounts[id]
	if delete(a.pending, e); len(a.pending) == 0 {
		a.pending = map[*entry]struct{}{} // the earlier one keeps the memory of its largest size
	}
	if a.awaited == e {
		o.release(a)
	}
	o.gcAccount(id, a)
}

// hold makes the Events of an instance wait for a refused report of it, unless they wait for another one. All would be refused.
func (o *Outbox) hold(a *account, refused *entry) {
	if a.awaited != nil {
		return
	}
	a.awaited = refused
	for e := range a.pending {
		if e.group.isQueued() && e.group.first() == e && a.holds(e) {
			e.group.dequeue()
		}
	}
}

// release ends the wait of the Events of an instance.
func (o *Outbox) release(a *account) {
	if a.awaited == nil {
		return
	}
	a.awaited = nil
	o.scheduleAll(a)
}

// scheduleAll schedules the groups with pending reports of an instance, the oldest first.
func (o *Outbox) scheduleAll(a *account) {
	for _, e := range slices.SortedFunc(maps.Keys(a.pending), func(a, b *entry) int { return a.since.Compare(b.since) }) {
		o.schedule(e.group)
	}
}

// gcAccount drops an account that is to be forgotten and has nothing pending.
func (o *Outbox) gcAccount(id target.Instance, a *account) {
	if !a.forgets && !a.undeclared || len(a.pending) > 0 {
		return
	}
	for _, e := range a.deadLetters() {
		o.setDead(e, nil)
		e.forgets = true
		o.gc(e)
	}
	o.forgetDropped(id)
	delete(o.accounts, id)
}

func (o *Outbox) forgetDropped(id target.Instance) {
	for _, key := range o.dropped.forget(id) {
		o.persistence.deleteDropped(key)
	}
}

// Declare creates the account of a declared workload, or keeps the existing one.
func (o *Outbox) Declare(id target.Instance) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	a := o.account(id)
	a.forgets = false
	o.setDeclared(id, a)
}

// setDeclared records that this process declares an instance. It begins the initial sync that an undeclared instance does without.
func (o *Outbox) setDeclared(id target.Instance, a *account) {
	if a.undeclared && a.sync.done && o.config.InitialSync {
		a.sync = initialSync{}
		o.beginInitialSync(id)
	}
	a.undeclared = false
}

// EndUndeclared ends the instances of an earlier process that are no longer declared. Each whose status the control
// plane accepted gets a last one. Pending reports do not wait for an initial sync, because there are no objects to compare.
func (o *Outbox) EndUndeclared(declared func(target.Instance) bool, cause string, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	for id, a := range o.accounts {
		if !a.undeclared || declared(id) {
			continue
		}
		a.sync.finish()
		if e := o.entries[InitialSync{id}.Key()]; e != nil {
			o.cancel(e)
		}
		o.scheduleAll(a)
	}
	for _, e := range slices.Collect(maps.Values(o.entries)) {
		id, isStatus := e.key.StatusInstance()
		if isStatus && e.restored && e.receipt.Accepted && e.report == nil && !declared(id) {
			o.offerLast(observe.NewWatchEnd(id, cause, at))
		}
	}
}

// offerLast offers the last status of an instance, whose account may have been dropped before.
func (o *Outbox) offerLast(end observe.Status) {
	if id := end.Workload; o.accounts[id] == nil {
		o.accounts[id] = newAccount(true)
		o.accounts[id].undeclared = true
	}
	o.offerFilteredOf(end.Workload)
	o.offer(end)
}

// ForgetInstance drops the account of a workload that is gone, once nothing of it is pending.
func (o *Outbox) ForgetInstance(id target.Instance) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.accounts[id]
	if a == nil {
		o.forgetDropped(id)
		return
	}
	o.offerFilteredOf(id)
	a.forgets = true
	o.gcAccount(id, a)
}

// Progress returns the state of the delivery of a workload's reports.
func (o *Outbox) Progress(id target.Instance) target.DeliveryProgress {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.accounts[id]
	if a == nil {
		return target.DeliveryProgress{Synced: !o.config.InitialSync}
	}
	p := target.DeliveryProgress{
		Pending: len(a.pending), Since: a.pendingSince(), Accepted: a.accepted,
		Rejected: int64(len(a.dead)), Dropped: o.dropped.count(id),
		Synced: a.sync.done, LastError: a.lastError, Operations: a.operations.list(),
		Removed: slices.Sorted(maps.Keys(a.removed)),
	}
	if refusal, cause := a.refusal(); refusal != "" && !o.breaker.open {
		p.Refusal, p.LastError = refusal, cause
	}
	for _, e := range a.deadLetters()[:min(len(a.dead), maxRejections)] {
		p.Rejections = append(p.Rejections, e.dead.Rejection)
	}
	return p
}

// DeliveryCounts returns the counts of a workload.
func (o *Outbox) DeliveryCounts(id target.Instance) DeliveryCounts {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.accounts[id]
	if a == nil {
		return DeliveryCounts{}
	}
	out := DeliveryCounts{Rejected: int64(len(a.dead)), Dropped: o.dropped.count(id)}
	overdue := time.Now().Add(-target.OverdueAfter)
	for e := range a.pending {
		switch e.report.(type) {
		case observe.Status, observe.Tree, InitialSync: // a status has these counts and must not count itself
		default:
			if e.since.Before(overdue) {
				out.Pending++
			}
		}
	}
	return out
}

// counts are totals over all workloads.
type counts struct {
	pending             int // entries with a report
	failed              int // pending ones whose last try failed
	inFlight            int // items taken and not settled
	quarantinedInFlight int // those in quarantine
	syncsInFlight       int // initial syncs
	largeInFlight       int // large operations
	dead                int // entries with a dead letter
}

// DelayedSince returns since when the oldest report is pending that does not wait for a change of its workload; zero if none is.
// A report that does wait is no delay of the delivery: others do not wait for it.
func (o *Outbox) DelayedSince() (oldest time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.accounts {
		if at := a.delayedSince(); oldest.IsZero() || !at.IsZero() && at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}

// Pending returns the number of keys with a report that is not settled.
func (o *Outbox) Pending() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.counts.pending
}

// Failing returns how many of the pending keys failed at their last try.
func (o *Outbox) Failing() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.counts.failed
}

// Suspended reports whether there is an outage, in which only probes are sent.
func (o *Outbox) Suspended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.breaker.open
}
