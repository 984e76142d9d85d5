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
