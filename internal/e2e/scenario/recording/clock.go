package recording

import (
	"regexp"
	"slices"
	"time"
)

// Real times come in bursts: a pod is created, scheduled, started and ready within a few seconds, which differ
// each time; then nothing happens until a back-off, a deadline or a crash. So what is less than burstGap apart is
// one burst, in which everything happens at one time, and the gaps between bursts are rounded.
const burstGap = 6 * time.Second

// epoch is the time of the first burst of every recording.
var epoch = time.Date(2026, time.January, 1, 10, 0, 20, 0, time.UTC)

// longAgo is the time of what was before the first burst: a node's life until then.
var longAgo = epoch.Add(-time.Hour)

// afterBurst is how long after its last burst a moment is.
const afterBurst = 5 * time.Second

// early is how long before a burst's first time something may happen that belongs to it: what has a time of its
// own and does not make a burst, such as the last failing probe before a container is killed.
const early = 2 * time.Second

// burst is a group of times that stand for one.
type burst struct {
	first time.Time // of the group
	at    time.Time // what they are in the recording
}

// clock turns real times into those of a recording.
type clock []burst

// newClock makes bursts of times.
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

// coarse rounds the gap between two bursts to 10 s, 20 s, 40 s and so on. The steps are those of a kubelet's
// back-off, which lasts up to half as long again as it says (workqueue jitter), and their limits (18 s, 36 s, …)
// are as far as can be from what back-offs really take.
func coarse(gap time.Duration) time.Duration {
	step := 10 * time.Second
	for gap >= step*18/10 {
		step *= 2
	}
	return step
}

// at returns the recording's time: that of the last burst that had begun.
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

// instant reads a time as it is written in objects; false if the text is none, or one that stands for none:
// containers that never ran started in 1970.
func instant(text string) (time.Time, bool) {
	if !timestamp.MatchString(text) {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	return t, err == nil && t.Year() > 2000
}

// rewrite replaces a text that is a time, and leaves any other as it is.
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
