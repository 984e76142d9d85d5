package outbox

import (
	"cmp"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Receipt is what the control plane returned for a key when it accepted a report.
type Receipt struct {
	// Accepted becomes true with the first accepted report of the key.
	Accepted bool
	// RowID is the control plane's row for the key; 0 for reports that do not create rows.
	RowID int64
	// Instance is the workload that the row was created for; zero if the row is not this agent's.
	Instance target.Instance
}

// Ack settles an item that the control plane accepted.
func (o *Outbox) Ack(item Item, receipt Receipt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.takeBack(item)
	receipt.Accepted = true
	e.receipt, e.modified = receipt, item.Receipt.Accepted
	if a := o.accounts[item.Report.Instance()]; a != nil {
		a.accepted++
		a.lastError = ""
		o.release(a)
		switch item.Report.(type) {
		case observe.Status, observe.Operation:
			delete(a.removed, resourceOf(item.Report))
		}
	}
	if _, isStatus := item.Report.(observe.Status); isStatus {
		o.evictable.confirm(item.Report.Instance())
	}
	o.answered(e, item)
	o.conclude(e, item, leftDelivered)
	o.recordOperation(e, item.Report)
	e.retry.attempts = 0
	o.persistence.saveReceipt(e)
	o.gc(e)
}

// MissingRow is the row that the control plane did not find for a report.
type MissingRow struct {
	// Resource is the WorkloadResourceInstance; 0 for the row of the instance.
	Resource int64
	// Unclear is true if it may be either, because the control plane has not answered a status of the instance yet.
	Unclear bool
	// Removed is true if the control plane had the row before.
	Removed bool
}

// IsConfirmed reports whether the control plane has accepted a status of an instance.
func (o *Outbox) IsConfirmed(instance target.Instance) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.isConfirmed(instance)
}

// isConfirmed is IsConfirmed with mu held.
func (o *Outbox) isConfirmed(instance target.Instance) bool {
	status := o.entries[observe.Status{Workload: instance}.Key()]
	return status != nil && status.receipt.Accepted
}

// MissingRow returns which row the control plane did not find. A status is written to the row of its instance, and an operation to
// the row of its resource. An Event needs both.
func (o *Outbox) MissingRow(item Item) MissingRow {
	o.mu.Lock()
	defer o.mu.Unlock()
	instance := item.Report.Instance()
	a, accepted := o.accounts[instance], o.isConfirmed(instance)
	row := MissingRow{Resource: resourceOf(item.Report)}
	if _, isEvent := item.Report.(observe.Event); isEvent && row.Resource != 0 {
		switch {
		case a != nil && (a.removed[0] || a.refuses(target.UnknownInstance)):
			row.Resource = 0
		case !accepted:
			row.Unclear = true
			return row
		}
	}
	_, isOperation := item.Report.(observe.Operation)
	switch { // the receipt of an Event may be of another instance or resource
	case a != nil && (a.removed[0] || a.removed[row.Resource]):
		row.Removed = true
	case row.Resource == 0:
		row.Removed = accepted
	default:
		row.Removed = isOperation && item.Receipt.Accepted || a != nil && a.operations.has(row.Resource)
	}
	return row
}

// AckRemoved settles an item whose row the control plane removed: see [Outbox.MissingRow]. The report and the receipt are
// dropped. It reports whether this is the first report about the row since the control plane removed it.
func (o *Outbox) AckRemoved(item Item, row MissingRow) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.takeBack(item)
	if a := o.accounts[item.Report.Instance()]; a != nil {
		if a.removed == nil {
			a.removed = map[int64]bool{}
		}
		first = !a.removed[row.Resource]
		a.removed[row.Resource] = true
	}
	e.receipt = Receipt{}
	o.removeOperation(e)
	o.answered(e, item)
	o.conclude(e, item, leftDiscarded)
	o.persistence.deleteReceipt(e.key)
	o.gc(e)
	return first
}

// haveSameRows reports whether two reports are about the same instance and resource.
func haveSameRows(x, y observe.Report) bool {
	return x.Instance() == y.Instance() && resourceOf(x) == resourceOf(y)
}

// resourceOf returns the WorkloadResourceInstance that a report names; 0 if it names none.
func resourceOf(r observe.Report) int64 {
	switch r := r.(type) {
	case observe.Operation:
		return r.Attribution.Resource.ID
	case observe.Event:
		return r.ResourceID
	default:
		return 0
	}
}

// Nack settles an item that has to be sent again after a wait, or the report that replaced it meanwhile. Its group waits
// for it. If it was cancelled, it is dropped.
func (o *Outbox) Nack(item Item, f Failure) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.takeBack(item)
	o.requeueFailed(e, item, f.Cause, o.breaker.fail(e.key, &e.retry, item.Probe, f))
}

// Refuse settles an item that the control plane refuses until somebody changes something there. It has to be sent again after
// a wait of its own. The control plane has answered, so this is no failure of the delivery, and no other instance waits. After
// [Outbox.Close] it stays pending, and is not sent again by this process. A report of a workload that is gone is dropped. It returns
// true if no pending report of the instance has this refusal yet.
func (o *Outbox) Refuse(item Item, refusal target.Refusal, cause error) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.takeBack(item)
	waits := e.retry.waits
	o.answered(e, item) // resets the waits
	switch {
	case e.report != nil && !haveSameRows(e.report, item.Report): // the refusal is not about the report that replaced this one
		o.requeue(e, item)
		return false
	case o.isOfGoneWorkload(item.Report):
		e.forgets = true
		o.conclude(e, item, leftDiscarded)
		o.gc(e)
		return false
	}
	e.retry.waits = waits // they grow from one refusal to the next
	wait := e.retry.backOff(o.breaker.backoff)
	if refusal == target.QuotaExceeded {
		wait = max(wait, quotaWait)
	}
	e.retry.retryAt = time.Now().Add(wait)
	if e.report != nil {
		first = o.setRefusal(e, refusal, cause)
	}
	if o.closed {
		o.putBack(e, item)
	} else {
		o.requeue(e, item)
	}
	return first
}

// isOfGoneWorkload reports whether the workload of a report is no longer declared, so that no change there is to be expected.
func (o *Outbox) isOfGoneWorkload(r observe.Report) bool {
	a := o.accounts[r.Instance()]
	return a != nil && a.forgets || observe.EndsWatch(r)
}

// setRefusal records why a pending report is refused. The Events of an instance that is unknown or not assigned wait for the report. It
// returns true if no pending report of the instance has this refusal yet.
func (o *Outbox) setRefusal(e *entry, refusal target.Refusal, cause error) (first bool) {
	o.clearFailed(e)
	a := o.account(e.report.Instance())
	first = !a.refuses(refusal)
	e.refusal, e.refusedBy = refusal, cause.Error()
	switch {
	case refusal == target.UnknownInstance || refusal == target.NotAssigned:
		o.hold(a, e)
	case a.awaited == e:
		o.release(a)
	}
	return first
}

// putBack makes the pending report of a settled entry the first of its group, without scheduling it. Reports behind it wait for it.
func (o *Outbox) putBack(e *entry, item Item) {
	if !e.replaced.IsZero() {
		leave(item.Report, leftReplaced, item.Attempt)
	}
	e.replaced = time.Time{}
	if e.report != nil {
		e.group.putFirst(e)
	}
	o.gc(e)
}

func (o *Outbox) requeueFailed(e *entry, item Item, cause error, after time.Duration) {
	e.retry.retryAt = time.Now().Add(after)
	if e.report != nil {
		e.refusal, e.refusedBy = "", ""
		o.account(e.report.Instance()).lastError = cause.Error()
		if !e.failed {
			e.failed = true
			o.counts.failed++
		}
	}
	o.requeue(e, item)
}

// Defer settles an item that this side cannot send yet, as if it had not been taken. It comes again after a wait that
// doubles each time, up to five seconds. An item that was taken after [Outbox.Close] is not sent again by this process, because the
// reason no longer passes. It is kept if it would be lost, else dropped. One that was taken before is tried once more: Close may have
// removed the reason. The cause is the last error of the instance until the control plane accepts a report of it; nil for an item that
// makes progress.
func (o *Outbox) Defer(item Item, after time.Duration, cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.takeBack(item)
	e.retry.deferTo(time.Now(), after)
	if cause != nil && e.report != nil {
		o.account(e.report.Instance()).lastError = cause.Error()
	}
	switch {
	case item.last && mustPersist(e.report):
		o.putBack(e, item)
		return
	case item.last:
		o.clearPending(e, leftWithdrawn)
	}
	o.requeue(e, item)
}

// Requeue settles an item that was not sent because the protocol has changed. It is the next one of its group, and counts as
// an attempt.
func (o *Outbox) Requeue(item Item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.takeBack(item)
	if e.report != nil && !o.protocol.takes(e.report) {
		o.clearPending(e, leftWithdrawn)
	}
	o.requeue(e, item)
}

// requeue makes a settled entry the first of its group, if it has a pending report.
func (o *Outbox) requeue(e *entry, item Item) {
	g := e.group
	o.putBack(e, item)
	o.schedule(g)
}

// takeBack ends that an item is in flight.
func (o *Outbox) takeBack(item Item) *entry {
	e := o.entries[item.Report.Key()]
	if e == nil || !e.isInFlight() {
		panic("outbox: " + item.Report.String() + " is settled twice, or was never taken")
	}
	e.group.inFlight = nil
	o.counts.inFlight--
	if e.retry.quarantined() {
		o.counts.quarantinedInFlight--
	}
	if _, isSync := item.Report.(InitialSync); isSync {
		o.counts.syncsInFlight--
	}
	if isLarge(item.Report) {
		o.counts.largeInFlight--
	}
	if o.closed || o.hasWork() { // takers may wait for the next probe, the next quarantined report, or the end
		o.wakeTaker()
	}
	return e
}

// answered records that the control plane answered, which ends an outage.
func (o *Outbox) answered(e *entry, item Item) {
	if o.breaker.answer(&e.retry, item.Probe) {
		for _, g := range o.queues.endOutage(time.Now()) {
			o.schedule(g)
		}
	}
}

// conclude ends the delivery of a report that is not sent again. A report that replaced it is sent next.
func (o *Outbox) conclude(e *entry, item Item, left string) {
	leave(item.Report, left, item.Attempt) // the pending report may be a newer one
	e.end(item.version, concluded)
	o.setDead(e, nil)
	// The versions of a snapshot also differ if the protocol has changed while it was in flight.
	if e.report != nil && o.protocol.version(e.report) != e.version {
		e.since = cmp.Or(e.replaced, time.Now())
		o.clearFailed(e)
		e.group.putFirst(e)
	} else {
		o.clearPending(e, left)
	}
	e.replaced = time.Time{}
	o.schedule(e.group)
}
