package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

const testWait = 10 * time.Second

// expectAllFree fails unless nothing is reserved and no sender is known.
func expectAllFree(t *testing.T, name string, l *memoryLimiter, total int64) {
	t.Helper()
	if !l.total.TryAcquire(total) {
		t.Errorf("%s: some memory is still reserved, want none", name)
	} else {
		l.total.Release(total)
	}
	if n := len(l.senders.limits); n > 0 {
		t.Errorf("%s: the limiter still keeps %d senders, want none", name, n)
	}
}

func TestMemoryLimiter_Acquire_WaitsUntilEnoughIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const total = 1000
		l := newMemoryLimiter(total, total, testWait)
		most, err := l.acquire(t.Context(), "a", total-100)
		if err != nil {
			t.Fatal(err)
		}
		last, err := l.acquire(t.Context(), "b", 100)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if _, err := l.acquire(t.Context(), "c", 1); !errors.Is(err, errNoMemory) || time.Since(begin) != testWait {
			t.Errorf("acquire beyond the total: %v after %v, want %v after %v", err, time.Since(begin), errNoMemory, testWait)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.acquire(ctx, "c", 1); !errors.Is(err, errNoMemory) {
			t.Errorf("acquire for a client that has gone: %v, want %v", err, errNoMemory)
		}

		got := make(chan error)
		go func() {
			r, err := l.acquire(t.Context(), "c", 90)
			if err == nil {
				defer r.release()
			}
			got <- err
		}()
		synctest.Wait()
		last.shrink(20)
		synctest.Wait()
		select {
		case err := <-got:
			t.Errorf("a request for 90 bytes ended with error %v while 80 bytes were free, want it to wait", err)
		default:
		}
		last.shrink(10)
		if err := <-got; err != nil {
			t.Error(err)
		}
		last.release()
		last.release()
		if _, err := l.acquire(t.Context(), "d", 10); err != nil {
			t.Errorf("acquire released memory: %v", err)
		}
		most.release()
	})
}

func TestMemoryLimiter_Sender_HasNoMoreThanItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const first, perSender = 10, 1000
		l := newMemoryLimiter(2*perSender, perSender, testWait)
		held, err := l.acquire(t.Context(), "ours", first)
		if err != nil {
			t.Fatal(err)
		}
		if err := held.grow(perSender); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := held.grow(perSender + 1); !errors.Is(err, errNoMemory) || time.Since(begin) > 0 {
			t.Errorf("grow beyond the sender's limit: %v after %v, want %v at once", err, time.Since(begin), errNoMemory)
		}
		if _, err := l.acquire(t.Context(), "ours", first); !errors.Is(err, errNoMemory) || time.Since(begin) != testWait {
			t.Errorf("acquire beyond the sender's limit: %v after %v, want %v after %v", err, time.Since(begin), errNoMemory, testWait)
		}
		rest, err := l.acquire(t.Context(), "theirs", first)
		if err != nil {
			t.Fatalf("acquire for another sender: %v", err)
		}
		if err := rest.grow(perSender); err != nil {
			t.Errorf("grow another sender to its limit: %v", err)
		}
		held.release()
		rest.release()
		expectAllFree(t, "after release", l, 2*perSender)
	})
}
