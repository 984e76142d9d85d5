package outbox

import (
	"fmt"
	"slices"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// InitialSync is the first item of a workload: the remote state has to be read, and passed to [Outbox.Seed], before the
// item is settled by [Outbox.Ack]. It is paced like a report. It may take several turns, each ended by [Outbox.Defer] without a wait.
type InitialSync struct{ Workload target.Instance }

// Key is the workload's own.
func (s InitialSync) Key() observe.Key {
	return observe.Key(fmt.Sprintf("initialsync/%s/%d", s.Workload.Type, s.Workload.ID))
}

// OrderingKey is the key.
func (s InitialSync) OrderingKey() observe.OrderingKey { return observe.OrderingKey(s.Key()) }

// Version is constant: there is one initial sync of a workload.
func (InitialSync) Version() string { return "" }

// Instance returns the workload.
func (s InitialSync) Instance() target.Instance { return s.Workload }

func (s InitialSync) String() string { return "initial sync of " + s.Workload.String() }

// Known has the remote state of a key.
type Known struct {
	Key observe.Key
	// OrderingKey is that of the key. Seed drops pending deletions of other keys with this ordering key, because the remote
	// state is newer. It is empty for reports whose ordering key is their key.
	OrderingKey observe.OrderingKey
	Receipt     Receipt
	// Version is that of the report in the remote state; empty if it is of no known report.
	Version string
	// Modified is true if that report is not the first of the key.
	Modified bool
	// Deletion is set, and nothing else, if the remote state of a resource is that it was deleted.
	Deletion *observe.Operation
}

// initialSync is the state of a workload's initial sync.
type initialSync struct {
	done bool
	// The map known has the remote state of keys that were not offered yet. It is kept until the first Offer.
	known map[observe.Key]Known
}

// finish ends the sync. The remote state of keys that are not known is kept.
func (s *initialSync) finish() { s.done, s.known = true, map[observe.Key]Known{} }

func (s *initialSync) keep(k Known) { s.known[k.Key] = k }

// take returns the remote state of a key for its first Offer, once.
func (s *initialSync) take(key observe.Key) (Known, bool) {
	k, ok := s.known[key]
	delete(s.known, key)
	return k, ok
}

// holds reports whether a report waits for the initial sync. Snapshots do not: they replace any remote state.
func (s *initialSync) holds(r observe.Report) bool {
	_, isSync := r.(InitialSync)
	return !s.done && !isSync && !observe.IsSnapshot(r)
}

// beginInitialSync makes the initial sync of a workload pending.
func (o *Outbox) beginInitialSync(id target.Instance) {
	r := InitialSync{id}
	e := o.getOrAdd(r.Key(), r.OrderingKey())
	e.forgets = true
	o.enqueue(e, r)
}

// IsSyncDeferred reports whether an initial sync waits because the workload was not ready. It returns false for one that failed or was
// refused since the last answer, and while it is under way.
func (o *Outbox) IsSyncDeferred(id target.Instance) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.deferredSync(id) != nil
}

// RetrySync ends the wait of a deferred initial sync. It has no effect on others: see [Outbox.IsSyncDeferred].
func (o *Outbox) RetrySync(id target.Instance) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.deferredSync(id); e != nil {
		e.retry.retryAt, e.retry.waits = time.Time{}, 0
		e.group.dequeue()
		o.schedule(e.group)
	}
}

// deferredSync returns the entry of an initial sync that waits because the workload was not ready; nil if there is none.
func (o *Outbox) deferredSync(id target.Instance) *entry {
	e := o.entries[InitialSync{id}.Key()]
	if e == nil || e.report == nil || e.isInFlight() || e.failed || e.refusal != "" || !e.retry.retryAt.After(time.Now()) {
		return nil
	}
	return e
}

// Seed takes the remote state of a workload, and releases its reports. Remote state for keys not offered yet is kept until
// the first Offer. Missed are deletions that the control plane has not got and that no informer has seen: they are sent
// before everything else in their groups. Live are the Events that the cluster has: they replace those from the store that
// were not offered since.
func (o *Outbox) Seed(id target.Instance, known []Known, missed []observe.Operation, live []observe.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, ev := range live {
		if e := o.entries[ev.Key()]; e != nil && e.restored && e.report != nil && !e.isInFlight() {
			o.setPending(e, ev)
		}
	}
	a := o.account(id)
	a.sync.finish()
	for _, k := range known {
		if k.Deletion != nil {
			a.operations.addDeletion(*k.Deletion)
			continue
		}
		o.dropOutdated(k)
		if e := o.getOrUnarchive(k.Key); e != nil {
			o.learn(e, k)
			o.gc(e)
		} else {
			a.sync.keep(k)
		}
	}
	for _, op := range missed {
		o.putBefore(op)
	}
	o.scheduleAll(a)
	o.wakeTaker()
}

// dropOutdated drops deletions that wait in a group before the key that the control plane has. They were delivered by a
// process that did not record it. Sent again, they would undo the later report.
func (o *Outbox) dropOutdated(k Known) {
	g := o.groups[k.OrderingKey]
	if g == nil {
		return
	}
	for _, e := range slices.Clone(g.queue) {
		if e.key == k.Key {
			return
		}
		if op, ok := e.report.(observe.Operation); ok && op.Deleted {
			o.unqueue(e)
			o.clearPending(e, leftWithdrawn)
			o.gc(e)
		}
	}
}

// learn sets what the control plane has of an entry that is not being sent.
func (o *Outbox) learn(e *entry, k Known) {
	if e.isInFlight() {
		return
	}
	e.receipt = k.Receipt
	if k.Version != "" {
		e.modified = k.Modified
		e.end(k.Version, concluded)
		if e.report != nil && o.protocol.version(e.report) == k.Version {
			o.recordOperation(e, e.report)
			o.unqueue(e)
			o.clearPending(e, leftWithdrawn)
			e.retry = retryState{}
		} else {
			o.correctOperation(e)
		}
	}
	if e.outcome != noOutcome {
		o.persistence.saveReceipt(e)
	}
}

// putBefore queues a deletion before everything else in its group.
func (o *Outbox) putBefore(op observe.Operation) {
	e := o.entryOf(op)
	if e.report != nil || e.isInFlight() || e.ended(o.protocol.version(op)) {
		return
	}
	e.since, e.forgets = time.Now(), true
	o.setPending(e, op)
	e.group.dequeue()
	e.group.putFirst(e)
}
