package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// Default values of [Retention].
const (
	DefaultEventAge     = 30 * 24 * time.Hour
	DefaultEventCount   = 5000
	DefaultTombstoneAge = 7 * 24 * time.Hour
	DefaultAuditAge     = 365 * 24 * time.Hour
)

// Retention limits the stored history.
type Retention struct {
	// EventAge is the maximal age of an Event, by its last occurrence.
	EventAge time.Duration
	// EventCount is the maximal number of Events of a workload; the oldest are deleted first.
	EventCount int
	// TombstoneAge is how long deleted rows are kept: workloads with all their rows, objects, definitions and v0 rows.
	// While the definition of an object is kept, a late report cannot recreate it.
	TombstoneAge time.Duration
	// AuditAge is the maximal age of an audit record; 0 keeps all.
	AuditAge time.Duration
}

// DefaultRetention is 30 days and 5,000 Events per workload, 7 days for deleted rows, and a year for audit records.
func DefaultRetention() Retention {
	return Retention{
		EventAge: DefaultEventAge, EventCount: DefaultEventCount, TombstoneAge: DefaultTombstoneAge, AuditAge: DefaultAuditAge,
	}
}

// Validate returns an error that names the first invalid field and its accepted values.
func (r Retention) Validate() error {
	switch {
	case r.EventAge < time.Minute:
		return fmt.Errorf("event age %v: must be at least a minute", r.EventAge)
	case r.EventCount < 1:
		return fmt.Errorf("events per workload %d: must be at least 1", r.EventCount)
	case r.TombstoneAge < time.Minute:
		return fmt.Errorf("tombstone age %v: must be at least a minute", r.TombstoneAge)
	case r.AuditAge != 0 && r.AuditAge < time.Minute:
		return fmt.Errorf("audit age %v: must be at least a minute, or 0 to keep all records", r.AuditAge)
	}
	return nil
}

// Pruned counts the deleted rows.
type Pruned struct {
	Events, Objects, Definitions, Workloads int64
	// Rows counts v0 rows other than Events.
	Rows         int64
	AuditRecords int64
	Silences     int64
	// Skipped reports that another replica was pruning, so this one did nothing.
	Skipped bool
}

// oldestKeptQuery finds the time of the oldest Event of a workload within EventCount, with an index lookup only.
func oldestKeptQuery(reference string) string {
	return "SELECT timestamp FROM workload_events WHERE " + reference + " = ? AND timestamp <= ? ORDER BY timestamp DESC, id DESC LIMIT 1 OFFSET ?"
}

// EventsKeptAfter returns the time up to which Events of a workload are not kept, by age or by count. An Event of
// exactly that time may or may not be kept. It returns [ErrNotFound] if the workload does not exist.
//
// The time is computed from the stored rows, so it is never stricter than pruning: where newer Events were deleted,
// older ones can be reported again and stay.
func (s *Store) EventsKeptAfter(ctx context.Context, instance threeport.Instance, keep Retention) (time.Time, error) {
	if _, err := s.workloadRow(ctx, instance); err != nil {
		return time.Time{}, err
	}
	p := pruner{store: s, keep: keep}
	var err error
	if p.now, err = s.databaseTime(ctx); err != nil {
		return time.Time{}, fmt.Errorf("read the database's time: %w", err)
	}
	tooOld := p.minEventTime() - 1 // an Event of exactly the minimum is kept
	last, err := first(ctx, s.reserved, oldestKeptQuery(eventColumn(instance.Type)), []any{int64(instance.ID), p.maxEventTime(), keep.EventCount - 1}, number)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return time.Time{}, fmt.Errorf("find oldest kept event: %w", err)
	}
	return fromMicros(max(tooOld, last)), nil // last is 0 if there are fewer
}
