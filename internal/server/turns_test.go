package server

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/threeport/threeport-agent/internal/server/auth"
)

func TestTurns_LongWork_PausesItsSender(t *testing.T) {
	for _, tc := range []struct{ work, pause time.Duration }{
		{work: longWork, pause: 0}, {work: time.Second, pause: 2 * time.Second}, {work: 9 * time.Second, pause: maxPause},
	} {
		synctest.Test(t, func(t *testing.T) {
			all := newTurns("test", testWait, longWork, maxPause)
			next := func(name string) time.Duration {
				t.Helper()
				begin := time.Now()
				turn, err := all.begin(t.Context(), sender{name: name}, 2)
				if err != nil {
					t.Fatal(err)
				}
				turn.end()
				return time.Since(begin)
			}
			turn, err := all.begin(t.Context(), sender{name: "one"}, 2)
			if err != nil {
				t.Fatal(err)
			}
			_ = turn.work(func() error {
				time.Sleep(tc.work)
				return nil
			})
			turn.end()
			if took := next("another"); took != 0 {
				t.Errorf("after %v of work another sender waits %v, want not at all", tc.work, took)
			}
			if took := next("one"); took != tc.pause {
				t.Errorf("after %v of work the sender waits %v, want %v", tc.work, took, tc.pause)
			}
		})
	}
}

// A set of a sender waits while another one of it is decoded. The sets of others do not.
func TestReportSets_Decode_TakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReportSets(nil, DefaultLimits(), nil, nil)
		one, another := sender{name: "one"}, sender{name: "another"}
		turn, err := r.turns.begin(t.Context(), one, 1)
		if err != nil {
			t.Fatal(err)
		}
		body := setOf(t, 10)
		for from, want := range map[sender]int{one: http.StatusServiceUnavailable, another: 0} {
			set, err := r.decode(t.Context(), body, "gzip", from)
			got := 0
			if refused, ok := errors.AsType[huma.StatusError](err); ok {
				got = refused.GetStatus()
			}
			if got != want {
				t.Errorf("a set of %s while one of the first sender is decoded: %v, want code %d", from.name, err, want)
			}
			if set != nil {
				set.memory.release()
			}
		}
		turn.end()
	})
}

// Half of the processors decode large sets, and small ones do not wait for them.
func TestReportSets_Decode_LargeSetsLeaveProcessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReportSets(nil, DefaultLimits(), nil, nil)
		for i := 0; ; i++ { // until all are in use
			if _, err := r.large.tryAcquire(sender{name: string(rune('a' + i))}, 1); err != nil {
				break
			}
		}
		begin := time.Now()
		if set, err := r.decode(t.Context(), setOf(t, largeSet), "gzip", sender{name: "large"}); err == nil || time.Since(begin) != reportSetWait {
			t.Errorf("a large set returned %v, %v after %v, want an error after %v", set, err, time.Since(begin), reportSetWait)
		}
		begin = time.Now()
		if _, err := r.decode(t.Context(), setOf(t, 10), "gzip", sender{name: "small"}); err != nil || time.Since(begin) != 0 {
			t.Errorf("a small set returned %v after %v, want no error and no wait", err, time.Since(begin))
		}
	})
}

// as is a request by a role from an address.
func as(t *testing.T, role auth.Role, address string) *v0Request {
	t.Helper()
	req := httptest.NewRequestWithContext(
		auth.WithPrincipal(t.Context(), auth.Principal{Name: "at " + address, Role: role, Credential: auth.CredentialToken}),
		http.MethodGet, "/", nil)
	req.RemoteAddr = address
	return v0RequestOf(req, newV0Limits(testBody))
}

// TestV0_LargeValues_PauseTheirSender works on values for a tenth of a second, and then on other values.
func TestV0_LargeValues_PauseTheirSender(t *testing.T) {
	const work = 100 * time.Millisecond
	for _, tc := range []struct {
		name    string
		role    auth.Role
		address string
		first   int64
		size    int64
		pause   time.Duration
	}{
		{"a large value", auth.RoleAgent, oneAddress, 4 * largeValues, largeValues + 1, 4 * work},
		{"a small value", auth.RoleAgent, oneAddress, 4 * largeValues, largeValues, 0},
		{"after a small value", auth.RoleAgent, oneAddress, largeValues, 4 * largeValues, 0},
		{"after the largest value", auth.RoleAgent, oneAddress, 1000 * largeValues, largeValues + 1, maxPause},
		{"another agent", auth.RoleAgent, anotherAddress, 4 * largeValues, 4 * largeValues, 0},
		{"an administrator", auth.RoleAdmin, oneAddress, 4 * largeValues, 4 * largeValues, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &v0API{limits: newV0Limits(testBody)}
				v.limits.turns.limiter.wait = time.Minute
				first := as(t, tc.role, oneAddress)
				if err := v.inTurn(first, tc.first, func() error { time.Sleep(work); return nil }); err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				if err := v.inTurn(as(t, tc.role, tc.address), tc.size, func() error { return nil }); err != nil {
					t.Fatal(err)
				}
				if got := time.Since(begin); got != tc.pause {
					t.Errorf("the next value waits for %v, want %v", got, tc.pause)
				}
				last, err := v.limits.turns.begin(t.Context(), senderOf(first.Request), 0) // after the pause
				if err != nil {
					t.Fatal(err)
				}
				last.end()
				synctest.Wait()
				expectAllFree(t, "turns", v.limits.turns.limiter, math.MaxInt64)
			})
		})
	}
}

// TestRowReads_SecondRead_Waits reads for a second: during another read of the same sender, and after it.
func TestRowReads_SecondRead_Waits(t *testing.T) {
	const work = time.Second
	for role, want := range map[auth.Role]struct {
		during error
		pause  time.Duration
	}{
		auth.RoleViewer: {errLimitReached, maxReadPause}, auth.RoleAgent: {errLimitReached, maxReadPause}, auth.RoleAdmin: {},
	} {
		synctest.Test(t, func(t *testing.T) {
			v := &v0API{limits: newV0Limits(testBody)}
			other := v.reading(func(*v0Request) error { return nil })
			read := v.reading(func(req *v0Request) error {
				if err := other(req); !errors.Is(err, want.during) {
					t.Errorf("%s: another read returned %v, want %v", role, err, want.during)
				}
				if err := other(as(t, role, anotherAddress)); err != nil {
					t.Errorf("%s: a read of another sender failed: %v", role, err)
				}
				time.Sleep(work)
				return nil
			})
			if err := read(as(t, role, oneAddress)); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			if err := other(as(t, role, oneAddress)); err != nil || time.Since(begin) != want.pause {
				t.Errorf("%s: the next read waits for %v, error %v; want %v", role, time.Since(begin), err, want.pause)
			}
			synctest.Wait()
			for _, turns := range v.limits.reads {
				expectAllFree(t, "reads", turns.limiter, math.MaxInt64)
			}
		})
	}
}

// The log has the limit that refused a read.
func TestRowReads_RefusedOperation_HasItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := newRowReads()
		limited := func(serve http.HandlerFunc) http.HandlerFunc { return reads.limit(endpoint{}).wrap(serve) }
		info, answer := &requestInfo{}, httptest.NewRecorder()
		read := as(t, auth.RoleViewer, oneAddress).Request
		limited(func(_ http.ResponseWriter, req *http.Request) {
			second := req.WithContext(context.WithValue(req.Context(), requestInfoKey{}, info))
			limited(func(http.ResponseWriter, *http.Request) {})(answer, second)
		})(httptest.NewRecorder(), read)
		if answer.Code != http.StatusServiceUnavailable || !errors.Is(info.cause, errLimitReached) {
			t.Errorf("a second read is answered with %d, its cause is %v; want %d because of a limit", answer.Code, info.cause, http.StatusServiceUnavailable)
		}
	})
}
