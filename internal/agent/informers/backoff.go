package informers

import (
	"math/rand/v2"
	"time"
)

// backoff spaces attempts. The first one is due at once, and each further one after a longer wait than the one before. It starts again
// after a long time without an attempt.
type backoff struct {
	first, most time.Duration
	delay       time.Duration
	last, due   time.Time
}

// wait returns the time until the next attempt is due.
func (b *backoff) wait() time.Duration { return time.Until(b.due) }

// begin records an attempt. The next one is not due before atLeast.
func (b *backoff) begin(atLeast time.Duration) {
	now := time.Now()
	if now.Sub(b.last) > 2*b.most {
		b.delay = b.first
	} else {
		b.delay = min(2*b.delay, b.most)
	}
	b.last, b.due = now, now.Add(max(atLeast, b.delay/2+rand.N(b.delay))) //nolint:gosec // jitter is no secret
}
