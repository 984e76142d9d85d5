package server

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
)

const testWait = 10 * time.Second

// expectAllFree fails unless nothing is reserved and no sender is known.
func expectAllFree(t *testing.T, name string, l *limiter, total int64) {
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

func TestLimiter_Acquire_WaitsUntilEnoughIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const total = 1000
		l := newLimiter("test", total, total, testWait)
		most, err := l.acquire(t.Context(), sender{name: "a"}, total-100)
		if err != nil {
			t.Fatal(err)
		}
		last, err := l.acquire(t.Context(), sender{name: "b"}, 100)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if _, err := l.acquire(t.Context(), sender{name: "c"}, 1); !errors.Is(err, errLimitReached) || time.Since(begin) != testWait {
			t.Errorf("acquire beyond the total: %v after %v, want %v after %v", err, time.Since(begin), errLimitReached, testWait)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.acquire(ctx, sender{name: "c"}, 1); !errors.Is(err, errLimitReached) {
			t.Errorf("acquire for a client that has gone: %v, want %v", err, errLimitReached)
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

func TestLimiter_Sender_HasNoMoreThanItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const first, perSender = 10, 1000
		l := newLimiter("test", 2*perSender, perSender, testWait)
		held, err := l.acquire(t.Context(), sender{name: "ours"}, first)
		if err != nil {
			t.Fatal(err)
		}
		if err := held.grow(perSender); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := held.grow(perSender + 1); !errors.Is(err, errLimitReached) || time.Since(begin) > 0 {
			t.Errorf("grow beyond the sender's limit: %v after %v, want %v at once", err, time.Since(begin), errLimitReached)
		}
		if _, err := l.acquire(t.Context(), sender{name: "ours"}, first); !errors.Is(err, errLimitReached) || time.Since(begin) != testWait {
			t.Errorf("acquire beyond the sender's limit: %v after %v, want %v after %v", err, time.Since(begin), errLimitReached, testWait)
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
func TestLimiter_Role_LeavesMemoryToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const total = 1000
		l := newLimiter("test", total, total/2, testWait).limitRoles(total / 4 * 3)
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
		if err := second.grow(total/4 + 1); !errors.Is(err, errLimitReached) {
			t.Errorf("grow beyond the limit of the role: %v, want %v", err, errLimitReached)
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
		if err := <-refused; !errors.Is(err, errLimitReached) {
			t.Errorf("acquire beyond the limit of the role: %v, want %v", err, errLimitReached)
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

func TestLimiter_Error_NamesTheLimit(t *testing.T) {
	l := newLimiter("memory of tests", 4, 2, testWait).limitRoles(3)
	take := func(name string, role auth.Role, n int64) error {
		_, err := l.tryAcquire(sender{name, role}, n)
		return err
	}
	held, err := l.tryAcquire(sender{"one", auth.RoleViewer}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason string
		err    error
		want   string // empty for no error
	}{
		{"another one of the sender", take("one", auth.RoleViewer, 2), "the limit of memory of tests for one sender is reached"},
		{"growth beyond the limit of the sender", held.grow(3), "the limit of memory of tests for one sender is reached"},
		{"growth to the limit of the sender", held.grow(2), ""},
		{"another one of the role", take("two", auth.RoleViewer, 2), "the limit of memory of tests for one role is reached"},
		{"one of another role", take("three", auth.RoleAgent, 2), ""},
		{"one of a third role", take("four", auth.RoleAdmin, 1), "the limit of memory of tests for all senders is reached"},
	} {
		if (tc.err == nil) != (tc.want == "") || tc.err != nil && (!errors.Is(tc.err, errLimitReached) || !strings.Contains(tc.err.Error(), tc.want)) {
			t.Errorf("%s: the error is %v, want %q", tc.reason, tc.err, tc.want)
		}
	}
}

func TestReservation_Release_OfNone_HasNoEffect(_ *testing.T) {
	var none *reservation
	none.release()
}
