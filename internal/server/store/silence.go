package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// stepRows is how many rows a transaction of the maintenance changes at most, so that nobody waits long for it.
const stepRows = 500

// Silenced counts what [Store.MarkSilent] found.
type Silenced struct{ Clusters, Workloads int64 }

// overdueClusters are those not heard of for too long, and those of which that was found, but not yet shown on the whole
// board, by a process that ended.
const overdueClusters = `SELECT c.uid FROM clusters c
	WHERE c.heardat < ? AND NOT c.v0only AND (NOT c.silent OR EXISTS
		(SELECT 1 FROM workloads w WHERE w.clusteruid = c.uid AND w.deletedat IS NULL AND NOT w.silent))
	ORDER BY c.uid`

// MarkSilent shows as Unknown the workloads of the clusters whose agents were not heard for the timeout, by the clock of
// the database. What they said last stays. It may run at once in several replicas, and with reports: a cluster that is
// heard meanwhile is left alone, as is one whose agent reports by v0 (see [Store.HearV0]). The next report set of a cluster
// undoes it.
func (s *Store) MarkSilent(ctx context.Context, timeout time.Duration) (Silenced, error) {
	var done Silenced
	present, err := s.databaseTime(ctx)
	if err != nil {
		return done, fmt.Errorf("find silent clusters: %w", err)
	}
	heardBefore := present - timeout.Microseconds()
	overdue, err := collect(ctx, s, overdueClusters, []any{heardBefore}, func(scan scanner) (uid string, err error) {
		err = scan(&uid)
		return uid, err
	})
	if err != nil {
		return done, fmt.Errorf("find silent clusters: %w", err)
	}
	for _, uid := range overdue {
		workloads, silent, err := s.markCluster(ctx, uid, heardBefore)
		done.Workloads += workloads
		if err != nil {
			return done, fmt.Errorf("mark cluster as silent: %w", err)
		}
		if silent {
			done.Clusters++
		}
	}
	return done, nil
}

// markCluster marks a cluster and its workloads, in as many steps as need be, unless it is heard meanwhile.
func (s *Store) markCluster(ctx context.Context, uid string, heardBefore int64) (workloads int64, silent bool, err error) {
	for ctx.Err() == nil {
		var marked int64
		err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			marked, silent, err = s.markStep(ctx, tx, uid, heardBefore)
			return err
		})
		if err != nil {
			return workloads, silent, err
		}
		if workloads += marked; marked < stepRows {
			return workloads, silent, nil
		}
	}
	return workloads, silent, ctx.Err()
}

// markStep marks some of a cluster's workloads. Its first statement holds the cluster's row, which a report set writes
// first, so that the two take turns.
func (s *Store) markStep(ctx context.Context, tx *sql.Tx, uid string, heardBefore int64) (marked int64, silent bool, err error) {
	d := s.dialect
	err = tx.QueryRowContext(ctx, d.rebind("UPDATE clusters SET silent = TRUE, "+d.changed("clusters")+
		" WHERE uid = ? AND heardat < ? AND NOT v0only RETURNING silent"), uid, heardBefore).Scan(&silent)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	status, rank := shown(unknown)
	result, err := tx.ExecContext(ctx, d.rebind("UPDATE workloads SET silent = TRUE, status = ?, rank = ?, "+d.changed("workloads")+
		` WHERE clusteruid = ? AND deletedat IS NULL AND (type, id) IN (
			SELECT w.type, w.id FROM workloads w WHERE w.clusteruid = ? AND w.deletedat IS NULL AND NOT w.silent LIMIT ?)`),
		status, rank, uid, uid, stepRows)
	if err != nil {
		return 0, false, err
	}
	marked, err = result.RowsAffected()
	return marked, silent, err
}
