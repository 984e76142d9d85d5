package server

import (
	"context"
	"math"
	"runtime"
	"time"
)

// largeSet is about the most that an agent sends in one set, in bytes of text, except for a long definition. Half of the processors
// decode larger ones.
const largeSet = 1 << 20

// A sender pauses after it had a set decoded for more than longDecode, for as long as that took and at most maxDecodePause. So a
// sender with many large sets has a processor for half of the time.
const (
	longDecode     = 50 * time.Millisecond
	maxDecodePause = 5 * time.Second
)

// decoders limit the processors that decode report sets. Both limiters count sets, not bytes.
type decoders struct {
	turns *memoryLimiter // one set of a sender at a time
	large *memoryLimiter
}

func newDecoders() decoders {
	return decoders{
		turns: newMemoryLimiter(math.MaxInt64, 1, reportSetWait),
		large: newMemoryLimiter(int64(max(1, runtime.GOMAXPROCS(0)/2)), 1, reportSetWait),
	}
}

// turn waits until no other set of a sender is decoded. The caller ends the turn.
func (d decoders) turn(ctx context.Context, from sender) (*decodeTurn, error) {
	held, err := d.turns.acquire(ctx, from, 1)
	if err != nil {
		return nil, err
	}
	return &decodeTurn{held: held}, nil
}

// decodeTurn is the right of a sender to have a set decoded.
type decodeTurn struct {
	held   *reservation
	worked time.Duration
}

// work does a part of the work, and measures its time.
func (t *decodeTurn) work(do func() error) error {
	defer func(begin time.Time) { t.worked += time.Since(begin) }(time.Now())
	return do()
}

// end lets the sender have its next turn, after a pause if this one was long.
func (t *decodeTurn) end() {
	if t.worked <= longDecode {
		t.held.release()
		return
	}
	time.AfterFunc(min(t.worked, maxDecodePause), t.held.release)
}
