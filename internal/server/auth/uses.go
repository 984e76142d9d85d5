package auth

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// usePeriod is how often it is noted at most that a token is used.
const useInterval = time.Minute

// uses knows when it was last noted that a token is used. It is safe for concurrent use.
type usageTracker struct {
	mu    sync.Mutex
	recorded *lru[int64, time.Time]
}

func newUsageTracker() *usageTracker { return &usageTracker{recorded: newLRU[int64, time.Time](cacheSize)} }

// isDue tells whether a use is to be noted now, and takes it for noted.
func (u *usageTracker) isDue(token store.Token, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	last, _ := u.recorded.get(token.ID)
	if token.UsedAt != nil && token.UsedAt.After(last) { // another replica's
		last = *token.UsedAt
	}
	if now.Sub(last) < useInterval {
		return false
	}
	u.recorded.put(token.ID, now)
	return true
}

// noteUse writes down that a token is used, once a minute at most. If that fails the next minute will do.
func (a *Authenticator) recordUse(token store.Token, now time.Time) {
	if !a.usage.isDue(token, now) {
		return
	}
	a.writes.add(func(ctx context.Context) {
		if err := a.store.RecordTokenUse(ctx, token.ID, now); err != nil && !errors.Is(err, store.ErrNotFound) {
			a.log.Warn("Use of a token not noted", "token", token.ID, "error", err)
		}
	})
}
