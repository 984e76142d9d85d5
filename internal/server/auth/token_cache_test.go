package auth

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// All watches of a credential need its row again at the same time. A read from before a revocation is not shared after it.
func TestTokenCache_EqualRefreshes_AreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, key, epoch := newTokenCache(), digestOf("secret"), time.Now()
		var reads atomic.Int64
		release := make(chan struct{})
		read := func(context.Context, []byte, bool) (store.Token, error) {
			n := reads.Add(1)
			<-release
			return store.Token{ID: n}, nil
		}
		var watches sync.WaitGroup
		refresh := func(n int) {
			for range n {
				watches.Go(func() { _, _ = c.token(t.Context(), key, epoch.Add(2*cacheTime), read) })
			}
			synctest.Wait()
		}
		c.entries.put(key, cacheEntry{store.Token{ID: 7}, epoch})
		refresh(100)
		if got := reads.Load(); got != 1 {
			t.Errorf("100 watches read the row %d times, want once", got)
		}
		c.invalidate(func() {})
		refresh(100)
		if got := reads.Load(); got != 2 {
			t.Errorf("after a revocation there were %d reads, want a second one", got)
		}
		close(release)
		watches.Wait()
	})
}
