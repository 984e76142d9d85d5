package outbox

import (
	"slices"
	"time"

	"github.com/threeport/threeport-agent/internal/target"
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
	// Accepted and Rejected count reports since the outbox was made.
	Accepted, Rejected int64
	// LastError is the latest failure since the last success.
	LastError string
	// Rejections are the latest, newest first.
	Rejections []Rejection
}

// instance is the account of one workload.
type instance struct {
	pending            map[*entry]struct{}
	accepted, rejected int64
	lastError          string
	rejections         []Rejection
	forgets            bool // drop the account once nothing is pending
}

func (in *instance) reject(r Rejection) {
	in.rejected++
	in.rejections = slices.Insert(in.rejections, 0, r)
	if len(in.rejections) > shownRejections {
		in.rejections = in.rejections[:shownRejections]
	}
}

// account returns the account of a workload, a new one if need be; with mu held.
func (o *Outbox) account(id target.Instance) *instance {
	in := o.instances[id]
	if in == nil {
		in = &instance{pending: map[*entry]struct{}{}}
		o.instances[id] = in
	}
	return in
}

// discharge takes an entry out of its workload's account; with mu held.
func (o *Outbox) discharge(e *entry) {
	id := e.report.Instance()
	in := o.instances[id]
	delete(in.pending, e)
	if in.forgets && len(in.pending) == 0 {
		delete(o.instances, id)
	}
}

// Progress returns how far the control plane is behind on a workload.
func (o *Outbox) Progress(id target.Instance) Progress {
	o.mu.Lock()
	defer o.mu.Unlock()
	in := o.instances[id]
	if in == nil {
		return Progress{}
	}
	p := Progress{
		Pending:    len(in.pending),
		Accepted:   in.accepted,
		Rejected:   in.rejected,
		LastError:  in.lastError,
		Rejections: slices.Clone(in.rejections),
	}
	for e := range in.pending {
		if p.Since.IsZero() || e.since.Before(p.Since) {
			p.Since = e.since
		}
	}
	return p
}

// ForgetInstance drops the account of a workload that is gone, once nothing of it is pending.
func (o *Outbox) ForgetInstance(id target.Instance) {
	o.mu.Lock()
	defer o.mu.Unlock()
	in := o.instances[id]
	if in == nil {
		return
	}
	in.forgets = true
	if len(in.pending) == 0 {
		delete(o.instances, id)
	}
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
