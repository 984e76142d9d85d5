package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// ahead is by how much an Event may be ahead of the database's clock, at most, to count as one of a workload: clocks and
// time zones differ by less. Others would be its newest Events until their time comes, and push out all that happens, however
// wrong the clock of one node was. They are kept for themselves, as many as there may be of the others.
const maxEventLead = 24 * time.Hour

// surveyPage is how many workloads are looked at in one statement.
const workloadBatch = 100

// surplus is what a workload has too much of: nothing if all are unset.
type excess struct {
	instance    int64
	hasExpired  bool          // there are Events that are too old
	firstExcess sql.NullInt64 // the ID of the newest Event that is one too many
	// beyondAhead is the same of those that are of the future.
	firstExcessAhead sql.NullInt64
}

// surveyOf asks of workloads, by index only, whether their oldest Event is too old, and which the first is that is one too
// many. So it reads no more of a workload's Events than it may keep, and of most only one. As they are subqueries of a
// value, no plan joins the two tables as a whole.
func excessQuery(reference string) string {
	return fmt.Sprintf(`SELECT x.id,
		COALESCE((SELECT e.timestamp FROM workload_events e WHERE e.%[1]s = x.id ORDER BY e.timestamp, e.id LIMIT 1) < ?, FALSE),
		(SELECT e.id FROM workload_events e WHERE e.%[1]s = x.id AND e.timestamp <= ? ORDER BY e.timestamp DESC, e.id DESC LIMIT 1 OFFSET ?),
		(SELECT e.id FROM workload_events e WHERE e.%[1]s = x.id AND e.timestamp > ? ORDER BY e.timestamp DESC, e.id DESC LIMIT 1 OFFSET ?)
		FROM x`, reference)
}

// pruneEvents looks at all workloads, and at the Events that have none.
func (p *pruner) pruneEvents(ctx context.Context) error {
	for _, of := range instanceTables {
		for last := int64(-1); ; {
			ids, err := collect(ctx, p.store, "SELECT w.id FROM workloads w WHERE w.type = ? AND w.id > ? ORDER BY w.id LIMIT ?",
				[]any{of.kind, last, workloadBatch}, number)
			if err != nil {
				return fmt.Errorf("list workloads: %w", err)
			}
			if len(ids) == 0 {
				break
			}
			last = ids[len(ids)-1]
			if err := p.pruneEventsOf(ctx, of.eventColumn, ids); err != nil {
				return err
			}
		}
	}
	return p.delete(ctx, p.orphanEvents())
}

// pruneEventsOf deletes the Events of workloads that are too old or too many. reference is the column that refers to them.
func (p *pruner) pruneEventsOf(ctx context.Context, reference string, ids []int64) error {
	found, err := p.findExcess(ctx, reference, ids)
	if err != nil {
		return fmt.Errorf("look for events to prune: %w", err)
	}
	for _, one := range found {
		if one.hasExpired {
			if err := p.delete(ctx, p.expiredEvents(reference, one.instance)); err != nil {
				return err
			}
		}
		for _, beyond := range []sql.NullInt64{one.firstExcess, one.firstExcessAhead} {
			if !beyond.Valid {
				continue
			}
			if err := p.pruneExcess(ctx, reference, one.instance, beyond.Int64); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *pruner) findExcess(ctx context.Context, reference string, ids []int64) (found []excess, err error) {
	err = p.store.readBulk(ctx, bulk{
		excessQuery(reference), []column{integers("id", ids, identity)}, len(ids), []any{p.minEventTime(), p.maxEventTime(), p.keep.EventCount, p.maxEventTime(), p.keep.EventCount},
	}, func(scan scanner) error {
		var one excess
		err := scan(&one.instance, &one.hasExpired, &one.firstExcess, &one.firstExcessAhead)
		found = append(found, one)
		return err
	})
	return found, err
}

// pruneBeyond deletes the Events of a workload from the first that is one too many on.
func (p *pruner) pruneExcess(ctx context.Context, reference string, instance, id int64) error {
	at, err := first(ctx, p.store, "SELECT timestamp FROM workload_events WHERE id = ?", []any{id}, number)
	switch {
	case errors.Is(err, ErrNotFound): // it was too old as well
		return nil
	case err != nil:
		return fmt.Errorf("look for events to prune: %w", err)
	case at > p.maxEventTime():
		return p.delete(ctx, p.aheadEventsUpTo(reference, instance, at, id))
	}
	return p.delete(ctx, p.eventsUpTo(reference, instance, at, id))
}

// oldest is from when on Events are kept.
func (p *pruner) minEventTime() int64 { return p.now - p.keep.EventAge.Microseconds() }

// latest is up to when Events count as those of a workload.
func (p *pruner) maxEventTime() int64 { return p.now + maxEventLead.Microseconds() }

func (p *pruner) orphanEvents() deletion {
	return p.eventDeletion("workloadinstanceid IS NULL AND helmworkloadinstanceid IS NULL AND timestamp < ?", p.minEventTime())
}

func (p *pruner) expiredEvents(reference string, instance int64) deletion {
	return p.eventDeletion(reference+" = ? AND timestamp < ?", instance, p.minEventTime())
}

// upTo are an Event of a workload and all before it.
func (p *pruner) eventsUpTo(reference string, instance, at, id int64) deletion {
	return p.eventDeletion(reference+" = ? AND (timestamp, id) <= (?, ?)", instance, at, id)
}

// aheadUpTo are an Event of a workload that is of the future, and those before it that are.
func (p *pruner) aheadEventsUpTo(reference string, instance, at, id int64) deletion {
	return p.eventDeletion(reference+" = ? AND timestamp > ? AND (timestamp, id) <= (?, ?)", instance, p.maxEventTime(), at, id)
}

// events are those that fulfil a condition, the oldest first.
func (p *pruner) eventDeletion(condition string, args ...any) deletion {
	return deletion{"workload_events", "id", "workload_events WHERE " + condition + " ORDER BY timestamp, id", args, &p.pruned.Events}
}
