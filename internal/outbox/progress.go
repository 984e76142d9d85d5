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
	pending            pending
	accepted, rejected int64
	lastError          string
	rejections         []Rejection
}

type pending map[*entry]struct{}

func (p pending) add(e *entry)    { p[e] = struct{}{} }
func (p pending) remove(e *entry) { delete(p, e) }

func (in *instance) reject(r Rejection) {
	in.rejected++
	in.rejections = slices.Insert(in.rejections, 0, r)
	if len(in.rejections) > shownRejections {
		in.rejections = in.rejections[:shownRejections]
	}
}

// instance returns the account of a workload; with mu held.
func (o *Outbox) instance(id target.Instance) *instance {
	in := o.instances[id]
	if in == nil {
		in = &instance{pending: pending{}}
		o.instances[id] = in
	}
	return in
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

// ForgetInstance drops the account of a workload that is gone, if nothing of it is pending.
func (o *Outbox) ForgetInstance(id target.Instance) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if in := o.instances[id]; in != nil && len(in.pending) == 0 {
		delete(o.instances, id)
	}
}

// Pending returns the number of keys with a report that is not settled.
func (o *Outbox) Pending() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, in := range o.instances {
		n += len(in.pending)
	}
	return n
}
