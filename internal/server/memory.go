package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// errNoMemory is the error of a request for which there is no memory.
var errNoMemory = errors.New("too many requests hold memory at once")

// memoryLimiter bounds the memory of requests in bytes: of all requests together, and of the requests of one sender.
// No sender has more than its limit, so it cannot keep the others out. It is safe for concurrent use.
//
// Requests wait for memory only before reading and before decoding, never while holding some, so they cannot deadlock:
//
//   - acquire waits. A request calls it before it reads its body. A report set calls it again before it decodes that body,
//     with a second limiter. A request that holds memory of that limiter waits neither for memory nor for its client.
//   - grow does not wait. A body that needs more memory while it arrives gets it at once or fails.
//   - acquire takes from the sender's limit before it takes from the total, so a sender waits for its own requests without
//     holding memory that others need.
type memoryLimiter struct {
	total   *semaphore.Weighted
	senders *perSenderLimits
	wait    time.Duration
}

// newMemoryLimiter bounds all requests to total bytes and each sender to perSender bytes. wait is the
// maximum time that a request waits for memory.
func newMemoryLimiter(total, perSender int64, wait time.Duration) *memoryLimiter {
	return &memoryLimiter{
		total:   semaphore.NewWeighted(total),
		senders: &perSenderLimits{bytes: perSender, limits: map[string]*senderLimit{}},
		wait:    wait,
	}
}

// acquire reserves n bytes for a sender, or fails with errNoMemory. The caller releases the reservation.
func (l *memoryLimiter) acquire(ctx context.Context, sender string, n int64) (*reservation, error) {
	ctx, cancel := context.WithTimeout(ctx, l.wait)
	defer cancel()
	own := l.senders.acquire(sender)
	if own.Acquire(ctx, n) != nil {
		l.senders.release(sender)
		return nil, errNoMemory
	}
	if l.total.Acquire(ctx, n) != nil {
		own.Release(n)
		l.senders.release(sender)
		return nil, errNoMemory
	}
	return &reservation{limiter: l, sender: sender, own: own, bytes: n}, nil
}

// reservation is the memory that one request holds.
type reservation struct {
	limiter  *memoryLimiter
	sender   string
	own      *semaphore.Weighted
	bytes    int64
	released bool
}

// grow raises the reservation to n bytes, or leaves it as it is and fails with errNoMemory. It does not wait.
func (r *reservation) grow(n int64) error {
	more := n - r.bytes
	if more <= 0 {
		return nil
	}
	if !r.own.TryAcquire(more) {
		return errNoMemory
	}
	if !r.limiter.total.TryAcquire(more) {
		r.own.Release(more)
		return errNoMemory
	}
	r.bytes = n
	return nil
}

// shrink gives back all but n bytes.
func (r *reservation) shrink(n int64) {
	if n >= r.bytes {
		return
	}
	r.limiter.total.Release(r.bytes - n)
	r.own.Release(r.bytes - n)
	r.bytes = n
}

// release gives everything back. Releasing twice is harmless.
func (r *reservation) release() {
	if r.released {
		return
	}
	r.released = true
	r.shrink(0)
	r.limiter.senders.release(r.sender)
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
