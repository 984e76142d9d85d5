package auth

import (
	"context"
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
)

const (
	// cacheTime is how long a row that was read counts: so late is a revocation by another replica known at the
	// latest.
	cacheTime = 5 * time.Second
	// cacheSize bounds the rows that are kept: some 2 MB.
	cacheSize = 8192
)

// tokenCache keeps the tokens that credentials stand for. It is safe for concurrent use.
type tokenCache struct {
	mu    sync.Mutex
	entries *lru[digest, cacheEntry]
	// changed is closed, and replaced, whenever something was forgotten. What was read before is not kept after: the
	// row may have been read before it was revoked.
	invalidated chan struct{}
}

type cacheEntry struct {
	token store.Token
	until time.Time
}

func newTokenCache() *tokenCache {
	return &tokenCache{entries: newLRU[digest, cacheEntry](cacheSize), invalidated: make(chan struct{})}
}

// token is what key stands for: as it is known, else as read says.
func (c *tokenCache) token(
	ctx context.Context, key digest, now time.Time, read func(ctx context.Context, hash []byte) (store.Token, error),
) (store.Token, error) {
	c.mu.Lock()
	known, ok := c.entries.get(key)
	before := c.invalidated
	c.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.token, nil
	}
	token, err := read(ctx, key[:])
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

// forgetToken makes every credential of a token be read again.
func (c *tokenCache) invalidateToken(id int64) {
	c.invalidate(func() { c.entries.removeIf(func(k cacheEntry) bool { return k.token.ID == id }) })
}

// forgetKey makes one credential be read again.
func (c *tokenCache) invalidateCredential(key digest) {
	c.invalidate(func() { c.entries.remove(key) })
}

func (c *tokenCache) invalidate(remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	remove()
	close(c.invalidated)
	c.invalidated = make(chan struct{})
}

// changes is closed when something is forgotten next.
func (c *tokenCache) invalidations() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.invalidated
}
