package outbox

import "github.com/threeport/threeport-agent/internal/agent/observe"

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
	// Rejected means that the newest report was rejected, or evicted.
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
		return KeyState{Phase: Settled, Version: d.version, Receipt: d.receipt, Current: d.ended(o.protocol.version(r))}
	}
	e := o.entries[r.Key()]
	if e == nil {
		return KeyState{}
	}
	s := KeyState{Version: e.version, Receipt: e.receipt, Current: e.ended(o.protocol.version(r))}
	switch {
	case !e.isIdle():
		s.Phase = Pending
	case e.dead != nil || e.outcome == evicted:
		s.Phase = Rejected
	case e.outcome == answered:
		s.Phase = Settled
	}
	return s
}

// Resend sends a report again although its version was accepted, because the control plane has lost or changed it. The
// receipt is that of the current row. It returns false, without any effect, unless the key is settled at that version.
func (o *Outbox) Resend(r observe.Report, receipt Receipt) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.find(r.Key())
	if e == nil {
		return false
	}
	defer o.gc(e)
	if o.closed || !e.isIdle() || e.dead != nil || e.outcome != answered || !e.ended(o.protocol.version(r)) {
		return false
	}
	e.outcome, e.receipt = unanswered, receipt
	o.enqueue(e, r)
	e.repair = true
	o.enforceBound()
	return true
}
