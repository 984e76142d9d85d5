package outbox

import (
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
)

// Failure is why a report has to be sent again.
type Failure struct {
	Cause error
	// RetryAfter is the pause that the control plane asks for; 0 if it asks for none.
	RetryAfter time.Duration
	// General is true if the control plane would take no report at all now.
	General bool
}

const (
	// outageKeys is how many keys have to fail, without a success in between, to open the breaker.
	outageKeys = 2
	// quarantineAfter is how often a report fails while others succeed, until it is quarantined.
	quarantineAfter = 3
	// quotaWait is the least wait before a report is sent again that found no space. Many may wait, and space becomes free by
	// hourly pruning, or by a higher quota.
	quotaWait = 5 * time.Minute
	// maxDefer bounds the wait of a report that is deferred repeatedly.
	maxDefer = 5 * time.Second
)

// breaker distinguishes an outage of the control plane from a report that is at fault. It decides when a failed report is
// sent again, from the history of its key ([retryState]) and of all others. While it is open, only probes are sent.
//
//	a report                                the breaker            the report
//	fails first since an answer             is unchanged           waits by itself: Backoff
//	fails as a second key                   opens                  waits for the breaker
//	fails General, or with a RetryAfter     opens                  waits for the breaker
//	fails while others are answered         is unchanged           waits by itself; quarantined the third time
//	fails as a probe                        waits longer           waits for the breaker
//	is refused: see Refuse                  closes                 waits by itself: for quota at least quotaWait
//	is deferred: see Defer                  is unchanged           waits by itself: at most maxDefer
//
// An answer (accepted, refused or rejected) closes the breaker, unless the control plane asked for a pause and the answer is not that
// of a probe.
type breaker struct {
	backoff Backoff
	answers uint64 // counts the reports that the control plane answered

	open      bool
	tries     int
	until     time.Time // no probe before
	requested bool      // the control plane asked for the pause
	// failing are the keys that failed since the last answer, without those in quarantine.
	failing map[observe.Key]struct{}
}

func newBreaker(backoff Backoff) breaker {
	return breaker{backoff: backoff, failing: map[observe.Key]struct{}{}}
}

// fail notes that an attempt got no answer, and returns how long the key has to wait by itself. In an outage it does not:
// the breaker waits, and the next probe is another key.
func (b *breaker) fail(key observe.Key, r *retryState, probe bool, f Failure) time.Duration {
	others := r.fail(b.answers)
	if f.General || f.RetryAfter > 0 {
		b.suspend(probe, f.RetryAfter)
		return 0
	}
	if others {
		r.alone++
	} else if !r.quarantined() {
		b.failing[key] = struct{}{}
	}
	if b.open || len(b.failing) >= outageKeys {
		b.suspend(probe, 0)
		if !r.quarantined() {
			return 0
		}
	}
	return r.backOff(b.backoff)
}

// suspend opens the breaker, or keeps it open after a failed probe. A request that was sent before the outage changes
// nothing, unless the control plane asks for a longer pause.
func (b *breaker) suspend(probe bool, after time.Duration) {
	wait := after
	if !b.open || probe {
		b.open = true
		b.tries++
		if after == 0 {
			wait = b.backoff.Delay(b.tries)
		}
		b.until, b.requested = time.Time{}, false
	}
	if until := time.Now().Add(wait); until.After(b.until) {
		b.until, b.requested = until, after > 0
	}
}

// answer notes that the control plane accepted, refused or rejected a report. It returns true if that ends an outage. The answer to a
// request from before a requested pause does not end the pause.
func (b *breaker) answer(r *retryState, probe bool) (ended bool) {
	b.answers++
	r.answer()
	clear(b.failing)
	if !b.open || b.requested && !probe {
		return false
	}
	*b = breaker{backoff: b.backoff, answers: b.answers, failing: b.failing}
	return true
}

// retryState is the history of the tries to send a key's reports. Answers are counted by [breaker].
type retryState struct {
	// attempts counts the attempts since the last success. A rejection does not reset it, because the outcome of an earlier
	// attempt may be unknown.
	attempts int
	waits    int       // attempts after which the entry waited by itself
	alone    int       // attempts that failed while others succeeded
	retryAt  time.Time // it is not sent before
	failures int       // in this process, since the last answer

	turns int // of an initial sync, that ended before all its rows were read

	takenAt  uint64 // the number of answers when it was taken
	failedAt uint64 // the number of answers when it failed last
}

// quarantined reports whether it is the report that is at fault, and not the control plane.
func (r *retryState) quarantined() bool { return r.alone >= quarantineAfter }

// take begins an attempt.
func (r *retryState) take(answers uint64) {
	r.attempts++
	r.takenAt = answers
}

// othersSucceeded reports whether the control plane has answered another report since this one was taken, or since it
// failed before.
func (r *retryState) othersSucceeded(answers uint64) bool {
	since := r.takenAt
	if r.failures > 0 {
		since = min(since, r.failedAt)
	}
	return answers > since
}

// fail ends an attempt without an answer. It returns whether others succeeded meanwhile.
func (r *retryState) fail(answers uint64) (others bool) {
	others = r.othersSucceeded(answers)
	r.failures++
	r.failedAt = answers
	return others
}

// backOff returns how long to wait by itself.
func (r *retryState) backOff(b Backoff) time.Duration {
	r.waits++
	return b.Delay(r.waits)
}

// answer ends an attempt with an answer.
func (r *retryState) answer() { *r = retryState{attempts: r.attempts} }

// deferTo takes an attempt back, and waits: twice as long each time. Without a wait it ends a turn.
func (r *retryState) deferTo(now time.Time, wait time.Duration) {
	r.attempts--
	r.retryAt = now.Add(min(wait<<min(r.waits, 10), maxDefer))
	if wait > 0 {
		r.waits++
	} else {
		r.turns, r.waits = r.turns+1, 0
	}
}
