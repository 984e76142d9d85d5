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
		{reason: "the shortest gap between bursts", gap: burstGap, want: 10 * time.Second},
		{reason: "a back-off of 10 s", gap: 10 * time.Second, want: 10 * time.Second},
		{reason: "one that took as long as it may, and a little more", gap: 17 * time.Second, want: 10 * time.Second},
		{reason: "a back-off of 20 s", gap: 20 * time.Second, want: 20 * time.Second},
		{reason: "that took as long as it may", gap: 30 * time.Second, want: 20 * time.Second},
		{reason: "a back-off of 40 s", gap: 40 * time.Second, want: 40 * time.Second},
		{reason: "that took as long as it may", gap: time.Minute, want: 40 * time.Second},
		{reason: "a back-off of 160 s", gap: 160 * time.Second, want: 160 * time.Second},
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
		{reason: "the first"},
		{reason: "the last of the first burst", second: 14},
		{reason: "a time of no burst, in the gap", second: 25},
		{reason: "the second burst, 26 s later", second: 40, want: 20 * time.Second},
		{reason: "a time of no burst, just before it", second: 38, want: 20 * time.Second},
		{reason: "much later", second: 500, want: 20 * time.Second},
		{reason: "before all", second: -3, want: -time.Hour},
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

func TestClock_KeepsOrder(t *testing.T) {
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

func TestClock_RewritesTimes(t *testing.T) {
	c := newClock([]time.Time{time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)})
	tests := []struct{ reason, in, want string }{
		{reason: "a time", in: "2031-05-06T07:08:09Z", want: "2026-01-01T10:00:20Z"},
		{reason: "a time with fractions", in: "2031-05-06T07:08:10.123456Z", want: "2026-01-01T10:00:20.000000Z"},
		{reason: "a container that never ran", in: "1970-01-01T00:00:00Z", want: "1970-01-01T00:00:00Z"},
		{reason: "no time", in: "back-off 20s", want: "back-off 20s"},
		{reason: "a text with a time in it", in: "until 2031-05-06T07:08:09Z", want: "until 2031-05-06T07:08:09Z"},
		{reason: "no such day", in: "2031-02-31T07:08:09Z", want: "2031-02-31T07:08:09Z"},
	}
	for _, tt := range tests {
		if got := c.rewrite(tt.in); got != tt.want {
			t.Errorf("%s: %s becomes %s, want %s", tt.reason, tt.in, got, tt.want)
		}
	}
}
