package auth

import (
	"context"
	"sync"
	"time"
)

const (
	// maxBacklog bounds the chores that wait, choreTimeout one chore, and drainTimeout all that wait at the end.
	maxBacklog   = 4096
	choreTimeout = 5 * time.Second
	drainTimeout = 10 * time.Second
)

// chore is something to write that no request waits for. Its context ends when it has taken too long.
type chore func(ctx context.Context)

// backlog does chores one after the other, in the order in which they came. It is safe for concurrent use.
type backlog struct {
	wake   chan struct{} // of capacity 1: something changed
	done   chan struct{} // closed when the goroutine has ended
	cancel context.CancelFunc

	mu      sync.Mutex
	waiting []chore
	closed  bool
}

// newBacklog starts the goroutine that close ends.
func newBacklog() *backlog {
	ctx, cancel := context.WithCancel(context.Background())
	b := &backlog{wake: make(chan struct{}, 1), done: make(chan struct{}), cancel: cancel}
	go b.run(ctx)
	return b
}

// add takes a chore. It never waits: it returns false if too many do, or if the backlog is closed.
func (b *backlog) add(c chore) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || len(b.waiting) >= maxBacklog {
		return false
	}
	b.waiting = append(b.waiting, c)
	b.signal()
	return true
}

func (b *backlog) signal() {
	select {
	case b.wake <- struct{}{}:
	default: // it is awake already
	}
}

func (b *backlog) run(ctx context.Context) {
	defer close(b.done)
	for range b.wake {
		chores, closed := b.take()
		for _, c := range chores {
			do(ctx, c)
		}
		if closed {
			return
		}
	}
}

func do(ctx context.Context, c chore) {
	ctx, cancel := context.WithTimeout(ctx, choreTimeout)
	defer cancel()
	c(ctx)
}

func (b *backlog) take() (chores []chore, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	chores, b.waiting = b.waiting, nil
	return chores, b.closed
}

// close takes no more chores and waits until all are done; those that are not after drainTimeout see their context
// end. It may be called twice.
func (b *backlog) close() {
	b.mu.Lock()
	b.closed = true
	b.signal()
	b.mu.Unlock()
	late := time.AfterFunc(drainTimeout, b.cancel)
	defer late.Stop()
	<-b.done
	b.cancel()
}
