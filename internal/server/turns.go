package server

import (
	"context"
	"math"
	"time"
)

// An agent pauses after longWork on one of its large requests, at most for maxPause.
const (
	longWork = 50 * time.Millisecond
	maxPause = 5 * time.Second
)

// turns let the server work on one large request of a sender at a time, with pauses. So a sender with many of them has a part of a
// processor.
type turns struct {
	limiter  *limiter
	free     time.Duration // of work without a pause
	maxPause time.Duration
}

// newTurns makes turns for which a request waits up to a time. The name is that of the limit in errors.
func newTurns(name string, wait, free, maxPause time.Duration) turns {
	return turns{newLimiter(name, math.MaxInt64, 1, wait), free, maxPause}
}

// begin waits until no other large request of a sender is worked on. The caller ends the turn. The pause after it is a number of
// times as long as the work.
func (t turns) begin(ctx context.Context, from sender, pause int64) (*turn, error) {
	held, err := t.limiter.acquire(ctx, from, 1)
	if err != nil {
		return nil, err
	}
	return &turn{of: t, held: held, pause: pause}, nil
}

// do does all work of a request in a turn of its sender.
func (t turns) do(ctx context.Context, from sender, pause int64, work func() error) error {
	turn, err := t.begin(ctx, from, pause)
	if err != nil {
		return err
	}
	defer turn.end()
	return turn.work(work)
}

// turn is the right of a sender to have a large request worked on.
type turn struct {
	of     turns
	held   *reservation
	pause  int64
	worked time.Duration
}

// work does a part of the work, and measures its time.
func (t *turn) work(do func() error) error {
	defer func(begin time.Time) { t.worked += time.Since(begin) }(time.Now())
	return do()
}

// end lets the sender have its next turn, after a pause if this one was long.
func (t *turn) end() {
	if t.worked <= t.of.free {
		t.held.release()
		return
	}
	time.AfterFunc(min(time.Duration(t.pause)*t.worked, t.of.maxPause), t.held.release)
}
