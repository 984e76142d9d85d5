package health

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// moments parses a history: "0s Healthy, 30s Down" are two verdicts with their times.
func moments(t *testing.T, f *Flapping, history string) {
	t.Helper()
	for moment := range strings.SplitSeq(history, ", ") {
		at, status, ok := strings.Cut(moment, " ")
		d, err := time.ParseDuration(at)
		if err != nil || !ok {
			t.Fatalf("moment %q of the history is invalid: %v", moment, err)
		}
		f.Note(seen(status, at), epoch.Add(d))
	}
}

var epoch = time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)

func seen(status, at string) Verdict {
	v := Verdict{Status: Status(status)}
	if v.Status != Healthy {
		v.Reason, v.Message = "Seen", "as of "+at
	}
	return v
}

func TestFlapping_Damp(t *testing.T) {
	const four = "0s Healthy, 1m Down, 2m Healthy, 3m Down, 4m Healthy"
	for _, c := range []struct {
		reason  string
		history string
		at      string // when it is asked, and what is seen then
		want    string // STATUS: MESSAGE
		until   string
	}{
		{reason: "nothing was seen before", at: "0s Down", want: "Down: as of 0s"},
		{reason: "three changes do not flap", history: "0s Healthy, 1m Down, 2m Healthy, 3m Down", at: "3m Down", want: "Down: as of 3m"},
		{reason: "the fourth change flaps", history: four, at: "4m Healthy", want: "Unhealthy: Healthy now, but 4 changes in 10 min: Unhealthy until 5 min pass without one; before: as of 3m", until: "9m"},

		{
			reason:  "the latest message of the worst status",
			history: "0s Healthy, 1m Down, 2m Healthy, 3m Down, 3m20s Down, 4m Healthy",
			at:      "4m Healthy", want: "Unhealthy: Healthy now, but 4 changes in 10 min: Unhealthy until 5 min pass without one; before: as of 3m20s", until: "9m",
		},

		{
			reason: "the current status is the worst: its message is shown", history: four + ", 5m Down",
			at: "5m30s Down", want: "Unhealthy: Down now: as of 5m30s, but it works at times: 5 changes in 10 min", until: "10m",
		},

		{
			reason: "held until it has been quiet", history: four, at: "8m59s Healthy",
			want: "Unhealthy: Healthy now, but 4 changes in 10 min: Unhealthy until 5 min pass without one; before: as of 3m", until: "9m",
		},
		{reason: "quiet for five minutes", history: four, at: "9m Healthy", want: "Healthy: "},

		{reason: "quiet since an earlier observation", history: four + ", 9m Healthy", at: "9m Healthy", want: "Healthy: "},
		{
			reason: "a change after the calm, with three others in the window", history: four + ", 9m30s Down",
			at: "9m30s Down", want: "Unhealthy: Down now: as of 9m30s, but it works at times: 5 changes in 10 min", until: "14m30s",
		},
		{
			reason: "a change when the others are out of the window", history: four + ", 13m30s Down",
			at: "13m30s Down", want: "Down: as of 13m30s",
		},

		{reason: "too slow", history: "0s Healthy, 1m Down, 5m Healthy, 9m Down, 13m Healthy, 17m Down", at: "17m Down", want: "Down: as of 17m"},
		{
			reason:  "two rollouts",
			history: "0s Healthy, 1m Reconciling, 2m Healthy, 3m Reconciling, 4m Healthy",
			at:      "4m Healthy", want: "Healthy: ",
		},
		{
			reason:  "an autoscaler",
			history: "0s Healthy, 1m Reconciling, 2m Healthy, 3m Reconciling, 4m Healthy, 5m Reconciling, 6m Healthy",
			at:      "6m Reconciling", want: "Reconciling: as of 6m",
		},
		{
			reason:  "two rollouts that are Unhealthy for a moment count, and the steps around do not",
			history: "0s Healthy, 1m Reconciling, 2m Unhealthy, 3m Reconciling, 3m10s Healthy, 4m Reconciling, 5m Unhealthy, 5m10s Healthy",
			at:      "5m10s Healthy", want: "Unhealthy: Healthy now, but 4 changes in 10 min: Unhealthy until 5 min pass without one; before: as of 5m", until: "10m10s",
		},
		{
			reason:  "it did not work at any time",
			history: "0s Reconciling, 1m Down, 2m Reconciling, 3m Down, 4m Reconciling",
			at:      "4m Reconciling", want: "Down: Reconciling now: as of 4m, but 4 changes in 10 min: Down until 5 min pass without one; before: as of 3m", until: "9m",
		},
		{
			reason:  "one such rollout",
			history: "0s Healthy, 1m Reconciling, 2m Unhealthy, 3m Reconciling, 4m Healthy",
			at:      "4m Healthy", want: "Healthy: ",
		},
		{
			reason: "between Unhealthy and Down too", history: "0s Down, 1m Unhealthy, 2m Down, 3m Unhealthy, 4m Down",
			at: "4m10s Unhealthy", want: "Unhealthy: as of 4m10s, but 4 changes in 10 min; before: as of 4m",
			until: "9m",
		},

		{
			reason:  "the worst is of the window",
			history: "0s Down, 1m Unhealthy, 12m Healthy, 13m Unhealthy, 14m Healthy, 15m Unhealthy",
			at:      "15m Unhealthy", want: "Unhealthy: as of 15m, 4 changes in 10 min", until: "20m",
		},

		{
			reason:  "Unknown is no change",
			history: "0s Healthy, 1m Unknown, 2m Healthy, 3m Unknown, 4m Healthy, 5m Unknown, 6m Healthy",
			at:      "6m Healthy", want: "Healthy: ",
		},
		{
			reason: "Unknown between two equal faults does not flap", history: "0s Down, 1m Unknown, 2m Down, 3m Unknown, 4m Down",
			at: "4m Down", want: "Down: as of 4m",
		},

		{
			reason:  "but across it",
			history: "0s Down, 1m Unknown, 2m Healthy, 3m Unknown, 4m Down, 5m Healthy, 6m Down",
			at:      "6m Healthy", want: "Unhealthy: Healthy now, but 4 changes in 10 min: Unhealthy until 5 min pass without one; before: as of 6m", until: "11m",
		},
		{
			reason:  "an earlier verdict that arrives late is no change",
			history: "0s Healthy, 1m Down, 2m Healthy, 1m59s Down, 3m Healthy, 2m59s Down, 4m Healthy",
			at:      "4m Healthy", want: "Healthy: ",
		},
		{reason: "Unknown is never dressed", history: four, at: "5m Unknown", want: "Unknown: as of 5m"},
		{reason: "a status that is none", history: four + ", 5m Odd", at: "5m Odd", want: "Odd: as of 5m"},
		{
			reason: "observed again and again", history: "0s Down, 1s Down, 2s Down, 3s Down, 4s Down, 5s Down",
			at: "6s Down", want: "Down: as of 6s",
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			var f Flapping
			if c.history != "" {
				moments(t, &f, c.history)
			}
			at, status, _ := strings.Cut(c.at, " ")
			d, err := time.ParseDuration(at)
			if err != nil {
				t.Fatal(err)
			}
			got, until := f.Damp(seen(status, at), epoch.Add(d))
			if text := fmt.Sprintf("%s: %s", got.Status, got.Message); text != c.want {
				t.Errorf("the verdict is %q, want %q", text, c.want)
			}
			var want time.Time
			if c.until != "" {
				d, _ := time.ParseDuration(c.until)
				want = epoch.Add(d)
			}
			if !until.Equal(want) {
				t.Errorf("until %s, want %s", until, want)
			}
			if again, _ := f.Damp(seen(status, at), epoch.Add(d)); again != got {
				t.Errorf("the second call of Damp returned %v, want %v", again, got)
			}
		})
	}
}

// TestFlapping_LongHistory_BoundedMemory flaps for a long time. The status stays damped, and the memory bounded.
func TestFlapping_LongHistory_BoundedMemory(t *testing.T) {
	var f Flapping
	for i := range 10_000 {
		now := epoch.Add(time.Duration(i) * time.Second)
		v := Verdict{Status: Healthy}
		if i%2 == 0 {
			v = Verdict{Down, "Crash", "it crashes"}
		}
		f.Note(v, now)
		if got, _ := f.Damp(v, now); i >= flappingLimit && got.Status != Unhealthy {
			t.Fatalf("after %d changes the status is %s, want Unhealthy", i, got.Status)
		}
	}
	if len(f.changes) != flappingKept || cap(f.changes) > 2*flappingKept {
		t.Errorf("%d changes are stored with the capacity %d, want %d", len(f.changes), cap(f.changes), flappingKept)
	}
	got, _ := f.Damp(Verdict{Status: Healthy}, epoch.Add(10_000*time.Second))
	if want := "Healthy now, but at least 20 changes in 10 min: Unhealthy until 5 min pass without one; before: it crashes"; got.Message != want {
		t.Errorf("the message is %q, want %q", got.Message, want)
	}
}

func TestFlapping_Damp_Reason(t *testing.T) {
	for _, c := range []struct{ reason, fault, now, want string }{
		{"the fault is over", "Absent", "", ReasonFlapping},
		{"the fault is there", "Absent", "Absent", "Absent"},
		{"a crash loop pauses", "CrashLoopBackOff", "", "CrashLoopBackOff"},
	} {
		f, at := &Flapping{}, epoch
		healthy, down := Verdict{Status: Healthy}, Verdict{Status: Down, Reason: c.fault}
		for i := range 6 {
			at = at.Add(time.Minute)
			f.Note([]Verdict{healthy, down}[i%2], at)
		}
		now := healthy
		if c.now != "" {
			now = down
		}
		f.Note(now, at.Add(time.Minute))
		if got, _ := f.Damp(now, at.Add(time.Minute)); got.Reason != c.want || got.Status != Unhealthy {
			t.Errorf("%s: the verdict is %s for %s, want %s for %s", c.reason, got.Status, got.Reason, Unhealthy, c.want)
		}
	}
}
