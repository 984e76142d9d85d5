package outbox

import (
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Phase is the progress of a key's delivery.
type Phase int

// The phases of a key.
const (
	// Unknown is the phase of a key without a pending and without a delivered report.
	Unknown Phase = iota
	// Pending means that a report has to be delivered.
	Pending
	// Settled means that the control plane has the newest report.
	Settled
	// Rejected means that the newest report was rejected, or dropped.
	Rejected
)

// KeyState is the state of a report's key.
type KeyState struct {
	Phase   Phase
	Version string // of the last settled report, in its protocol
	Receipt Receipt
	// Current is true if the last report that was settled has the version of the report in question.
	Current bool
}

// State returns the state of a report's key.
func (o *Outbox) State(r observe.Report) KeyState {
	o.mu.Lock()
	defer o.mu.Unlock()
	if ev, ok := o.archive.get(r.Key()); ok {
		d := ev.delivered()
		phase := Settled
		if d.outcome == dropped {
			phase = Rejected
		}
		return KeyState{Phase: phase, Version: d.version, Receipt: d.receipt, Current: d.ended(o.protocol.version(r))}
	}
	e := o.entries[r.Key()]
	if e == nil {
		return KeyState{}
	}
	s := KeyState{Version: e.version, Receipt: e.receipt, Current: e.ended(o.protocol.version(r))}
	switch {
	case !e.isIdle():
		s.Phase = Pending
	case e.dead != nil || e.outcome == dropped:
		s.Phase = Rejected
	case e.outcome == concluded:
		s.Phase = Settled
	}
	return s
}

// Has reports whether an Offer of a report would change nothing.
func (o *Outbox) Has(r observe.Report) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.protocol.takes(r) {
		return true
	}
	version := o.protocol.version(r)
	if ev, ok := o.archive.get(r.Key()); ok {
		d := ev.delivered()
		return d.ended(version)
	}
	e := o.entries[r.Key()]
	return e != nil && (e.ended(version) || e.report != nil && o.protocol.version(e.report) == version)
}

// Reopen makes the next Offers of an instance's status and of its existing objects be sent, also if the control plane has accepted
// these versions. It changes no pending and no rejected report.
func (o *Outbox) Reopen(id target.Instance) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.accounts[id]
	if a == nil {
		return
	}
	o.reopenKey(observe.Status{Workload: id}.Key())
	for _, op := range a.operations {
		if !op.Deleted {
			o.reopenKey(op.key)
		}
	}
}

func (o *Outbox) reopenKey(key observe.Key) {
	if e := o.entries[key]; e != nil && e.isIdle() && e.dead == nil && e.outcome == concluded {
		e.reopen()
	}
}

// Resend sends a report again although its version was accepted, because the control plane has lost or changed it. The
// receipt is that of the current row. It returns false, without any effect, unless the key is settled at that version.
func (o *Outbox) Resend(r observe.Report, receipt Receipt) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.getOrUnarchive(r.Key())
	if e == nil {
		return false
	}
	defer o.gc(e)
	if o.closed || !e.isIdle() || e.dead != nil || e.outcome != concluded || !e.ended(o.protocol.version(r)) {
		return false
	}
	e.reopen()
	e.receipt = receipt
	o.enqueue(e, r)
	e.repair = true
	o.enforceBound()
	return true
}
