package auth

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxLimiters bounds the callers whose pace is known. One that is forgotten starts with a full bucket.
const maxCallers = 16384

// limiters hold a token bucket for each caller. They are safe for concurrent use.
type rateLimiters struct {
	rate Rate

	mu   sync.Mutex
	byCaller *lru[string, *rate.Limiter]
}

func newRateLimiters(r Rate) *rateLimiters {
	return &rateLimiters{rate: r, byCaller: newLRU[string, *rate.Limiter](maxCallers)}
}

// take takes one token of a caller's. If there is none it returns how long that will be so, and takes nothing.
func (l *rateLimiters) reserve(caller string, now time.Time) (wait time.Duration) {
	if l.rate.PerSecond == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket, ok := l.byCaller.get(caller)
	if !ok {
		bucket = rate.NewLimiter(rate.Limit(l.rate.PerSecond), l.rate.Burst)
		l.byCaller.put(caller, bucket)
	}
	taken := bucket.ReserveN(now, 1)
	if wait = taken.DelayFrom(now); wait > 0 {
		taken.CancelAt(now)
	}
	return wait
}

// forgive fills a caller's bucket.
func (l *rateLimiters) reset(caller string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byCaller.remove(caller)
}

// pace counts a request of a principal. It returns how long to wait if there were too many.
func (a *Authenticator) throttle(p Principal, now time.Time) (wait time.Duration) {
	switch p.Role {
	case RoleAgent:
		return a.agents.reserve(p.ClusterUID, now)
	case RoleViewer:
		return a.viewers.reserve(p.Name, now)
	case RoleAdmin:
	}
	return 0
}

// addressOf is the client's address without its port. All of an IPv6 network of 64 bits is one address: whoever has one
// of them has all.
func clientAddress(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	addr := at.Addr().Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	network, err := addr.Prefix(64)
	if err != nil {
		return addr.String()
	}
	return network.String()
}
