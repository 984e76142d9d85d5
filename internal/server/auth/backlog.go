package auth

import (
	"context"
	"sync"
	"time"
)

const (
	// maxBacklog bounds the chores that wait, choreTimeout one chore, and drainTimeout all that wait at the end.
	maxQueuedWrites   = 4096
	writeTimeout = 5 * time.Second
	drainTimeout = 10 * time.Second
)

// chore is something to write that no request waits for. Its context ends when it has taken too long.
type write func(ctx context.Context)

// backlog does chores one after the other, in the order in which they came. It is safe for concurrent use.
type writeQueue struct {
	wake   chan struct{} // of capacity 1: something changed
	done   chan struct{} // closed when the goroutine has ended
	cancel context.CancelFunc

	mu      sync.Mutex
	queued []write
	closed  bool
}

// newBacklog starts the goroutine that close ends.
func newWriteQueue() *writeQueue {
	ctx, cancel := context.WithCancel(context.Background())
	b := &writeQueue{wake: make(chan struct{}, 1), done: make(chan struct{}), cancel: cancel}
	go b.run(ctx)
	return b
}

// add takes a chore. It never waits: it returns false if too many do, or if the backlog is closed.
func (b *writeQueue) add(c write) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || len(b.queued) >= maxQueuedWrites {
		return false
	}
	b.queued = append(b.queued, c)
	b.signal()
	return true
}

func (b *writeQueue) signal() {
	select {
	case b.wake <- struct{}{}:
	default: // it is awake already
	}
}

func (b *writeQueue) run(ctx context.Context) {
	defer close(b.done)
	for range b.wake {
		chores, closed := b.take()
		for _, c := range chores {
			runWrite(ctx, c)
		}
		if closed {
			return
		}
	}
}

func runWrite(ctx context.Context, c write) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	c(ctx)
}

func (b *writeQueue) take() (chores []write, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	chores, b.queued = b.queued, nil
	return chores, b.closed
}

// close takes no more chores and waits until all are done; those that are not after drainTimeout see their context
// end. It may be called twice.
func (b *writeQueue) close() {
	b.mu.Lock()
	b.closed = true
	b.signal()
	b.mu.Unlock()
	late := time.AfterFunc(drainTimeout, b.cancel)
	defer late.Stop()
	<-b.done
	b.cancel()
}
