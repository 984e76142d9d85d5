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

// outageKeys is how many keys have to fail, without a success in between, to open the breaker.
const outageKeys = 2

// breaker distinguishes an outage of the control plane from a report that is at fault. While it is open, only probes are sent.
type breaker struct {
	backoff Backoff
	answers uint64 // counts the reports that the control plane took or refused

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

// answer notes that the control plane took or refused a report. It returns true if that ends an outage. The answer to a
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
