package auth

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxCallers limits the callers with a known bucket. A forgotten caller starts with a full bucket.
const maxCallers = 16384

// rateLimiters has a token bucket for each caller. It is safe for concurrent use.
type rateLimiters struct {
	rate Rate

	mu       sync.Mutex
	byCaller *lru[string, *rate.Limiter]
}

func newRateLimiters(r Rate) *rateLimiters {
	return &rateLimiters{rate: r, byCaller: newLRU[string, *rate.Limiter](maxCallers)}
}

// reserve takes a token from a caller's bucket. If that is empty, it takes none and returns the time to wait.
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

// reset fills a caller's bucket.
func (l *rateLimiters) reset(caller string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byCaller.remove(caller)
}

// throttle counts a request of a principal. It returns the time to wait if there were too many. Without authentication
// there is no principal to limit.
func (a *Authenticator) throttle(p Principal, remote string, now time.Time) (wait time.Duration) {
	if p.Credential == CredentialNone {
		return 0
	}
	key := p.limitKeyAt(remote)
	switch p.Role {
	case RoleAgent:
		return a.limits.agents.reserve(key, now)
	case RoleViewer:
		return a.limits.viewers.reserve(key, now)
	case RoleAdmin:
		return a.limits.admins.reserve(key, now)
	}
	return 0
}

// ClientAddress is the address of a client without the port, as limits count it. It is the /64 network of an IPv6 address, since a client
// usually has all of that.
func ClientAddress(remote string) string {
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
