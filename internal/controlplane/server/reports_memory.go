package server

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"
)

// memoryWait is how long a report set waits for memory before its sender is asked to come again.
const memoryWait = 10 * time.Second

// How many report sets of the largest size may be there at once: as they came, and decoded. Smaller ones are more.
const (
	largestReceived = 16
	largestDecoded  = 4
)

// errNoMemory is a report set for which there was no room in time.
var errNoMemory = errors.New("too many report sets at once")

// memory bounds the bytes that all report sets together may take; each set reserves what it could need at most, and
// gives back what it turns out not to need.
//
// What has been received waits for room to be decoded, and never the other way round, and no one asks for more than it
// has: so no two can wait for each other. No client is waited for while room to decode is taken.
type memory struct {
	received, decoded *semaphore.Weighted
	wait              time.Duration
}

func newMemory(limits Limits) *memory {
	return &memory{
		received: semaphore.NewWeighted(largestReceived * limits.BodyBytes),
		decoded:  semaphore.NewWeighted(largestDecoded * limits.DecodedBytes),
		wait:     memoryWait,
	}
}

// reserve takes n bytes of a kind, or errNoMemory. Free the reservation.
func (m *memory) reserve(ctx context.Context, kind *semaphore.Weighted, n int64) (*reservation, error) {
	wait, cancel := context.WithTimeout(ctx, m.wait)
	defer cancel()
	if err := kind.Acquire(wait, n); err != nil {
		return nil, errNoMemory
	}
	return &reservation{kind, n}, nil
}

// reservation is a number of bytes that are taken.
type reservation struct {
	kind  *semaphore.Weighted
	bytes int64
}

// shrink gives back all but n bytes.
func (r *reservation) shrink(n int64) {
	if n < r.bytes {
		r.kind.Release(r.bytes - n)
		r.bytes = n
	}
}

func (r *reservation) free() { r.shrink(0) }
