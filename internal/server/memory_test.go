package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
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
		most, err := l.acquire(t.Context(), sender{name: "a"}, total-100)
		if err != nil {
			t.Fatal(err)
		}
		last, err := l.acquire(t.Context(), sender{name: "b"}, 100)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if _, err := l.acquire(t.Context(), sender{name: "c"}, 1); !errors.Is(err, errNoMemory) || time.Since(begin) != testWait {
			t.Errorf("acquire beyond the total: %v after %v, want %v after %v", err, time.Since(begin), errNoMemory, testWait)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.acquire(ctx, sender{name: "c"}, 1); !errors.Is(err, errNoMemory) {
			t.Errorf("acquire for a client that has gone: %v, want %v", err, errNoMemory)
		}

		got := make(chan error)
		go func() {
			r, err := l.acquire(t.Context(), sender{name: "c"}, 90)
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
		if _, err := l.acquire(t.Context(), sender{name: "d"}, 10); err != nil {
			t.Errorf("acquire released memory: %v", err)
		}
		most.release()
	})
}

func TestMemoryLimiter_Sender_HasNoMoreThanItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const first, perSender = 10, 1000
		l := newMemoryLimiter(2*perSender, perSender, testWait)
		held, err := l.acquire(t.Context(), sender{name: "ours"}, first)
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
		if _, err := l.acquire(t.Context(), sender{name: "ours"}, first); !errors.Is(err, errNoMemory) || time.Since(begin) != testWait {
			t.Errorf("acquire beyond the sender's limit: %v after %v, want %v after %v", err, time.Since(begin), errNoMemory, testWait)
		}
		rest, err := l.acquire(t.Context(), sender{name: "theirs"}, first)
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

// The senders of one role have three quarters of the memory together, also while others of the role wait.
func TestMemoryLimiter_Role_LeavesMemoryToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const total = 1000
		l := newMemoryLimiter(total, total/2, testWait).limitRoles(total / 4 * 3)
		acquire := func(name string, role auth.Role, n int64) (*reservation, error) {
			return l.acquire(t.Context(), sender{name, role}, n)
		}
		first, err := acquire("first", auth.RoleViewer, total/2)
		if err != nil {
			t.Fatal(err)
		}
		second, err := acquire("second", auth.RoleViewer, total/4-10)
		if err != nil {
			t.Fatal(err)
		}
		if err := second.grow(total/4 + 1); !errors.Is(err, errNoMemory) {
			t.Errorf("grow beyond the limit of the role: %v, want %v", err, errNoMemory)
		}
		refused := make(chan error)
		go func() {
			_, err := acquire("third", auth.RoleViewer, 11)
			refused <- err
		}()
		synctest.Wait()
		for _, role := range []auth.Role{auth.RoleAgent, auth.RoleAdmin} {
			begin := time.Now()
			held, err := acquire("other", role, total/4)
			if err != nil || time.Since(begin) > 0 {
				t.Fatalf("memory for %s: %v after %v, want it at once", role, err, time.Since(begin))
			}
			held.release()
		}
		if err := <-refused; !errors.Is(err, errNoMemory) {
			t.Errorf("acquire beyond the limit of the role: %v, want %v", err, errNoMemory)
		}
		first.release()
		second.release()
		expectAllFree(t, "after release", l, total)
		for role, limit := range l.roles {
			if !limit.TryAcquire(total / 4 * 3) {
				t.Errorf("%s: some memory is still reserved, want none", role)
			}
		}
	})
}
