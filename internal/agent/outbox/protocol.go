package outbox

import (
	"fmt"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
)

// Protocol is how reports are sent to the control plane. Protocols are compared with ==.
type Protocol interface {
	// Version returns the version of a report as far as the protocol can express it: two reports of a key with equal
	// versions are sent once. It returns false if the protocol has no place for the report. It must not call the outbox.
	Version(r observe.Report) (version string, ok bool)
}

// everything is the protocol of an outbox without one: it takes all reports as they are.
type everything struct{}

func (everything) Version(r observe.Report) (string, bool) { return r.Version(), true }

// protocolState is the current protocol.
type protocolState struct {
	current Protocol
	// generation differs after each change; 0 is that of the first protocol. Generations of different processes differ,
	// because the control plane may have changed in between.
	generation int64
	reoffer    chan struct{} // capacity 1
}

func newProtocolState(p Protocol) protocolState {
	if p == nil {
		p = everything{}
	}
	return protocolState{current: p, reoffer: make(chan struct{}, 1)}
}

func (p *protocolState) takes(r observe.Report) bool {
	if _, ok := r.(InitialSync); ok {
		return true
	}
	_, ok := p.current.Version(r)
	return ok
}

// version returns the version under which a report is settled. That of a snapshot names the generation: after a
// change of the protocol, maybe to another control plane, a snapshot is always sent again.
func (p *protocolState) version(r observe.Report) string {
	version, _ := p.current.Version(r)
	if observe.IsSnapshot(r) && p.generation != 0 {
		return fmt.Sprintf("%d:%s", p.generation, version)
	}
	return version
}

// Protocol returns the current protocol.
func (o *Outbox) Protocol() Protocol {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.protocol.current
}

// SetProtocol changes the protocol, and returns false if it is the current one already. Pending reports without a place in
// the new protocol are dropped. [Outbox.Reoffer] then asks for all statuses, trees and objects again, and for the Events of shared
// objects, because the old protocol may have had no place for some of them.
func (o *Outbox) SetProtocol(p Protocol) (changed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.protocol.current == p {
		return false
	}
	o.protocol.current = p
	o.protocol.generation = max(time.Now().UnixMicro(), o.protocol.generation+1)
	for _, e := range o.entries {
		if e.report != nil && !o.protocol.takes(e.report) {
			o.unqueue(e)
			o.clearPending(e, leftWithdrawn)
			o.gc(e)
		}
	}
	o.wakeTaker()
	select {
	case o.protocol.reoffer <- struct{}{}:
	default: // asked for already
	}
	return true
}

// Reoffer receives when reports have to be offered again; see [Outbox.SetProtocol]. It is for one receiver.
func (o *Outbox) Reoffer() <-chan struct{} { return o.protocol.reoffer }
