package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Prune deletes all rows that exceed the retention, in transactions of a few hundred rows and in one replica at a time.
// It checks every workload, so run it rarely; [Store.PruneGrown] covers the time between.
//
// It can be interrupted at any point; the next run continues. It skips rows that are locked by a report.
func (s *Store) Prune(ctx context.Context, keep Retention) (Pruned, error) {
	return s.pruning(ctx, keep, func(p *pruner) error {
		return errors.Join(p.pruneEvents(ctx), p.pruneDeleted(ctx), p.pruneLargeClusters(ctx), p.pruneAudit(ctx), p.pruneSilences(ctx))
	})
}

// pruneAudit deletes the audit records that are too old.
func (p *pruner) pruneAudit(ctx context.Context) error {
	if p.keep.AuditAge == 0 {
		return nil
	}
	return p.delete(ctx, deletion{
		"audit_records", "id", "audit_records WHERE at < ? ORDER BY at",
		[]any{p.now - p.keep.AuditAge.Microseconds()},
		&p.pruned.AuditRecords,
	})
}

// pruneSilences deletes the silences that are older than all Events.
func (p *pruner) pruneSilences(ctx context.Context) error {
	return p.delete(ctx, deletion{
		"silences", "clusteruid, startedat", "silences WHERE endedat < ? ORDER BY endedat",
		[]any{p.now - p.keep.EventAge.Microseconds()},
		&p.pruned.Silences,
	})
}

// PruneGrown deletes excess Events of the workloads to which this replica has added many since it last pruned them.
func (s *Store) PruneGrown(ctx context.Context, keep Retention) (Pruned, error) {
	// With a tenth, EventCount is exceeded by at most that, and each Event is counted about ten times in its life.
	workloads := s.eventGrowth.take(max(keep.EventCount/10, 1))
	if len(workloads) == 0 {
		return Pruned{}, nil
	}
	pruned, err := s.pruning(ctx, keep, func(p *pruner) error {
		for _, of := range instanceTables {
			var ids []int64
			for _, instance := range workloads {
				if instance.kind == of.kind {
					ids = append(ids, instance.id)
				}
			}
			if err := p.pruneEventsOf(ctx, of.eventColumn, ids); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || pruned.Skipped {
		for _, instance := range workloads {
			s.eventGrowth.add(map[instanceKey]int{instance: keep.EventCount})
		}
	}
	return pruned, err
}

// pruner is one run of pruning.
type pruner struct {
	store *Store
	keep  Retention
	// now is the start of the run by the database's clock, in microseconds.
	now    int64
	pruned Pruned
}

// pruning runs prune while it holds the pruning lock.
func (s *Store) pruning(ctx context.Context, keep Retention, prune func(*pruner) error) (pruned Pruned, err error) {
	if err := keep.Validate(); err != nil {
		return Pruned{}, err
	}
	unlock, ok, err := s.tryLock(ctx, lockPruning)
	if err != nil || !ok {
		return Pruned{Skipped: err == nil}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	p := &pruner{store: s, keep: keep}
	if p.now, err = s.databaseTime(ctx); err != nil {
		return Pruned{}, fmt.Errorf("prune: %w", err)
	}
	if err := prune(p); err != nil {
		return p.pruned, fmt.Errorf("prune: %w", err)
	}
	return p.pruned, nil
}

// delete deletes the selected rows in several transactions and counts them. The selection defines the lock order. On
// PostgreSQL it skips locked rows.
func (p *pruner) delete(ctx context.Context, of deletion) error {
	text := p.store.dialect.rebind(of.statement(p.store.dialect))
	args := slices.Concat(of.args, []any{maxRowsPerTx})
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		var n int64
		begin := time.Now()
		err := p.store.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			result, err := tx.ExecContext(ctx, text, args...)
			if err != nil {
				return fmt.Errorf("delete from %s: %w", of.table, err)
			}
			n, err = result.RowsAffected()
			return err
		})
		if err != nil {
			return err
		}
		if *of.count += n; n < maxRowsPerTx {
			return nil
		}
		if err := letOthersWrite(ctx, begin); err != nil {
			return err
		}
	}
}

func (of deletion) statement(d dialect) string {
	return "WITH x AS MATERIALIZED (SELECT " + of.key + " FROM " + of.selection + " LIMIT ?" + d.skipLocked() + ") " +
		"DELETE FROM " + of.table + " WHERE (" + of.key + ") IN (SELECT " + of.key + " FROM x)"
}

// eventGrowth counts the Events that were added to workloads since they were last pruned. It is only a hint in memory;
// [Store.Prune] finds all others. It is safe for concurrent use; the zero value is empty.
type eventGrowth struct {
	mu     sync.Mutex
	events map[instanceKey]int
}

// eventsByWorkload returns the count of a row that v0 created: one for each workload that an Event names. Under
// StrictV0 nothing is counted, since nothing is pruned.
func (s *Store) eventsByWorkload(r *Resource, values []any) map[instanceKey]int {
	if r.Object != "WorkloadEvent" || s.config.StrictV0 {
		return nil
	}
	counts := make(map[instanceKey]int)
	for _, of := range instanceTables {
		for i, f := range r.Fields {
			if id, named := values[i].(int64); named && f.references == of.table {
				counts[instanceKey{of.kind, id}]++
			}
		}
	}
	return counts
}

func (g *eventGrowth) add(more map[instanceKey]int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.events == nil {
		g.events = make(map[instanceKey]int)
	}
	for instance, n := range more {
		g.events[instance] += n
	}
}

// take removes and returns the workloads with at least this number of added Events.
func (g *eventGrowth) take(least int) []instanceKey {
	g.mu.Lock()
	defer g.mu.Unlock()
	var workloads []instanceKey
	maps.DeleteFunc(g.events, func(instance instanceKey, n int) bool {
		if n >= least {
			workloads = append(workloads, instance)
		}
		return n >= least
	})
	return workloads
}

// deletion selects rows to delete: see [pruner.delete].
type deletion struct {
	table, key, selection string
	args                  []any
	count                 *int64
}

func (p *pruner) deleteAll(ctx context.Context, all ...deletion) error {
	for _, d := range all {
		if err := p.delete(ctx, d); err != nil {
			return err
		}
	}
	return nil
}
