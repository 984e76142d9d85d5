package outbox

import (
	"slices"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// deadLetter is a report that the control plane rejected.
type deadLetter struct {
	target.Rejection
	instance target.Instance
	report   observe.Report // nil if it has to be offered before it can be sent again
}

// Reject settles an item that the control plane will never take. The report becomes a dead letter until a newer version is
// offered, [Outbox.RetryRejected] is called, or the workload is forgotten.
func (o *Outbox) Reject(item Item, cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.takeBack(item)
	cancelled := e.report == nil
	o.answered(e, item)
	o.conclude(e, item, leftRejected)
	switch known := o.accounts[item.Report.Instance()] != nil; {
	case e.report != nil: // a newer version is sent
	case cancelled || !known: // no status would show the dead letter; the next Offer is sent
		e.forgetVersion()
	default:
		o.setDead(e, &deadLetter{
			Rejection: target.Rejection{Report: item.Report.String(), Reason: cause.Error(), Time: time.Now()},
			instance:  item.Report.Instance(),
			report:    item.Report,
		})
	}
	o.persistence.saveReceipt(e)
	o.gc(e)
}

// setDead sets or replaces the dead letter of an entry. A nil letter removes it.
func (o *Outbox) setDead(e *entry, letter *deadLetter) {
	if e.dead == nil && letter == nil {
		return
	}
	if before := e.dead; before != nil {
		if a := o.accounts[before.instance]; a != nil {
			delete(a.dead, e)
		}
		o.counts.dead--
	}
	if e.dead = letter; letter == nil {
		if e.report == nil {
			o.evictable.remove(e)
		}
		o.persistence.deleteDead(e.key)
		return
	}
	o.account(letter.instance).dead[e] = struct{}{}
	o.counts.dead++
	if ev, isEvent := letter.report.(observe.Event); isEvent {
		o.makeEvictable(e, ev)
	}
	o.persistence.saveDead(e.key, e.group.name, e.version, letter)
}

// RetryRejected sends the dead letters of a workload again.
func (o *Outbox) RetryRejected(id target.Instance) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.accounts[id]
	if a == nil || o.closed {
		return
	}
	for _, e := range slices.Backward(a.deadLetters()) { // the oldest first
		report := e.dead.report
		o.setDead(e, nil)
		if op, ok := report.(observe.Operation); ok && op.Deleted && e.isOutdated() {
			o.gc(e)
			continue
		}
		e.reopen() // also after a restart, because the record has no version
		o.persistence.saveReceipt(e)
		if report != nil && e.isIdle() {
			o.enqueue(e, enter(report))
		}
		o.gc(e)
	}
}

// isOutdated reports whether the control plane has a later object of the entry's group. Deleting the earlier one would undo
// that.
func (e *entry) isOutdated() bool {
	deleted := observe.Operation{Deleted: true}.Version()
	return slices.ContainsFunc(e.group.entries, func(other *entry) bool {
		return other != e && other.receipt.Accepted && other.version != deleted
	})
}

// DeadLetters returns the number of reports that the control plane rejected.
func (o *Outbox) DeadLetters() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.counts.dead
}
