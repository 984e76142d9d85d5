package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// The defaults of [Retention].
const (
	DefaultEventAge     = 30 * 24 * time.Hour
	DefaultEventCount   = 5000
	DefaultTombstoneAge = 7 * 24 * time.Hour
)

// Retention says how long what is history is kept.
type Retention struct {
	// EventAge is how long ago an Event may have happened last.
	EventAge time.Duration
	// EventCount is how many Events a workload has; of more than that, the oldest are deleted.
	EventCount int
	// GoneAge is how long what is deleted is kept: workloads with all that is theirs, objects, definitions, and rows of v0.
	// While an object's definition is kept, a late report cannot bring it back.
	TombstoneAge time.Duration
}

// DefaultRetention is 30 days and 5,000 Events of a workload, and 7 days of what is deleted.
func DefaultRetention() Retention {
	return Retention{EventAge: DefaultEventAge, EventCount: DefaultEventCount, TombstoneAge: DefaultTombstoneAge}
}

// Validate names the first bad field and what it accepts.
func (r Retention) Validate() error {
	switch {
	case r.EventAge < time.Minute:
		return fmt.Errorf("event age %v: must be at least a minute", r.EventAge)
	case r.EventCount < 1:
		return fmt.Errorf("events per workload %d: must be at least 1", r.EventCount)
	case r.TombstoneAge < time.Minute:
		return fmt.Errorf("tombstone age %v: must be at least a minute", r.TombstoneAge)
	}
	return nil
}

// Pruned counts the rows that were deleted.
type Pruned struct {
	Events, Objects, Definitions, Workloads int64
	// Rows are those of v0 that were deleted before, but for Events.
	Rows int64
	// Elsewhere is set if another replica was at it, so that nothing was done here.
	Skipped bool
}

// lastKept is the time of the oldest Event of a workload that its number still allows. The newest are counted by index only,
// as pruning does.
func oldestKeptQuery(reference string) string {
	return "SELECT timestamp FROM workload_events WHERE " + reference + " = ? AND timestamp <= ? ORDER BY timestamp DESC, id DESC LIMIT 1 OFFSET ?"
}

// EventsKeptAfter is the time up to which Events of a workload are not kept: they are too old, or there are as many as may
// be kept that are not older. One of that very time may be kept or not. [ErrNotFound] if there is no such workload.
//
// It follows from the rows that there are and is noted nowhere, so it is never stricter than pruning is: where newer Events
// are gone, by age or by hand, there is room for older ones, which may be reported again and stay.
func (s *Store) EventsKeptAfter(ctx context.Context, instance threeport.Instance, keep Retention) (time.Time, error) {
	if _, err := s.workloadRow(ctx, instance); err != nil {
		return time.Time{}, err
	}
	p := pruner{store: s, keep: keep}
	var err error
	if p.now, err = s.databaseTime(ctx); err != nil {
		return time.Time{}, fmt.Errorf("read the database's time: %w", err)
	}
	tooOld := p.minEventTime() - 1 // what happened in that very microsecond is kept
	last, err := first(ctx, s, oldestKeptQuery(eventColumn(instance.Type)), []any{int64(instance.ID), p.maxEventTime(), keep.EventCount - 1}, number)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return time.Time{}, fmt.Errorf("look for the oldest event that is kept: %w", err)
	}
	return fromMicros(max(tooOld, last)), nil // last is 0 if there are fewer
}
