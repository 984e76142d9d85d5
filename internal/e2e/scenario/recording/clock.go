package recording

import (
	"regexp"
	"slices"
	"time"
)

// burstGap separates bursts of times. A pod is created, scheduled, started and ready within a few seconds that differ in
// each run. The next change follows after a back-off, a deadline or a crash. So times less than burstGap apart form a burst
// and become one time, and the gaps between bursts are rounded.
const burstGap = 6 * time.Second

// epoch is the time of the first burst of every recording.
var epoch = time.Date(2026, time.January, 1, 10, 0, 20, 0, time.UTC)

// longAgo replaces times before the first burst, such as those of a node.
var longAgo = epoch.Add(-time.Hour)

// afterBurst is the time between the last burst and the moment.
const afterBurst = 5 * time.Second

// early is the time before a burst within which another time still belongs to it, such as that of the last failing probe before
// a container is killed.
const early = 2 * time.Second

// burst is a group of times that become one.
type burst struct {
	first time.Time // of the group
	at    time.Time // what they are in the recording
}

// clock converts real times to those of a recording.
type clock []burst

// newClock groups times into bursts.
func newClock(times []time.Time) clock {
	slices.SortFunc(times, time.Time.Compare)
	var c clock
	var last time.Time
	at := epoch
	for _, t := range times {
		gap := t.Sub(last)
		if len(c) > 0 && gap >= burstGap {
			at = at.Add(coarse(gap))
		}
		if len(c) == 0 || gap >= burstGap {
			c = append(c, burst{first: t, at: at})
		}
		last = t
	}
	return c
}

// coarse rounds the gap between two bursts to 10 s, 20 s, 40 s and so on, the steps of a kubelet's back-off. With jitter a
// back-off takes up to 50 % longer. The limits of the steps (18 s, 36 s, …) are as far as possible from real back-offs.
func coarse(gap time.Duration) time.Duration {
	step := 10 * time.Second
	for gap >= step*18/10 {
		step *= 2
	}
	return step
}

// at returns the recording's time of a real time: that of the last burst that had begun.
func (c clock) at(t time.Time) time.Time {
	out := longAgo
	for _, b := range c {
		if b.first.Add(-early).After(t) {
			break
		}
		out = b.at
	}
	return out
}

// moment returns the recording's time of the moment itself.
func (c clock) moment(t time.Time) time.Time {
	return c.at(t).Add(afterBurst)
}

var timestamp = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`)

// instant parses a time in the format of objects. It returns false for another text, and for 1970, the start time of containers
// that never ran.
func instant(text string) (time.Time, bool) {
	if !timestamp.MatchString(text) {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	return t, err == nil && t.Year() > 2000
}

// rewrite replaces a text if it is a time.
func (c clock) rewrite(text string) string {
	t, ok := instant(text)
	if !ok {
		return text
	}
	layout := time.RFC3339
	if len(text) > len("2006-01-02T15:04:05Z") {
		layout = "2006-01-02T15:04:05.000000Z07:00" // a MicroTime
	}
	return c.at(t).Format(layout)
}
