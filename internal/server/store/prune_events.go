package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// maxEventLead is how far an Event may be ahead of the database's clock to count as an Event of its workload; errors of
// clocks and time zones are smaller. Events further ahead would otherwise always be the newest ones and displace all
// others. They are limited separately, to the same count.
const maxEventLead = 24 * time.Hour

// Long Events are limited separately, so that the size of a workload's Events is limited too.
const (
	// longMessage is the condition for a long Event, and that of the partial indexes of migration 00014.
	longMessage = "octet_length(message) > 4096"
	// maxLongEvents is the number of long Events per workload.
	maxLongEvents = 256
)

// workloadBatch is the number of workloads per query.
const workloadBatch = 100

// excess describes the excess Events of a workload; the zero value means none.
type excess struct {
	instance    int64
	hasExpired  bool          // some Events exceed EventAge
	firstExcess sql.NullInt64 // ID of the newest Event beyond EventCount
	// firstExcessAhead is the same for Events that are too far ahead.
	firstExcessAhead sql.NullInt64
	// firstExcessLong is the ID of the newest long Event beyond maxLongEvents.
	firstExcessLong sql.NullInt64
}

// excessQuery finds expired and excess Events of workloads with index lookups only. It reads at most EventCount index
// entries of a workload, and only one of most. Scalar subqueries keep the planner from joining both tables as a whole.
func excessQuery(reference string) string {
	return fmt.Sprintf(`SELECT x.id,
		COALESCE((SELECT e.timestamp FROM workload_events e WHERE e.%[1]s = x.id ORDER BY e.timestamp, e.id LIMIT 1) < ?, FALSE),
		(SELECT e.id FROM workload_events e WHERE e.%[1]s = x.id AND e.timestamp <= ? ORDER BY e.timestamp DESC, e.id DESC LIMIT 1 OFFSET ?),
		(SELECT e.id FROM workload_events e WHERE e.%[1]s = x.id AND e.timestamp > ? ORDER BY e.timestamp DESC, e.id DESC LIMIT 1 OFFSET ?),
		(SELECT id FROM workload_events WHERE %[1]s = x.id AND %[2]s ORDER BY timestamp DESC, id DESC LIMIT 1 OFFSET ?)
		FROM x`, reference, longMessage)
}

// pruneEvents checks all workloads, and the Events without one.
func (p *pruner) pruneEvents(ctx context.Context) error {
	for _, of := range instanceTables {
		for last := int64(-1); ; {
			ids, err := collect(ctx, p.store.read, "SELECT w.id FROM workloads w WHERE w.type = ? AND w.id > ? ORDER BY w.id LIMIT ?",
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

// pruneEventsOf deletes the expired and excess Events of workloads. reference is the column that refers to them.
func (p *pruner) pruneEventsOf(ctx context.Context, reference string, ids []int64) error {
	found, err := p.findExcess(ctx, reference, ids)
	if err != nil {
		return fmt.Errorf("find events to prune: %w", err)
	}
	for _, one := range found {
		if one.hasExpired {
			if err := p.delete(ctx, p.expiredEvents(reference, one.instance)); err != nil {
				return err
			}
		}
		for _, beyond := range []struct {
			firstExcess sql.NullInt64
			older       func(reference string, instance, at, id int64) deletion
		}{{one.firstExcess, p.eventsUpTo}, {one.firstExcessAhead, p.aheadEventsUpTo}, {one.firstExcessLong, p.longEventsUpTo}} {
			if !beyond.firstExcess.Valid {
				continue
			}
			id := beyond.firstExcess.Int64
			at, err := first(ctx, p.store.read, "SELECT timestamp FROM workload_events WHERE id = ?", []any{id}, number)
			if errors.Is(err, ErrNotFound) { // it had also expired
				continue
			}
			if err != nil {
				return fmt.Errorf("find events to prune: %w", err)
			}
			if err := p.delete(ctx, beyond.older(reference, one.instance, at, id)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *pruner) findExcess(ctx context.Context, reference string, ids []int64) (found []excess, err error) {
	err = p.store.readBulk(ctx, p.store.read, bulk{
		excessQuery(reference), []column{integers("id", ids, identity)}, len(ids), []any{p.minEventTime(), p.maxEventTime(), p.keep.EventCount, p.maxEventTime(), p.keep.EventCount, maxLongEvents},
	}, func(scan scanner) error {
		var one excess
		err := scan(&one.instance, &one.hasExpired, &one.firstExcess, &one.firstExcessAhead, &one.firstExcessLong)
		found = append(found, one)
		return err
	})
	return found, err
}

// minEventTime is the time from which on Events are kept.
func (p *pruner) minEventTime() int64 { return p.now - p.keep.EventAge.Microseconds() }

// maxEventTime is the time up to which Events count as those of their workload.
func (p *pruner) maxEventTime() int64 { return p.now + maxEventLead.Microseconds() }

// orphanEvents are the expired Events without an instance. Their times may be far ahead.
func (p *pruner) orphanEvents() deletion {
	return p.eventDeletion("workloadinstanceid IS NULL AND helmworkloadinstanceid IS NULL AND (timestamp < ? OR updatedat < ?)",
		p.minEventTime(), p.minEventTime())
}

func (p *pruner) expiredEvents(reference string, instance int64) deletion {
	return p.eventDeletion(reference+" = ? AND timestamp < ?", instance, p.minEventTime())
}

// eventsUpTo are an Event of a workload and all older ones.
func (p *pruner) eventsUpTo(reference string, instance, at, id int64) deletion {
	return p.eventDeletion(reference+" = ? AND (timestamp, id) <= (?, ?)", instance, at, id)
}

// aheadEventsUpTo deletes an Event of a workload that is too far ahead of the clock, and the older ones that also are.
func (p *pruner) aheadEventsUpTo(reference string, instance, at, id int64) deletion {
	return p.eventDeletion(reference+" = ? AND timestamp > ? AND (timestamp, id) <= (?, ?)", instance, p.maxEventTime(), at, id)
}

// longEventsUpTo are a long Event of a workload and all older long ones.
func (p *pruner) longEventsUpTo(reference string, instance, at, id int64) deletion {
	return p.eventDeletion(reference+" = ? AND "+longMessage+" AND (timestamp, id) <= (?, ?)", instance, at, id)
}

// eventDeletion deletes the Events that match a condition, oldest first.
func (p *pruner) eventDeletion(condition string, args ...any) deletion {
	return deletion{"workload_events", "id", "workload_events WHERE " + condition + " ORDER BY timestamp, id", args, &p.pruned.Events}
}
