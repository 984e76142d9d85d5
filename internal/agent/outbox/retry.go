package outbox

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Backoff is exponential with full jitter: a random time up to Base, which doubles with each try, up to Max. The jitter
// spreads a fleet that lost its control plane.
type Backoff struct{ Base, Max time.Duration }

// Validate names the wrong value and the accepted ones.
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

const (
	// quarantineAfter is how often a report fails while others succeed, until it is quarantined.
	quarantineAfter = 3
	// maxDefer bounds the wait of a report that is deferred repeatedly.
	maxDefer = 5 * time.Second
)

// retryState is the history of the tries to send a key's reports. Answers are counted by [breaker].
type retryState struct {
	// attempts counts the attempts since the last success. A rejection does not reset it, because the outcome of an earlier
	// attempt may be unknown.
	attempts int
	waits    int       // attempts after which the entry waited by itself
	alone    int       // attempts that failed while others succeeded
	retryAt  time.Time // it is not sent before
	failures int       // in this process, since the last answer

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

// deferTo takes an attempt back, and waits: twice as long each time.
func (r *retryState) deferTo(now time.Time, wait time.Duration) {
	r.attempts--
	r.retryAt = now.Add(min(wait<<min(r.waits, 10), maxDefer))
	r.waits++
}
