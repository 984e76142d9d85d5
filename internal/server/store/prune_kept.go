package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// lastKept is the time of the oldest Event of a workload that its number still allows. The newest are counted by index only,
// as pruning does.
func lastKept(reference string) string {
	return "SELECT timestamp FROM workload_events WHERE " + reference + " = ? AND timestamp <= ? ORDER BY timestamp DESC, id DESC LIMIT 1 OFFSET ?"
}

// EventsKeptAfter is the time up to which Events of a workload are not kept: they are too old, or there are as many as may
// be kept that are not older. One of that very time may be kept or not. [ErrNotFound] if there is no such workload.
//
// It follows from the rows that there are and is noted nowhere, so it is never stricter than pruning is: where newer Events
// are gone, by age or by hand, there is room for older ones, which may be reported again and stay.
func (s *Store) EventsKeptAfter(ctx context.Context, instance threeport.Instance, keep Retention) (time.Time, error) {
	if _, err := s.boardRow(ctx, instance); err != nil {
		return time.Time{}, err
	}
	p := pruner{store: s, keep: keep}
	var err error
	if p.now, err = s.databaseTime(ctx); err != nil {
		return time.Time{}, fmt.Errorf("read the database's time: %w", err)
	}
	tooOld := p.oldest() - 1 // what happened in that very microsecond is kept
	last, err := first(ctx, s, lastKept(eventColumn(instance.Type)), []any{int64(instance.ID), p.latest(), keep.EventCount - 1}, number)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return time.Time{}, fmt.Errorf("look for the oldest event that is kept: %w", err)
	}
	return fromMicros(max(tooOld, last)), nil // last is 0 if there are fewer
}
