package auth

import (
	"context"
	"sync"
	"time"
)

const (
	// maxQueuedWrites limits the queue, writeTimeout one write, and drainTimeout all writes at the end. reservedWrites of
	// the queue are for protected writes.
	maxQueuedWrites = 4096
	reservedWrites  = maxQueuedWrites / 2
	writeTimeout    = 5 * time.Second
	drainTimeout    = 10 * time.Second
)

// write is a write that no request waits for. Its context ends after writeTimeout.
type write func(ctx context.Context)

// writeQueue runs writes one after the other, in order. It is safe for concurrent use.
type writeQueue struct {
	wake   chan struct{} // capacity 1: the queue or closed has changed
	done   chan struct{} // closed when the goroutine has ended
	cancel context.CancelFunc

	mu     sync.Mutex
	queued []write
	closed bool
}

// newWriteQueue starts the goroutine that close ends.
func newWriteQueue() *writeQueue {
	ctx, cancel := context.WithCancel(context.Background())
	b := &writeQueue{wake: make(chan struct{}, 1), done: make(chan struct{}), cancel: cancel}
	go b.run(ctx)
	return b
}

// add queues a write that anybody can cause. It never blocks; it returns false if its part of the queue is full, or the queue is
// closed.
func (b *writeQueue) add(c write) bool { return b.addUpTo(maxQueuedWrites-reservedWrites, c) }

// addProtected queues a write that must not be displaced by those of add.
func (b *writeQueue) addProtected(c write) bool { return b.addUpTo(maxQueuedWrites, c) }

// addUpTo queues a write if fewer than limit wait.
func (b *writeQueue) addUpTo(limit int, c write) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || len(b.queued) >= limit {
		return false
	}
	b.queued = append(b.queued, c)
	b.signal()
	return true
}

func (b *writeQueue) signal() {
	select {
	case b.wake <- struct{}{}:
	default: // a signal is pending
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

// close runs the queued writes and stops. After drainTimeout it cancels the context of the rest. It may be called more
// than once.
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
