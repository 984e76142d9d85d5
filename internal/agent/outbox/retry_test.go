package outbox

import (
	"testing"
	"time"
)

func TestBackoff_Delay_IsRandomUpToADoublingLimit(t *testing.T) {
	tests := []struct {
		reason  string
		backoff Backoff
		attempt int
		limit   time.Duration
	}{
		{"the first", Backoff{time.Second, time.Minute}, 1, time.Second},
		{"the second", Backoff{time.Second, time.Minute}, 2, 2 * time.Second},
		{"the sixth", Backoff{time.Second, time.Minute}, 6, 32 * time.Second},
		{"the seventh reaches the maximum", Backoff{time.Second, time.Minute}, 7, time.Minute},
		{"a maximum that is a power", Backoff{time.Second, 4 * time.Second}, 3, 4 * time.Second},
		{"far beyond", Backoff{time.Second, time.Minute}, 10_000, time.Minute},
		{"a base that would overflow into the range", Backoff{time.Hour, 24 * time.Hour}, 27, 24 * time.Hour},
		{"always the maximum", Backoff{time.Minute, time.Minute}, 1, time.Minute},
		{"as short as can be", Backoff{1, 1}, 1, 1},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			shortest, longest := tt.limit, time.Duration(0)
			for range 2000 {
				d := tt.backoff.Delay(tt.attempt)
				shortest, longest = min(shortest, d), max(longest, d)
			}
			if shortest <= 0 || longest > tt.limit {
				t.Errorf("waits are %s to %s, want them above 0 and up to %s", shortest, longest, tt.limit)
			}
			if tt.limit > 1 && (shortest > tt.limit/20 || longest < tt.limit-tt.limit/20) {
				t.Errorf("waits are %s to %s, want them spread from 0 to %s", shortest, longest, tt.limit)
			}
		})
	}
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
