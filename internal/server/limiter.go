package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/threeport/threeport-agent/internal/server/auth"
)

// errLimitReached is the error of a request that a limiter refuses. Each such error names the limit.
var errLimitReached = errors.New("too many requests at once")

// limiter bounds the bytes of memory, or the slots, of requests: of all requests together, of those of one role, and of one sender. No
// sender and no role has more than its limit, so it cannot keep the others out. It is safe for concurrent use.
//
// A request holds some limits while it waits for others. All requests take them in a fixed order, so they cannot deadlock:
//
//   - A report set takes memory for its body, a turn of its sender, memory to decode it, and a processor if it is large. It gives all
//     but the memory of the decoded set back before it waits for the store.
//   - A write of v0 takes a turn if it is large, memory for its body, and a slot of its sender. Then it waits for the database only, so it
//     ends within the time limit of a write.
//   - A read takes its turns, a slot for a long list, one for a search, and memory for its answer. Then it waits for the database, its
//     client, and the slot to redact a large definition.
//
// The methods differ in the wait:
//
//   - acquire waits, so a request does not call it while it holds a reservation of the same limiter. It takes from the sender's limit
//     before it takes from that of its role, and then from the total. So a sender waits for its own requests without holding memory that
//     others need, and so does a role.
//   - grow and tryAcquire do not wait. A body that needs more memory while it arrives gets it at once or fails.
type limiter struct {
	name    string // for errors, such as "memory of answers"
	total   *semaphore.Weighted
	roles   map[auth.Role]*semaphore.Weighted // empty if the role of a sender has no limit
	senders *perSenderLimits
	wait    time.Duration
}

// newLimiter bounds all requests to a total and each sender to perSender, in bytes or slots. wait is the maximum time that a request waits.
func newLimiter(name string, total, perSender int64, wait time.Duration) *limiter {
	return &limiter{
		name:    name,
		total:   semaphore.NewWeighted(total),
		senders: &perSenderLimits{each: perSender, limits: map[string]*senderLimit{}},
		wait:    wait,
	}
}

// limitRoles bounds the senders of each role together to perRole.
func (l *limiter) limitRoles(perRole int64) *limiter {
	l.roles = map[auth.Role]*semaphore.Weighted{}
	for _, role := range []auth.Role{auth.RoleAgent, auth.RoleViewer, auth.RoleAdmin} {
		l.roles[role] = semaphore.NewWeighted(perRole)
	}
	return l
}

// limit is one limit of a limiter.
type limit struct {
	*semaphore.Weighted
	of string // those whom it bounds together
}

// reached is the error of a request that one of the limits refuses.
func (l *limiter) reached(refused limit) error {
	return fmt.Errorf("%w: the limit of %s for %s is reached", errLimitReached, l.name, refused.of)
}

// acquire reserves n for a sender, or fails with errLimitReached. The caller releases the reservation.
func (l *limiter) acquire(ctx context.Context, from sender, n int64) (*reservation, error) {
	ctx, cancel := context.WithTimeout(ctx, l.wait)
	defer cancel()
	return l.acquireWith(from, n, func(of limit) bool { return of.Acquire(ctx, n) == nil })
}

// tryAcquire is acquire that does not wait.
func (l *limiter) tryAcquire(from sender, n int64) (*reservation, error) {
	return l.acquireWith(from, n, func(of limit) bool { return of.TryAcquire(n) })
}

// acquireWith takes n from each limit with take.
func (l *limiter) acquireWith(from sender, n int64, take func(limit) bool) (*reservation, error) {
	limits := []limit{{l.senders.acquire(from.name), "one sender"}}
	if role, ok := l.roles[from.role]; ok {
		limits = append(limits, limit{role, "one role"})
	}
	limits = append(limits, limit{l.total, "all senders"})
	for i, one := range limits {
		if !take(one) {
			releaseAll(limits[:i], n)
			l.senders.release(from.name)
			return nil, l.reached(one)
		}
	}
	return &reservation{of: l, limits: limits, sender: from.name, held: n}, nil
}

// releaseAll gives n back to each limit.
func releaseAll(limits []limit, n int64) {
	for _, one := range limits {
		one.Release(n)
	}
}

// reservation is what one request holds of a limiter.
type reservation struct {
	of       *limiter
	limits   []limit
	sender   string
	held     int64
	released bool
}

// grow raises the reservation to n, or leaves it as it is and fails with errLimitReached. It does not wait.
func (r *reservation) grow(n int64) error {
	more := n - r.held
	if more <= 0 {
		return nil
	}
	for i, one := range r.limits {
		if !one.TryAcquire(more) {
			releaseAll(r.limits[:i], more)
			return r.of.reached(one)
		}
	}
	r.held = n
	return nil
}

// shrink gives back all but n.
func (r *reservation) shrink(n int64) {
	if n >= r.held {
		return
	}
	releaseAll(r.limits, r.held-n)
	r.held = n
}

// release gives everything back. Releasing twice is harmless, and so is a nil reservation.
func (r *reservation) release() {
	if r == nil || r.released {
		return
	}
	r.released = true
	r.shrink(0)
	r.of.senders.release(r.sender)
}

// perSenderLimits has a limit for each sender that has a reservation or waits for one. It is safe for concurrent use.
type perSenderLimits struct {
	each int64 // the limit of each sender

	mu     sync.Mutex
	limits map[string]*senderLimit
}

// senderLimit is the limit of one sender, with the number of requests that use it.
type senderLimit struct {
	*semaphore.Weighted
	requests int
}

// acquire returns a sender's limit and keeps it until the matching release.
func (p *perSenderLimits) acquire(sender string) *semaphore.Weighted {
	p.mu.Lock()
	defer p.mu.Unlock()
	limit, known := p.limits[sender]
	if !known {
		limit = &senderLimit{Weighted: semaphore.NewWeighted(p.each)}
		p.limits[sender] = limit
	}
	limit.requests++
	return limit.Weighted
}

// release forgets a sender's limit with its last request.
func (p *perSenderLimits) release(sender string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	limit := p.limits[sender]
	if limit.requests--; limit.requests == 0 {
		delete(p.limits, sender)
	}
}
