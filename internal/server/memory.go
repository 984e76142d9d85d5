package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/threeport/threeport-agent/internal/server/auth"
)

// errNoMemory is the error of a request for which there is no memory.
var errNoMemory = errors.New("too many requests hold memory at once")

// memoryLimiter bounds the memory of requests in bytes: of all requests together, of those of one role, and of one sender. No
// sender and no role has more than its limit, so it cannot keep the others out. It is safe for concurrent use.
//
// Some limiters count slots instead of bytes. A request holds some limits while it waits for others. All requests take them in a fixed
// order, so they cannot deadlock:
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
//   - acquire waits, so a request does not call it while it holds a reservation of the same limiter. It takes from the sender's limit before it takes from that of its role, and then from the total. So a sender waits for
//     its own requests without holding memory that others need, and so does a role.
//   - grow and tryAcquire do not wait. A body that needs more memory while it arrives gets it at once or fails.
type memoryLimiter struct {
	total   *semaphore.Weighted
	roles   map[auth.Role]*semaphore.Weighted // empty if only agents use the memory
	senders *perSenderLimits
	wait    time.Duration
}

// newMemoryLimiter bounds all requests to total bytes and each sender to perSender bytes. wait is the maximum time that a request
// waits for memory.
func newMemoryLimiter(total, perSender int64, wait time.Duration) *memoryLimiter {
	return &memoryLimiter{
		total:   semaphore.NewWeighted(total),
		senders: &perSenderLimits{bytes: perSender, limits: map[string]*senderLimit{}},
		wait:    wait,
	}
}

// limitRoles bounds the senders of each role together to perRole bytes.
func (l *memoryLimiter) limitRoles(perRole int64) *memoryLimiter {
	l.roles = map[auth.Role]*semaphore.Weighted{}
	for _, role := range []auth.Role{auth.RoleAgent, auth.RoleViewer, auth.RoleAdmin} {
		l.roles[role] = semaphore.NewWeighted(perRole)
	}
	return l
}

// acquire reserves n bytes for a sender, or fails with errNoMemory. The caller releases the reservation.
func (l *memoryLimiter) acquire(ctx context.Context, from sender, n int64) (*reservation, error) {
	ctx, cancel := context.WithTimeout(ctx, l.wait)
	defer cancel()
	return l.acquireWith(from, n, func(limit *semaphore.Weighted) bool { return limit.Acquire(ctx, n) == nil })
}

// tryAcquire is acquire that does not wait.
func (l *memoryLimiter) tryAcquire(from sender, n int64) (*reservation, error) {
	return l.acquireWith(from, n, func(limit *semaphore.Weighted) bool { return limit.TryAcquire(n) })
}

// acquireWith takes n bytes from each limit with take.
func (l *memoryLimiter) acquireWith(from sender, n int64, take func(*semaphore.Weighted) bool) (*reservation, error) {
	limits := []*semaphore.Weighted{l.senders.acquire(from.name)}
	if role, ok := l.roles[from.role]; ok {
		limits = append(limits, role)
	}
	limits = append(limits, l.total)
	for i, limit := range limits {
		if !take(limit) {
			releaseAll(limits[:i], n)
			l.senders.release(from.name)
			return nil, errNoMemory
		}
	}
	return &reservation{limits: limits, senders: l.senders, sender: from.name, bytes: n}, nil
}

// releaseAll gives n bytes back to each limit.
func releaseAll(limits []*semaphore.Weighted, n int64) {
	for _, limit := range limits {
		limit.Release(n)
	}
}

// reservation is the memory that one request holds.
type reservation struct {
	limits   []*semaphore.Weighted
	senders  *perSenderLimits
	sender   string
	bytes    int64
	released bool
}

// grow raises the reservation to n bytes, or leaves it as it is and fails with errNoMemory. It does not wait.
func (r *reservation) grow(n int64) error {
	more := n - r.bytes
	if more <= 0 {
		return nil
	}
	for i, limit := range r.limits {
		if !limit.TryAcquire(more) {
			releaseAll(r.limits[:i], more)
			return errNoMemory
		}
	}
	r.bytes = n
	return nil
}

// shrink gives back all but n bytes.
func (r *reservation) shrink(n int64) {
	if n >= r.bytes {
		return
	}
	releaseAll(r.limits, r.bytes-n)
	r.bytes = n
}

// release gives everything back. Releasing twice is harmless.
func (r *reservation) release() {
	if r.released {
		return
	}
	r.released = true
	r.shrink(0)
	r.senders.release(r.sender)
}

// perSenderLimits has a limit for each sender that holds memory or waits for it. It is safe for concurrent use.
type perSenderLimits struct {
	bytes int64 // of each sender

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
		limit = &senderLimit{Weighted: semaphore.NewWeighted(p.bytes)}
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
