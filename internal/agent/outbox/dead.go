package outbox

import (
	"slices"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// deadLetter is a report that the control plane refused for good.
type deadLetter struct {
	Rejection
	instance target.Instance
	// report is what to send when it is tried again; nil if that has still to be offered.
	report observe.Report
}

// Reject settles an item: the control plane will never take it. It is kept as a dead letter, until a newer version of
// it comes, [Outbox.RetryRejected] is called, or the workload is forgotten.
func (o *Outbox) Reject(item Item, cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.settle(item)
	withdrawn := e.report == nil
	o.conclude(e, item)
	switch known := o.instances[item.Report.Instance()] != nil; {
	case e.report != nil: // a newer version is tried
	case withdrawn || !known: // nobody is to be shown it; if it comes back it is news
		e.version, e.settled = "", false
	default:
		o.bury(e, &deadLetter{
			Rejection: Rejection{Report: item.Report.String(), Reason: cause.Error(), Time: time.Now()},
			instance:  item.Report.Instance(),
			report:    item.Report,
		})
	}
	o.keepReceipt(e)
	o.retire(e)
}

// bury makes a report an entry's dead letter, in place of the one before; nil only ends that.
func (o *Outbox) bury(e *entry, letter *deadLetter) {
	if e.dead == nil && letter == nil {
		return
	}
	if before := e.dead; before != nil {
		if in := o.instances[before.instance]; in != nil {
			delete(in.dead, e)
		}
		o.dead--
	}
	if e.dead = letter; letter != nil {
		o.account(letter.instance).dead[e] = struct{}{}
		o.dead++
	}
	o.keepDead(e)
}

// RetryRejected sends the dead letters of a workload again.
func (o *Outbox) RetryRejected(id target.Instance) {
	o.mu.Lock()
	defer o.mu.Unlock()
	in := o.instances[id]
	if in == nil || o.closed {
		return
	}
	for _, e := range slices.Backward(in.letters()) { // in the order in which they came up
		report := e.dead.report
		o.bury(e, nil)
		if op, ok := report.(observe.Operation); ok && op.Deleted && e.isOutdated() {
			o.retire(e)
			continue
		}
		e.settled = false // an Offer of the same version is news
		if report != nil && e.isIdle() {
			o.enqueue(e, report)
		}
	}
}

// isOutdated reports whether the control plane has another object of its lane by now, which a deletion of this one would
// undo.
func (e *entry) isOutdated() bool {
	deleted := observe.Operation{Deleted: true}.Version()
	return slices.ContainsFunc(e.lane.entries, func(other *entry) bool {
		return other != e && other.receipt.Accepted && other.version != deleted
	})
}

// letters returns the entries with a dead letter, the newest first.
func (in *instance) letters() []*entry {
	out := make([]*entry, 0, len(in.dead))
	for e := range in.dead {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b *entry) int { return b.dead.Time.Compare(a.dead.Time) })
	return out
}

// DeadLetters returns the number of reports that the control plane refused for good.
func (o *Outbox) DeadLetters() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dead
}
