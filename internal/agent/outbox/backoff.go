package outbox

import (
	"math/rand/v2"
	"time"
)

// Backoff is exponential with full jitter: a random time up to Base, which doubles with each try, up to Max. The jitter
// spreads a fleet that lost its control plane.
type Backoff struct{ Base, Max time.Duration }

// Delay returns how long to wait after the given number of failed tries.
func (b Backoff) Delay(tries int) time.Duration {
	limit := b.Max
	if doublings := max(tries-1, 0); b.Base <= b.Max>>min(doublings, 62) {
		limit = b.Base << doublings
	}
	return rand.N(limit) + 1 //nolint:gosec // jitter is no secret
}
