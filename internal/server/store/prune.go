package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
)

// Prune deletes what is older, or more, than is to be kept: in transactions of a few hundred rows, and in one replica at
// a time. It looks at every workload, so it is for once in a while; [Store.PruneGrown] is for the time between.
//
// It may stop at any point, and goes on the next time. A row that a report writes at that moment waits until then.
func (s *Store) Prune(ctx context.Context, keep Retention) (Pruned, error) {
	return s.pruning(ctx, keep, func(p *pruner) error {
		return errors.Join(p.pruneEvents(ctx), p.pruneGone(ctx))
	})
}

// PruneGrown deletes Events of those workloads only that have got many since they were looked at last, from this replica.
func (s *Store) PruneGrown(ctx context.Context, keep Retention) (Pruned, error) {
	// So the number of Events exceeds the bound by a tenth at most, and each one is counted about ten times in its life.
	grown := s.grown.take(max(keep.EventCount/10, 1))
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
	if err != nil || pruned.Elsewhere {
		for _, instance := range grown {
			s.grown.add(map[instanceKey]int{instance: keep.EventCount})
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
		return Pruned{Elsewhere: err == nil}, err
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
	args := slices.Concat(of.args, []any{stepRows})
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
		if *of.count += n; n < stepRows {
			return nil
		}
	}
}

func (of deletion) statement(d dialect) string {
	return "WITH x AS MATERIALIZED (SELECT " + of.key + " FROM " + of.selection + " LIMIT ?" + d.skipLocked() + ") " +
		"DELETE FROM " + of.table + " WHERE (" + of.key + ") IN (SELECT " + of.key + " FROM x)"
}

// skipLocked locks the rows of a SELECT that no other transaction has locked, and leaves out the others.
func (d dialect) skipLocked() string {
	if d == sqliteDialect {
		return ""
	}
	return " FOR UPDATE SKIP LOCKED"
}
