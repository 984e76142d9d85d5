package outbox

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Known is what the control plane turned out to have of a key.
type Known struct {
	Key observe.Key
	// Lane is that of the key. What waits in it for other keys is older than what the control plane has, and is
	// dropped. Empty for a lane that has no other keys.
	Lane    observe.OrderingKey
	Receipt Receipt
	// Version is that of the report which the control plane has; empty if it has another, or it is not known.
	Version string
	// Modified is true if the control plane has a later report than the first.
	Modified bool
	// Deletion is set, and nothing else, if that is what the control plane has of a resource.
	Deletion *observe.Operation
}

// InitialSync is the first item of a workload: what the control plane has of it is to be read, and told with
// [Outbox.Seed] before the item is accepted. It is sent like a report, and waits and fails like one.
type InitialSync struct{ Workload target.Instance }

// Key is the workload's own.
func (a InitialSync) Key() observe.Key {
	return observe.Key(fmt.Sprintf("adoption/%s/%d", a.Workload.Type, a.Workload.ID))
}

// OrderingKey is the workload's own.
func (a InitialSync) OrderingKey() observe.OrderingKey { return observe.OrderingKey(a.Key()) }

// Version is always the same: there is one adoption of a workload.
func (InitialSync) Version() string { return "" }

// Instance returns the workload.
func (a InitialSync) Instance() target.Instance { return a.Workload }

func (a InitialSync) String() string { return "adoption of " + a.Workload.String() }

// beginAdoption makes the adoption of a workload pending.
func (o *Outbox) beginAdoption(id target.Instance) {
	adoption := InitialSync{id}
	e := o.entry(adoption.Key(), adoption.OrderingKey())
	e.forgets = true
	o.enqueue(e, adoption)
}

// Seed tells what the control plane has of a workload, and ends the hold of its reports. Missed are the deletions that
// nobody has seen: they come before all else in their lanes. Live are the Events as the cluster has them: they take the
// place of what the memory kept and was not offered since. Of what is known and was not offered yet only what will be
// is worth naming: it is kept until then.
func (o *Outbox) Seed(id target.Instance, known []Known, missed []observe.Operation, live []observe.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, ev := range live {
		if e := o.entries[ev.Key()]; e != nil && e.restored && e.report != nil && !e.isOut() {
			o.pend(e, ev)
		}
	}
	in := o.account(id)
	in.adopted, in.known = true, map[observe.Key]Known{}
	for _, k := range known {
		if k.Deletion != nil {
			in.deleted(*k.Deletion)
			continue
		}
		o.outdate(k)
		if e := o.entries[k.Key]; e != nil {
			o.learn(e, k)
		} else {
			in.known[k.Key] = k
		}
	}
	for _, op := range missed {
		o.precede(op)
	}
	for _, e := range slices.SortedFunc(maps.Keys(in.pending), func(a, b *entry) int { return a.since.Compare(b.since) }) {
		o.schedule(e.lane)
	}
	o.broadcast()
}

// outdate drops what waits in a lane for keys before the one that the control plane has: deletions that were delivered
// without this process knowing it. To tell them now would undo what came after them.
func (o *Outbox) outdate(k Known) {
	l := o.lanes[k.Lane]
	if l == nil {
		return
	}
	for _, e := range slices.Clone(l.queue) {
		if e.key == k.Key {
			return
		}
		if op, ok := e.report.(observe.Operation); ok && op.Deleted {
			o.unqueue(e)
			o.unpend(e)
			o.retire(e)
		}
	}
}

// learn corrects what is known of an entry that is not being sent.
func (o *Outbox) learn(e *entry, k Known) {
	if e.isOut() {
		return
	}
	e.receipt = k.Receipt
	if k.Version != "" {
		e.version, e.settled, e.dropped, e.modified = k.Version, true, false, k.Modified
		if e.report != nil && e.report.Version() == k.Version {
			o.note(e, e.report)
			o.unqueue(e)
			o.unpend(e)
		} else {
			o.correct(e)
		}
	}
	if e.settled {
		o.keepReceipt(e)
	}
	o.retire(e)
}

// precede puts a deletion before what waits in its lane.
func (o *Outbox) precede(op observe.Operation) {
	e := o.entryOf(op)
	if e.report != nil || e.isOut() || e.settled && e.version == op.Version() {
		return
	}
	e.since, e.forgets = time.Now(), true
	o.pend(e, op)
	e.lane.remove()
	e.lane.queue = slices.Insert(e.lane.queue, 0, e)
}

// held reports whether a report waits for the adoption of its workload. A status and a tree do not: each is whole by
// itself.
func (o *Outbox) held(r observe.Report) bool {
	switch r.(type) {
	case observe.Status, observe.Tree, InitialSync:
		return false
	}
	in := o.instances[r.Instance()]
	return in != nil && !in.adopted
}

// Phase is how far the reports of a key are.
type Phase int

// The phases of a key.
const (
	// Unknown is the phase of a key of which nothing was offered.
	Unknown Phase = iota
	// Pending means that something is to be delivered.
	Pending
	// Settled means that the control plane has the newest report.
	Settled
	// Rejected means that it refused that for good, or that it was dropped.
	Rejected
)

// Snapshot is what is known of a key.
type Snapshot struct {
	Phase   Phase
	Version string // of the last report that was settled
	Receipt Receipt
}

// State tells how far a key is.
func (o *Outbox) State(key observe.Key) Snapshot {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.entries[key]
	if e == nil {
		return Snapshot{}
	}
	s := Snapshot{Version: e.version, Receipt: e.receipt}
	switch {
	case !e.isIdle():
		s.Phase = Pending
	case e.dead != nil || e.dropped:
		s.Phase = Rejected
	case e.settled:
		s.Phase = Settled
	}
	return s
}

// Resend puts in a report again although its version was accepted, because the control plane does not have it any more.
// The receipt is what it has. It returns false, and does nothing, if the key is not settled at that version: then
// something newer is on its way.
func (o *Outbox) Resend(r observe.Report, receipt Receipt) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.entries[r.Key()]
	if o.closed || e == nil || !e.isIdle() || !e.settled || e.version != r.Version() || e.dead != nil || e.dropped {
		return false
	}
	e.settled, e.receipt = false, receipt
	o.enqueue(e, r)
	e.repair = true
	o.shed()
	return true
}
