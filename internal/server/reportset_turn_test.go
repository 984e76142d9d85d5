package server

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

func TestDecodeTurn_Long_PausesItsSender(t *testing.T) {
	for _, tc := range []struct{ work, pause time.Duration }{
		{work: longDecode, pause: 0}, {work: time.Second, pause: time.Second}, {work: 9 * time.Second, pause: maxDecodePause},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDecoders()
			next := func(name string) time.Duration {
				t.Helper()
				begin := time.Now()
				turn, err := d.turn(t.Context(), sender{name: name})
				if err != nil {
					t.Fatal(err)
				}
				turn.end()
				return time.Since(begin)
			}
			turn, err := d.turn(t.Context(), sender{name: "one"})
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
		turn, err := r.decoders.turn(t.Context(), one)
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
			if _, err := r.decoders.large.tryAcquire(sender{name: string(rune('a' + i))}, 1); err != nil {
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
