package server

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"
)

// memoryWait is how long a report set waits for memory before its sender is asked to come again.
const memoryWait = 10 * time.Second

// How many report sets of the largest size may be there at once, as they came and decoded, and how many of these one sender
// may have: half.
const (
	largestReceived      = 16
	largestReceivedOfOne = 8
	largestDecoded       = 2
	largestDecodedOfOne  = 1
)

// errNoMemory is a report set for which there was no room in time.
var errNoMemory = errors.New("too many report sets at once")

// memory bounds the bytes that all report sets together may take. A body takes them as it arrives, so that one that
// does not arrive takes next to none, and no sender has more than its share, so that none keeps the others out.
//
// Who has nothing yet waits for room to receive, and what has been received waits for room to be decoded, all that it needs
// at once: first that to measure it, which it gives back, then that for the set. A body that has some and needs more does
// not wait, and neither does anyone for a client while it has room to decode. Of its share a sender takes before it takes
// of what all have. So no two can wait for each other. It is safe for concurrent use.
type memory struct {
	received, decoded *semaphore.Weighted
	wait              time.Duration
	shares            *senders[*share]
}

// share is what one sender may have.
type share struct{ received, decoded *semaphore.Weighted }

func newMemory(limits Limits) *memory {
	return &memory{
		received: semaphore.NewWeighted(largestReceived * limits.BodyBytes),
		decoded:  semaphore.NewWeighted(largestDecoded * largestRoom(limits)),
		wait:     memoryWait,
		shares: newSenders(func() *share {
			return &share{
				received: semaphore.NewWeighted(largestReceivedOfOne * limits.BodyBytes),
				decoded:  semaphore.NewWeighted(largestDecodedOfOne * largestRoom(limits)),
			}
		}),
	}
}

// reserve takes n bytes of each of some kinds, or errNoMemory. Free the reservation.
func (m *memory) reserve(ctx context.Context, n int64, kinds ...*semaphore.Weighted) (*reservation, error) {
	wait, cancel := context.WithTimeout(ctx, m.wait)
	defer cancel()
	for i, kind := range kinds {
		if err := kind.Acquire(wait, n); err != nil {
			(&reservation{kinds[:i], n}).free()
			return nil, errNoMemory
		}
	}
	return &reservation{kinds, n}, nil
}

// reservation is a number of bytes that are taken, of each kind.
type reservation struct {
	kinds []*semaphore.Weighted
	bytes int64
}

// grow takes more, so that it is n bytes, or nothing and errNoMemory. It does not wait.
func (r *reservation) grow(n int64) error {
	more := n - r.bytes
	for i, kind := range r.kinds {
		if !kind.TryAcquire(more) {
			(&reservation{r.kinds[:i], more}).free()
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
	for _, kind := range r.kinds {
		kind.Release(r.bytes - n)
	}
	r.bytes = n
}

func (r *reservation) free() { r.shrink(0) }
