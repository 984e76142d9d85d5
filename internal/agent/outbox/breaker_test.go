package outbox

import (
	"testing"
	"testing/synctest"
	"time"
)

var testBackoff = Backoff{Base: time.Second, Max: time.Minute}

func TestBreaker_SecondFailingKeyOpens(t *testing.T) {
	b := newBreaker(testBackoff)
	var x, y retryState
	x.take(b.answers)
	y.take(b.answers)
	if wait := b.fail("x", &x, false, failure); b.open || wait <= 0 {
		t.Errorf("first key: open %t, waits %s; want closed, and a wait of its own", b.open, wait)
	}
	if b.fail("x", &x, false, failure); b.open {
		t.Error("open after two failures of one key")
	}
	if wait := b.fail("y", &y, false, failure); !b.open || wait != 0 {
		t.Errorf("second key: open %t, waits %s; want open, and no wait of its own", b.open, wait)
	}
}

func TestBreaker_AnswerInBetweenKeepsItClosed(t *testing.T) {
	b := newBreaker(testBackoff)
	var x, y, z retryState
	b.fail("x", &x, false, failure)
	if b.answer(&y, false) {
		t.Error("answer: an outage ended that had not begun")
	}
	b.fail("z", &z, false, failure)
	if b.open {
		t.Error("open although a report was answered between the failures")
	}
}

func TestBreaker_QuarantinedKeysDoNotOpen(t *testing.T) {
	b := newBreaker(testBackoff)
	var x, y, other retryState
	for range quarantineAfter {
		x.take(b.answers)
		y.take(b.answers)
		b.answer(&other, false)
		b.fail("x", &x, false, failure)
		b.fail("y", &y, false, failure)
	}
	if !x.quarantined() || !y.quarantined() {
		t.Fatalf("quarantined: %t, %t; want both", x.quarantined(), y.quarantined())
	}
	x.take(b.answers)
	y.take(b.answers)
	b.fail("x", &x, false, failure)
	b.fail("y", &y, false, failure)
	if b.open {
		t.Error("open because of quarantined keys")
	}
}

func TestBreaker_RequestedPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(testBackoff)
		var x, y retryState
		start := time.Now()
		b.fail("x", &x, false, Failure{RetryAfter: 30 * time.Second})
		b.fail("y", &y, false, failure) // it was sent before
		if got := b.until.Sub(start); !b.open || got != 30*time.Second {
			t.Errorf("open %t for %s, want 30 s", b.open, got)
		}
		if b.answer(&y, false) || !b.open {
			t.Error("a request from before the pause ended it")
		}
		if !b.answer(&x, true) || b.open || b.answers != 2 {
			t.Errorf("after the probe's answer: open %t, %d answers", b.open, b.answers)
		}
	})
}

func TestRetryState_OthersSucceeded(t *testing.T) {
	for _, tt := range []struct {
		reason  string
		state   retryState
		answers uint64
		want    bool
	}{
		{"no answer since the take", retryState{takenAt: 3}, 3, false},
		{"an answer since the take", retryState{takenAt: 3}, 4, true},
		{"an answer since the last failure, before the take", retryState{takenAt: 4, failures: 1, failedAt: 3}, 4, true},
		{"none since the last failure", retryState{takenAt: 4, failures: 1, failedAt: 4}, 4, false},
	} {
		if got := tt.state.othersSucceeded(tt.answers); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.reason, got, tt.want)
		}
	}
}

func TestRetryState_Answer_KeepsAttemptsOnly(t *testing.T) {
	r := retryState{alone: quarantineAfter, waits: 4, failures: 5, retryAt: time.Now()}
	r.take(7)
	r.answer()
	if r != (retryState{attempts: 1}) {
		t.Errorf("state after an answer: %+v, want one attempt and nothing else", r)
	}
}

func TestRetryState_DeferTo_DoublesUpToTheLimit(t *testing.T) {
	now := time.Unix(1, 0)
	var r retryState
	for i, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, maxDefer, maxDefer} {
		r.take(0)
		r.deferTo(now, time.Second)
		if got := r.retryAt.Sub(now); got != want || r.attempts != 0 {
			t.Errorf("deferral %d: waits %s after %d attempts, want %s after 0", i+1, got, r.attempts, want)
		}
	}
}
