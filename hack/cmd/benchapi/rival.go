package main

import (
	"context"
	"fmt"
	"time"
)

// rivalTime is how long each of the two ways is tried.
const rivalTime = 10 * time.Second

// serially posts Events one after the other by v0, as an agent does that knows nothing else, and returns how many a
// second came to be.
func serially(ctx context.Context, to *api, a *agent) (float64, error) {
	return rate(func() (int, error) {
		ev := a.event()
		_, err := to.create(ctx, "workload-events", map[string]any{
			"RuntimeEventUID": ev.Event.UID, "Type": ev.Event.Type, "Reason": ev.Event.Reason, "Message": ev.Event.Message,
			"Timestamp": ev.Event.Time, "WorkloadInstanceID": int64(ev.Instance.ID),
		})
		return 1, err
	})
}

// inSets sends Events in sets, one after the other, and returns how many a second came to be.
func inSets(ctx context.Context, to *api, a *agent) (float64, error) {
	return rate(func() (int, error) { return eventsOfSet, to.send(ctx, a.set(a.events(eventsOfSet)...)) })
}

func rate(do func() (int, error)) (float64, error) {
	begin, done := time.Now(), 0
	for time.Since(begin) < rivalTime {
		n, err := do()
		if err != nil {
			return 0, fmt.Errorf("compare with v0: %w", err)
		}
		done += n
	}
	return float64(done) / time.Since(begin).Seconds(), nil
}
