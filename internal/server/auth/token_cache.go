package auth

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/threeport/threeport-agent/internal/server/store"
)

const (
	// cacheTime is the lifetime of a cached row, and so the maximal delay until a revocation in another replica takes
	// effect.
	cacheTime = 5 * time.Second
	// cacheSize limits the cached rows: about 2 MB.
	cacheSize = 8192
)

// tokenCache caches the tokens of credentials. It is safe for concurrent use.
type tokenCache struct {
	mu      sync.Mutex
	entries *lru[digest, cacheEntry]
	// invalidated is closed and replaced at each invalidation. A row that was read before one is not cached after it,
	// since the row may be from before its revocation.
	invalidated   chan struct{}
	invalidations uint64 // so far

	// refreshes merges equal reads of old rows at the same time: all watches of a credential need the row together.
	refreshes singleflight.Group
}

type cacheEntry struct {
	token store.Token
	until time.Time
}

func newTokenCache() *tokenCache {
	return &tokenCache{entries: newLRU[digest, cacheEntry](cacheSize), invalidated: make(chan struct{})}
}

// token returns the token of a credential from the cache, or from read. known reports whether the cache has an old row.
func (c *tokenCache) token(
	ctx context.Context, key digest, now time.Time, read func(ctx context.Context, hash []byte, known bool) (store.Token, error),
) (store.Token, error) {
	c.mu.Lock()
	known, ok := c.entries.get(key)
	before, generation := c.invalidated, c.invalidations
	c.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.token, nil
	}
	if !ok {
		return c.fill(ctx, key, now, before, func(ctx context.Context) (store.Token, error) { return read(ctx, key[:], false) })
	}
	// A read from before an invalidation is not shared with a caller from after it.
	refresh := fmt.Sprintf("%x/%d", key, generation)
	token, err, _ := c.refreshes.Do(refresh, func() (any, error) {
		return c.fill(context.WithoutCancel(ctx), key, now, before, func(ctx context.Context) (store.Token, error) { return read(ctx, key[:], true) })
	})
	return token.(store.Token), err
}

// fill reads a row and caches it, unless there was an invalidation meanwhile.
func (c *tokenCache) fill(
	ctx context.Context, key digest, now time.Time, before chan struct{}, read func(context.Context) (store.Token, error),
) (store.Token, error) {
	token, err := read(ctx)
	if err != nil {
		return store.Token{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.invalidated == before {
		c.entries.put(key, cacheEntry{token, now.Add(cacheTime)})
	}
	return token, nil
}

// invalidateToken removes all credentials of a token.
func (c *tokenCache) invalidateToken(id int64) {
	c.invalidate(func() { c.entries.removeIf(func(k cacheEntry) bool { return k.token.ID == id }) })
}

// invalidateCredential removes one credential.
func (c *tokenCache) invalidateCredential(key digest) {
	c.invalidate(func() { c.entries.remove(key) })
}

func (c *tokenCache) invalidate(remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	remove()
	c.invalidations++
	close(c.invalidated)
	c.invalidated = make(chan struct{})
}

// nextInvalidation returns a channel that is closed at the next invalidation.
func (c *tokenCache) nextInvalidation() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.invalidated
}

// useInterval is the minimal time between two records of a token's use.
const useInterval = time.Minute

// usageTracker knows when the use of a token was last recorded. It is safe for concurrent use.
type usageTracker struct {
	mu       sync.Mutex
	recorded *lru[int64, time.Time]
}

func newUsageTracker() *usageTracker {
	return &usageTracker{recorded: newLRU[int64, time.Time](cacheSize)}
}

// isDue reports whether a use must be recorded now, and assumes that it then is.
func (u *usageTracker) isDue(token store.Token, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	last, _ := u.recorded.get(token.ID)
	if token.UsedAt != nil && token.UsedAt.After(last) { // recorded by another replica
		last = *token.UsedAt
	}
	if now.Sub(last) < useInterval {
		return false
	}
	u.recorded.put(token.ID, now)
	return true
}

// recordUse records the use of a token, at most once a minute. An error is not retried.
func (a *Authenticator) recordUse(token store.Token, now time.Time) {
	if !a.usage.isDue(token, now) {
		return
	}
	a.writes.add(func(ctx context.Context) {
		if err := a.store.RecordTokenUse(ctx, token.ID, now); err != nil && !errors.Is(err, store.ErrNotFound) {
			a.log.Warn("Recording the use of a token failed", "token", token.ID, "error", err)
		}
	})
}
