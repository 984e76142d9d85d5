package outbox

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
)

// ErrClosed is returned by [Outbox.NextBatch] when intake has ended and nothing more can be sent.
var ErrClosed = errors.New("outbox is closed and empty")

// Item is a report that was taken to be sent. It has to be settled exactly once.
type Item struct {
	Report  observe.Report
	Receipt Receipt
	// Attempt counts the tries to send the key's reports since the last success, from 1.
	Attempt int
	// Since is when the key became pending.
	Since time.Time
	// Probe is true if it is sent in an outage.
	Probe bool
	// Settled is the version of the key's report that was settled last; empty if none was.
	Settled string
	// Repair is true if the control plane accepted this version before and has something else now. It has to be written
	// whatever version the control plane has.
	Repair bool

	version string // under which it is settled, in the protocol at the time of the take
	last    bool   // taken after Close
}

// NextBatch takes up to a number of reports that are to be sent next. It blocks until there is one, the context ends, or the
// outbox is closed and empty ([ErrClosed]). The reports are of different groups. A probe, an [InitialSync] and a quarantined
// report are returned alone.
func (o *Outbox) NextBatch(ctx context.Context, limit int) ([]Item, error) {
	for {
		// Checked even if reports are ready: the caller may give each of them back and never end otherwise.
		if ctx.Err() != nil {
			o.wakeTaker() // this one may have been woken for a report
			return nil, context.Cause(ctx)
		}
		items, due, err := o.takeBatch(limit)
		if err != nil || len(items) > 0 {
			return items, err
		}
		wait(ctx, o.wake, due)
	}
}

// wait returns when the context ends, the channel has a value, or a time has come, if it is not zero.
func wait(ctx context.Context, wake <-chan struct{}, due time.Time) {
	var timeout <-chan time.Time
	if !due.IsZero() {
		timer := time.NewTimer(time.Until(due))
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timeout:
	}
}

// takeBatch returns items, or when to look again at the latest; zero means not before the wake channel has a value. A taker that gets items
// or an error wakes another one, which takes the rest, waits until something is due, or ends.
func (o *Outbox) takeBatch(limit int) (items []Item, due time.Time, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() {
		if err != nil || len(items) > 0 && o.hasWork() {
			o.wakeTaker()
		}
	}()
	now := time.Now()
	o.offerFiltered(now)
	g, due := o.pick(now)
	if g == nil {
		if !o.dropped.due.IsZero() && (due.IsZero() || o.dropped.due.Before(due)) {
			due = o.dropped.due
		}
		if o.closed && o.counts.inFlight == 0 && o.queues.isEmpty() {
			err = ErrClosed
		}
		return nil, due, err
	}
	more := !g.goesAlone()
	for items = append(items, o.takeFrom(g)); more && len(items) < limit; items = append(items, o.takeFrom(g)) {
		turn := o.queues.turn
		if g, _ = o.pick(now); g == nil || g.goesAlone() {
			o.queues.turn = turn // its class does not lose its turn
			break
		}
	}
	return items, time.Time{}, nil
}

// hasWork reports whether a taker has something to take, now or later.
func (o *Outbox) hasWork() bool { return !o.dropped.due.IsZero() || !o.queues.isEmpty() }

// pick returns the group that is next, or when to look again at the latest; zero means not before something changes. In an
// outage it returns one probe at a time.
func (o *Outbox) pick(now time.Time) (*group, time.Time) {
	switch {
	case !o.breaker.open:
		return o.queues.next(now, o.fullClasses())
	case o.counts.inFlight > 0:
		return nil, time.Time{}
	case o.breaker.until.After(now):
		return nil, o.breaker.until
	}
	return o.queues.nextProbe(now)
}

// fullClasses returns the classes whose reports that are being sent are at the limit.
func (o *Outbox) fullClasses() (full [classes]bool) {
	full[classQuarantined] = o.counts.quarantinedInFlight > 0
	full[classSync] = o.config.MaxSyncs > 0 && o.counts.syncsInFlight >= o.config.MaxSyncs
	full[classLarge] = o.config.MaxLarge > 0 && o.counts.largeInFlight >= o.config.MaxLarge
	return full
}

// takeFrom takes the first report of a queued group.
func (o *Outbox) takeFrom(g *group) Item {
	g.dequeue()
	e := g.first()
	g.queue = slices.Delete(g.queue, 0, 1)
	g.inFlight = e
	e.retry.take(o.breaker.answers)
	o.counts.inFlight++
	if e.retry.quarantined() {
		o.counts.quarantinedInFlight++
	}
	if _, isSync := e.report.(InitialSync); isSync {
		o.counts.syncsInFlight++
	}
	if isLarge(e.report) {
		o.counts.largeInFlight++
	}
	return Item{
		Report: e.report, Receipt: e.receipt, Attempt: e.retry.attempts, Since: e.since, Probe: o.breaker.open,
		Settled: e.version, Repair: e.repair, version: o.protocol.version(e.report), last: o.closed,
	}
}
