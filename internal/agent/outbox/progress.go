package outbox

import (
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// shownRejections bounds how many rejections of a workload are kept to be shown.
const shownRejections = 10

// Rejection is a report that the control plane refused for good.
type Rejection struct {
	Report string
	Reason string
	Time   time.Time
}

// Progress tells how far the control plane is behind on a workload.
type Progress struct {
	// Pending is the number of keys with a report that is not settled.
	Pending int
	// Since is when the oldest of them became pending; zero if there is none.
	Since time.Time
	// Accepted counts reports since the outbox was made.
	Accepted int64
	// Rejected is the number of reports that the control plane refused for good.
	Rejected int64
	// Dropped counts the Events that were dropped to keep the bound on what is held.
	Dropped int64
	// Synced is true if what the control plane has of the workload is known.
	Synced bool
	// LastError is the latest failure since the last success.
	LastError string
	// Rejections are the latest of those that were refused, newest first.
	Rejections []Rejection
	// Operations are the latest that were accepted, by listed resource without its version. Those of an earlier process
	// are known once their objects were offered again; deletions are not.
	Operations map[target.Resource]LastOperation
}

// instance is the account of one workload.
type instance struct {
	pending   map[*entry]struct{}
	dead      map[*entry]struct{}
	accepted  int64
	lastError string
	adopted   bool                  // what the control plane has of it is known
	known     map[observe.Key]Known // that of it which was not offered yet
	operated  map[target.Resource]operated
	// The account is dropped once nothing is pending if it is to be forgotten, or if only the memory knows of the
	// workload and nothing was offered since.
	forgets, undeclared bool
}

// account returns the account of a workload, a new one if need be; with mu held.
func (o *Outbox) account(id target.Instance) *instance {
	in := o.instances[id]
	if in == nil {
		in = &instance{pending: map[*entry]struct{}{}, dead: map[*entry]struct{}{}, adopted: !o.config.InitialSync}
		o.instances[id] = in
		if !in.adopted {
			o.beginAdoption(id)
		}
	}
	return in
}

// discharge takes an entry out of its workload's account; with mu held.
func (o *Outbox) discharge(e *entry) {
	id := e.report.Instance()
	in := o.instances[id]
	delete(in.pending, e)
	o.dropAccount(id, in)
}

// dropAccount ends the account of a workload that is to be forgotten, once nothing is pending; with mu held.
func (o *Outbox) dropAccount(id target.Instance, in *instance) {
	if !in.forgets && !in.undeclared || len(in.pending) > 0 {
		return
	}
	for _, e := range in.letters() {
		o.bury(e, nil)
		e.forgets = true
		o.retire(e)
	}
	o.events.forget(id, o.memory)
	delete(o.instances, id)
}

// Progress returns how far the control plane is behind on a workload.
func (o *Outbox) Progress(id target.Instance) Progress {
	o.mu.Lock()
	defer o.mu.Unlock()
	in := o.instances[id]
	if in == nil {
		return Progress{Synced: !o.config.InitialSync}
	}
	p := Progress{
		Pending:   len(in.pending),
		Accepted:  in.accepted,
		Rejected:  int64(len(in.dead)),
		Dropped:   o.events.dropped(id),
		Synced:    in.adopted,
		LastError: in.lastError,

		Operations: in.operations(),
	}
	for _, e := range in.letters()[:min(len(in.dead), shownRejections)] {
		p.Rejections = append(p.Rejections, e.dead.Rejection)
	}
	for e := range in.pending {
		if p.Since.IsZero() || e.since.Before(p.Since) {
			p.Since = e.since
		}
	}
	return p
}

// usualWait is how long a report may wait until it counts as one that the control plane is behind on.
const usualWait = 5 * time.Second

// DeliveryCounts counts what the control plane has not got of a workload's operations and Events.
func (o *Outbox) DeliveryCounts(id target.Instance) observe.DeliveryCounts {
	o.mu.Lock()
	defer o.mu.Unlock()
	in := o.instances[id]
	if in == nil {
		return observe.DeliveryCounts{}
	}
	out := observe.DeliveryCounts{Rejected: int64(len(in.dead)), Dropped: o.events.dropped(id)}
	usual := time.Now().Add(-usualWait)
	for e := range in.pending {
		switch e.report.(type) {
		case observe.Status, observe.Tree, InitialSync: // what tells of them must not count itself
		default:
			if e.since.Before(usual) {
				out.Pending++
			}
		}
	}
	return out
}

// Oldest returns since when the report is pending that has been so for longest; zero if none is.
func (o *Outbox) Oldest() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	var oldest time.Time
	for _, in := range o.instances {
		for e := range in.pending {
			if oldest.IsZero() || e.since.Before(oldest) {
				oldest = e.since
			}
		}
	}
	return oldest
}

// Declare tells that a workload is declared, maybe again: it is adopted if it is not yet, and its account is kept.
func (o *Outbox) Declare(id target.Instance) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	in := o.account(id)
	in.forgets, in.undeclared = false, false
}

// ForgetInstance drops the account of a workload that is gone, once nothing of it is pending.
func (o *Outbox) ForgetInstance(id target.Instance) {
	o.mu.Lock()
	defer o.mu.Unlock()
	in := o.instances[id]
	if in == nil {
		o.events.forget(id, o.memory)
		return
	}
	in.forgets = true
	o.dropAccount(id, in)
}

// Pending returns the number of keys with a report that is not settled.
func (o *Outbox) Pending() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pending
}

// Failing returns how many of the pending keys failed at their last try.
func (o *Outbox) Failing() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}
