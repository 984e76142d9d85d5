package outbox

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
)

// Backoff is exponential with full jitter, so that a fleet which lost its control plane does not come back all at
// once: a random time up to Base, which doubles with each try, up to Max.
type Backoff struct{ Base, Max time.Duration }

// Validate names what is wrong and what is accepted.
func (b Backoff) Validate() error {
	if b.Base <= 0 || b.Max < b.Base {
		return fmt.Errorf("backoff is %s to %s: give two durations above 0, the larger last", b.Base, b.Max)
	}
	return nil
}

// Delay returns how long to wait after the given number of failed tries.
func (b Backoff) Delay(tries int) time.Duration {
	limit := b.Max
	if doublings := max(tries-1, 0); b.Base <= b.Max>>min(doublings, 62) {
		limit = b.Base << doublings
	}
	return rand.N(limit) + 1 //nolint:gosec // jitter is no secret
}

// Failure is why a report is to be sent again.
type Failure struct {
	Cause error
	// RetryAfter is how long the control plane asks to be left alone; 0 if it does not.
	RetryAfter time.Duration
	// General is true if the control plane would not take any report now: it is not the report's fault.
	General bool
}

// The classes of lanes that have something to send. They take turns.
const (
	classState   = iota // operations, statuses and trees
	classFresh          // Events
	classBacklog        // Events that waited for the end of an outage, or for this process to start
	classSlow           // what alone keeps failing
	classes
)

// How an outage is told from a report that is at fault.
const (
	outageKeys   = 2 // so many keys fail, and nothing succeeds in between
	slowFailures = 3 // so often a report fails while others succeed, until it is slow
)

// pace is how the tries to send a key's reports went.
type pace struct {
	attempts int       // since the last success: a rejected try may have been preceded by an ambiguous one
	tries    int       // those of them that it has to wait for by itself
	alone    int       // those of them that failed while others succeeded
	failed   bool      // it is pending, and its last try failed
	retryAt  time.Time // it is not sent before
	failures int       // of this process
	takenAt  uint64    // the count of answers when it was taken,
	failedAt uint64    // and when it failed last
}

func (p *pace) slow() bool { return p.alone >= slowFailures }

// breaker is a time in which nothing is sent but probes.
type breaker struct {
	on    bool
	tries int
	until time.Time // no probe before
	asked bool      // because the control plane said so
	// failing are the keys that failed since something succeeded, without those that are slow.
	failing map[observe.Key]struct{}
}

// Nack settles an item: it is to be sent again, or what has replaced it by then, after a while. Its lane waits for it.
// If it was withdrawn meanwhile, it is dropped.
func (o *Outbox) Nack(item Item, f Failure) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.settle(item)
	o.putBack(e, f.Cause, o.wait(e, item.Probe, f))
}

// postponeMost bounds the wait of what is postponed again and again.
const postponeMost = 5 * time.Second

// Defer settles an item that cannot be sent yet, for a reason of this side: it comes again after a while, which
// doubles each time up to five seconds, as if it had not been taken. After [Outbox.Close], when that reason does not
// pass any more, it is dropped.
func (o *Outbox) Defer(item Item, after time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.settle(item)
	e.pace.attempts--
	e.renewed = time.Time{}
	e.pace.retryAt = time.Now().Add(min(after<<min(e.pace.tries, 10), postponeMost))
	e.pace.tries++
	if o.closed {
		o.unpend(e)
	}
	if e.report != nil {
		e.lane.queue = slices.Insert(e.lane.queue, 0, e)
	}
	o.retire(e)
	o.schedule(e.lane)
}

// putBack puts an entry that failed first in its lane, to be sent after a while.
func (o *Outbox) putBack(e *entry, cause error, after time.Duration) {
	e.renewed = time.Time{}
	e.pace.retryAt = time.Now().Add(after)
	if e.report != nil {
		o.account(e.report.Instance()).lastError = cause.Error()
		if !e.pace.failed {
			e.pace.failed = true
			o.failed++
		}
		e.lane.queue = slices.Insert(e.lane.queue, 0, e)
	}
	o.retire(e)
	o.schedule(e.lane)
}

// wait returns how long an entry that failed waits by itself. In an outage it is the outage that waits, and the next
// probe is another.
func (o *Outbox) wait(e *entry, probe bool, f Failure) time.Duration {
	p := &e.pace
	others := o.othersSucceeded(p)
	p.failures++
	p.failedAt = o.answers
	if f.General || f.RetryAfter > 0 {
		o.suspend(probe, f.RetryAfter)
		return 0
	}
	if others {
		p.alone++
	} else if !p.slow() {
		o.outage.failing[e.key] = struct{}{}
	}
	if o.outage.on || len(o.outage.failing) >= outageKeys {
		o.suspend(probe, 0)
		if !p.slow() {
			return 0
		}
	}
	p.tries++
	return o.config.Backoff.Delay(p.tries)
}

// othersSucceeded reports whether something was answered since a report was taken, or since it failed before.
func (o *Outbox) othersSucceeded(p *pace) bool {
	since := p.takenAt
	if p.failures > 0 {
		since = min(since, p.failedAt)
	}
	return o.answers > since
}

// suspend begins an outage, or goes on with it after a probe. What was on its way when it began changes nothing, unless
// the control plane asks to be left alone for longer.
func (o *Outbox) suspend(probe bool, after time.Duration) {
	wait := after
	if !o.outage.on || probe {
		o.outage.on = true
		o.outage.tries++
		if after == 0 {
			wait = o.config.Backoff.Delay(o.outage.tries)
		}
		o.outage.until, o.outage.asked = time.Time{}, false
	}
	if until := time.Now().Add(wait); until.After(o.outage.until) {
		o.outage.until, o.outage.asked = until, after > 0
	}
}

// answered notes that the control plane took a report, or told what is wrong with it: there is no outage. What was on
// its way when the control plane asked to be left alone says nothing about that.
func (o *Outbox) answered(e *entry, probe bool) {
	o.answers++
	e.pace = pace{failed: e.pace.failed, attempts: e.pace.attempts}
	clear(o.outage.failing)
	if !o.outage.on || o.outage.asked && !probe {
		return
	}
	o.outage = breaker{failing: o.outage.failing}
	var waiting []*lane
	now := time.Now()
	for class := range classSlow { // what is slow stays so
		for _, l := range o.agendas[class].lanes {
			// What is where it belongs stays, with its turn: thousands may wait through many outages.
			if class == classFresh || l.due.After(now) {
				waiting = append(waiting, l)
			}
			l.queue[0].pace.tries, l.queue[0].backlog = 0, true
		}
	}
	for _, l := range waiting {
		l.queue[0].pace.retryAt = time.Time{}
		l.remove()
		o.schedule(l)
	}
}

// Suspended reports whether there is an outage.
func (o *Outbox) Suspended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.outage.on
}

// pick returns the lane that is next, or when to look again at the latest; zero: not before something changes.
func (o *Outbox) pick(now time.Time) (*lane, time.Time) {
	if o.outage.on {
		return o.pickProbe(now)
	}
	var first time.Time
	for i := range classes {
		class := (o.turn + 1 + i) % classes
		a := &o.agendas[class]
		if a.Len() == 0 || class == classSlow && o.slowOut > 0 {
			continue
		}
		due := a.lanes[0].due
		if !due.After(now) {
			o.turn = class
			return a.lanes[0], time.Time{}
		}
		if first.IsZero() || due.Before(first) {
			first = due
		}
	}
	return nil, first
}

// pickProbe is pick in an outage: one at a time, and best the one that was tried least. If it is but some reports that
// fail, and nothing else was there to tell, the first that is not at fault ends it.
func (o *Outbox) pickProbe(now time.Time) (*lane, time.Time) {
	if o.out > 0 {
		return nil, time.Time{}
	}
	if o.outage.until.After(now) {
		return nil, o.outage.until
	}
	var best *lane
	var first time.Time
	for class := range o.agendas {
		for _, l := range o.agendas[class].lanes {
			switch {
			case l.due.After(now):
				if first.IsZero() || l.due.Before(first) {
					first = l.due
				}
			case best == nil || l.tried() < best.tried() || l.tried() == best.tried() && l.due.Before(best.due):
				best = l
			}
		}
	}
	return best, first
}

// tried returns how often what is first in a lane was sent in vain.
func (l *lane) tried() int { return l.queue[0].pace.attempts }

// schedule puts a lane on the agenda of its class if it has something to send that may be sent.
func (o *Outbox) schedule(l *lane) {
	if l.in != nil || l.out != nil || len(l.queue) == 0 || o.held(l.queue[0].report) {
		return
	}
	first, due := l.queue[0], time.Now()
	if first.pace.retryAt.After(due) {
		due = first.pace.retryAt
	}
	o.agendas[classOf(first)].add(l, due)
	o.broadcast()
}

func classOf(e *entry) int {
	_, isEvent := e.report.(observe.Event)
	switch {
	case e.pace.slow():
		return classSlow
	case !isEvent:
		return classState
	case e.backlog:
		return classBacklog
	}
	return classFresh
}
