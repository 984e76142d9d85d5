package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Prune deletes what is older, or more, than is to be kept: in transactions of a few hundred rows, and in one replica at
// a time. It looks at every workload, so it is for once in a while; [Store.PruneGrown] is for the time between.
//
// It may stop at any point, and goes on the next time. A row that a report writes at that moment waits until then.
func (s *Store) Prune(ctx context.Context, keep Retention) (Pruned, error) {
	return s.pruning(ctx, keep, func(p *pruner) error {
		return errors.Join(p.pruneEvents(ctx), p.pruneDeleted(ctx))
	})
}

// PruneGrown deletes Events of those workloads only that have got many since they were looked at last, from this replica.
func (s *Store) PruneGrown(ctx context.Context, keep Retention) (Pruned, error) {
	// So the number of Events exceeds the bound by a tenth at most, and each one is counted about ten times in its life.
	grown := s.eventGrowth.take(max(keep.EventCount/10, 1))
	if len(grown) == 0 {
		return Pruned{}, nil
	}
	pruned, err := s.pruning(ctx, keep, func(p *pruner) error {
		for _, of := range instanceTables {
			var ids []int64
			for _, instance := range grown {
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
		for _, instance := range grown {
			s.eventGrowth.add(map[instanceKey]int{instance: keep.EventCount})
		}
	}
	return pruned, err
}

// pruner is one run of pruning.
type pruner struct {
	store *Store
	keep  Retention
	// now is when it began, by the clock of the database, in microseconds.
	now    int64
	pruned Pruned
}

// pruning runs prune in no more than one replica at a time.
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

// delete removes the rows of a table that a query selects by their keys, in steps, and counts them. The query has the
// order in which the rows are locked. On PostgreSQL it leaves out rows that someone is writing.
func (p *pruner) delete(ctx context.Context, of deletion) error {
	text := p.store.dialect.rebind(of.statement(p.store.dialect))
	args := slices.Concat(of.args, []any{maxRowsPerTx})
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		var n int64
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
	}
}

func (of deletion) statement(d dialect) string {
	return "WITH x AS MATERIALIZED (SELECT " + of.key + " FROM " + of.selection + " LIMIT ?" + d.skipLocked() + ") " +
		"DELETE FROM " + of.table + " WHERE (" + of.key + ") IN (SELECT " + of.key + " FROM x)"
}

// grownWorkloads counts the Events that were added to workloads since they were last looked at. It is a hint where to
// look first, kept in memory: what it does not know of, a full [Store.Prune] finds. It is safe for concurrent use; the
// zero value is empty.
type eventGrowth struct {
	mu     sync.Mutex
	events map[instanceKey]int
}

// grownBy counts a row that v0 made, if it is an Event, for the workloads that it names. Under StrictV0 nobody takes what
// is counted.
func (s *Store) eventsByWorkload(r *Resource, values []any) map[instanceKey]int {
	if r.Object != "WorkloadEvent" || s.config.StrictV0 {
		return nil
	}
	grown := make(map[instanceKey]int)
	for _, of := range instanceTables {
		for i, f := range r.Fields {
			if id, named := values[i].(int64); named && f.references == of.table {
				grown[instanceKey{of.kind, id}]++
			}
		}
	}
	return grown
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

// take forgets, and returns, the workloads that so many Events were added to.
func (g *eventGrowth) take(least int) []instanceKey {
	g.mu.Lock()
	defer g.mu.Unlock()
	var taken []instanceKey
	maps.DeleteFunc(g.events, func(instance instanceKey, n int) bool {
		if n >= least {
			taken = append(taken, instance)
		}
		return n >= least
	})
	return taken
}

// deletion is rows to delete: see [pruner.delete].
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
