package recording

import (
	"slices"
	"testing"
	"time"
)

func TestCoarse(t *testing.T) {
	tests := []struct {
		reason    string
		gap, want time.Duration
	}{
		{"the shortest gap between bursts", burstGap, 10 * time.Second},
		{"a back-off of 10 s", 10 * time.Second, 10 * time.Second},
		{"one that took as long as it may, and a little more", 17 * time.Second, 10 * time.Second},
		{"a back-off of 20 s", 20 * time.Second, 20 * time.Second},
		{"that took as long as it may", 30 * time.Second, 20 * time.Second},
		{"a back-off of 40 s", 40 * time.Second, 40 * time.Second},
		{"that took as long as it may", time.Minute, 40 * time.Second},
		{"a back-off of 160 s", 160 * time.Second, 160 * time.Second},
	}
	for _, tt := range tests {
		if got := coarse(tt.gap); got != tt.want {
			t.Errorf("%s: %s becomes %s, want %s", tt.reason, tt.gap, got, tt.want)
		}
	}
}

func TestClock(t *testing.T) {
	start := time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)
	second := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	c := newClock([]time.Time{second(40), second(0), second(14), second(5), second(10), second(41)})
	tests := []struct {
		reason string
		second int
		want   time.Duration
	}{
		{"the first", 0, 0},
		{"one of the first burst, which each time prolongs", 14, 0},
		{"one that makes no burst, in the gap", 25, 0},
		{"the second burst, 26 s later", 40, 20 * time.Second},
		{"just before it, by what makes no burst", 38, 20 * time.Second},
		{"much later", 500, 20 * time.Second},
		{"before all", -3, -time.Hour},
	}
	for _, tt := range tests {
		if got := c.at(second(tt.second)).Sub(epoch); got != tt.want {
			t.Errorf("%s: second %d is %s after the first burst, want %s", tt.reason, tt.second, got, tt.want)
		}
	}
	if got := c.moment(second(99)).Sub(epoch); got != 25*time.Second {
		t.Errorf("the moment is %s after the first burst, want 5 s after the last", got)
	}
	if got := newClock(nil).at(start); got != longAgo {
		t.Errorf("without any times it is %s", got)
	}
}

func TestOrderInTimeIsKept(t *testing.T) {
	v := newVariant(9)
	var times []time.Time
	for range 200 {
		times = append(times, v.start.Add(time.Duration(v.IntN(2000))*time.Second))
	}
	c := newClock(slices.Clone(times))
	for _, a := range times {
		for _, b := range times {
			if a.Before(b) && c.at(b).Before(c.at(a)) {
				t.Fatalf("%s and %s become %s and %s", a, b, c.at(a), c.at(b))
			}
		}
	}
}

func TestRewriteOfTimes(t *testing.T) {
	c := newClock([]time.Time{time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)})
	tests := []struct{ reason, in, want string }{
		{"a time", "2031-05-06T07:08:09Z", "2026-01-01T10:00:20Z"},
		{"a time with fractions", "2031-05-06T07:08:10.123456Z", "2026-01-01T10:00:20.000000Z"},
		{"a container that never ran", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"},
		{"no time", "back-off 20s", "back-off 20s"},
		{"a text with a time in it", "until 2031-05-06T07:08:09Z", "until 2031-05-06T07:08:09Z"},
		{"no such day", "2031-02-31T07:08:09Z", "2031-02-31T07:08:09Z"},
	}
	for _, tt := range tests {
		if got := c.rewrite(tt.in); got != tt.want {
			t.Errorf("%s: %s becomes %s, want %s", tt.reason, tt.in, got, tt.want)
		}
	}
}
