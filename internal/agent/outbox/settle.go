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
		if _, isStatus := item.Report.(observe.Status); isStatus {
			a.gone = false
		}
	}
	o.conclude(e, item)
	o.recordOperation(e, item.Report)
	e.retry.attempts = 0
	o.persistence.saveReceipt(e)
	o.gc(e)
}

// AckNotFound settles an item whose row no longer exists. The report and the receipt are dropped. A row that the control
// plane never had is no reason to drop a report: see [Outbox.HadRow].
func (o *Outbox) AckNotFound(item Item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.takeBack(item)
	if a := o.accounts[item.Report.Instance()]; a != nil && !isOperation(item.Report) {
		a.gone = true
	}
	e.receipt = Receipt{}
	o.removeOperation(e)
	o.conclude(e, item)
	o.persistence.deleteReceipt(e.key)
	o.gc(e)
}

// HadRow reports whether the control plane had the row that a report is written to. A status is written to the row of its instance,
// and the Events of an instance need that row too. An operation is written to the row of its resource.
func (o *Outbox) HadRow(item Item) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	instance := item.Report.Instance()
	a, status := o.accounts[instance], o.entries[observe.Status{Workload: instance}.Key()]
	return item.Receipt.Accepted || a != nil && a.gone || !isOperation(item.Report) && status != nil && status.receipt.Accepted
}

func isOperation(r observe.Report) bool {
	_, ok := r.(observe.Operation)
	return ok
}

// Nack settles an item that has to be sent again after a wait, or the report that replaced it meanwhile. Its group waits
// for it. If it was cancelled, it is dropped.
func (o *Outbox) Nack(item Item, f Failure) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.takeBack(item)
	o.requeueFailed(e, f.Cause, o.breaker.fail(e.key, &e.retry, item.Probe, f))
}

// Refuse settles an item that the control plane refuses until somebody changes something there. It has to be sent again after
// a wait of its own. The control plane has answered, so this is no failure of the delivery, and no other instance waits. It
// returns true if no other pending report of the instance has this refusal.
func (o *Outbox) Refuse(item Item, refusal target.Refusal, cause error) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.takeBack(item)
	waits := e.retry.waits
	o.answered(e, item)
	if e.report != nil && e.report.Instance() != item.Report.Instance() { // the refusal is not about the report of now
		o.requeue(e)
		return false
	}
	e.retry.waits = waits
	if a := o.accounts[item.Report.Instance()]; a != nil && a.forgets { // the workload is gone, and its reports with it
		e.forgets = true
		o.conclude(e, item)
		o.gc(e)
		return false
	}
	wait := e.retry.backOff(o.breaker.backoff)
	if refusal == target.QuotaExceeded {
		wait = max(wait, quotaWait)
	}
	e.retry.retryAt = time.Now().Add(wait)
	if e.report != nil {
		o.clearFailed(e)
		first = !o.account(e.report.Instance()).refuses(refusal)
		e.refusal, e.refusedBy = refusal, cause.Error()
	}
	o.requeue(e)
	return first
}

func (o *Outbox) requeueFailed(e *entry, cause error, after time.Duration) {
	e.retry.retryAt = time.Now().Add(after)
	if e.report != nil {
		e.refusal, e.refusedBy = "", ""
		o.account(e.report.Instance()).lastError = cause.Error()
		if !e.failed {
			e.failed = true
			o.counts.failed++
		}
	}
	o.requeue(e)
}

// Defer settles an item that this side cannot send yet, as if it had not been taken. It comes again after a wait that
// doubles each time, up to five seconds. An item that was taken after [Outbox.Close] is dropped, because the reason no
// longer passes. One that was taken before is tried once more: Close may have removed the reason.
func (o *Outbox) Defer(item Item, after time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.takeBack(item)
	e.retry.deferTo(time.Now(), after)
	if item.last {
		o.clearPending(e)
	}
	o.requeue(e)
}

// Requeue settles an item that was not sent because the protocol has changed. It is the next one of its group, and counts as
// an attempt.
func (o *Outbox) Requeue(item Item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.takeBack(item)
	if e.report != nil && !o.protocol.takes(e.report) {
		o.clearPending(e)
	}
	o.requeue(e)
}

// requeue makes a settled entry the first of its group, if it has a pending report.
func (o *Outbox) requeue(e *entry) {
	e.replaced = time.Time{}
	if e.report != nil {
		e.group.putFirst(e)
	}
	o.gc(e)
	o.schedule(e.group)
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
	o.broadcast() // takers may wait for the next probe, the next quarantined report, or the end
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

// conclude ends the delivery of a report that the control plane accepted or refused. A report that replaced it is sent
// next.
func (o *Outbox) conclude(e *entry, item Item) {
	o.answered(e, item)
	e.end(item.version, answered)
	o.setDead(e, nil)
	// The versions of a snapshot also differ if the protocol has changed while it was in flight.
	if e.report != nil && o.protocol.version(e.report) != e.version {
		e.since = cmp.Or(e.replaced, time.Now())
		o.clearFailed(e)
		e.group.putFirst(e)
	} else {
		o.clearPending(e)
	}
	e.replaced = time.Time{}
	o.schedule(e.group)
}
