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
