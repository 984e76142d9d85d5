package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// Silenced counts what [Store.MarkSilent] found.
type SilentCount struct{ Clusters, Workloads int64 }

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
func (s *Store) MarkSilent(ctx context.Context, timeout time.Duration) (SilentCount, error) {
	var done SilentCount
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
		workloads, silent, err := s.markClusterSilent(ctx, uid, heardBefore)
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
func (s *Store) markClusterSilent(ctx context.Context, uid string, heardBefore int64) (workloads int64, silent bool, err error) {
	for ctx.Err() == nil {
		var marked int64
		err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			marked, silent, err = s.markSilentStep(ctx, tx, uid, heardBefore)
			return err
		})
		if err != nil {
			return workloads, silent, err
		}
		if workloads += marked; marked < maxRowsPerTx {
			return workloads, silent, nil
		}
	}
	return workloads, silent, ctx.Err()
}

// markStep marks some of a cluster's workloads. Its first statement holds the cluster's row, which a report set writes
// first, so that the two take turns.
func (s *Store) markSilentStep(ctx context.Context, tx *sql.Tx, uid string, heardBefore int64) (marked int64, silent bool, err error) {
	d := s.dialect
	err = tx.QueryRowContext(ctx, d.rebind("UPDATE clusters SET silent = TRUE, "+d.changed("clusters")+
		" WHERE uid = ? AND heardat < ? AND NOT v0only RETURNING silent"), uid, heardBefore).Scan(&silent)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	status, rank := displayedStatus(statusUnknown)
	result, err := tx.ExecContext(ctx, d.rebind("UPDATE workloads SET silent = TRUE, status = ?, rank = ?, "+d.changed("workloads")+
		` WHERE clusteruid = ? AND deletedat IS NULL AND (type, id) IN (
			SELECT w.type, w.id FROM workloads w WHERE w.clusteruid = ? AND w.deletedat IS NULL AND NOT w.silent LIMIT ?)`),
		status, rank, uid, uid, maxRowsPerTx)
	if err != nil {
		return 0, false, err
	}
	marked, err = result.RowsAffected()
	return marked, silent, err
}

// hear notes that the cluster's agent is there, and what it says of itself. It comes first in a transaction, so that the
// sets of one cluster take turns.
func (a *applyTx) recordHeartbeat(ctx context.Context) error {
	d := a.store.dialect
	return a.tx.QueryRowContext(ctx, d.rebind(`INSERT INTO clusters
		(uid, name, agentversion, agenttime, delayseconds, pending, deadletters, dropped, heardat, changedat)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, `+d.now()+`, `+d.now()+`)
		ON CONFLICT (uid) DO UPDATE SET
			name = CASE excluded.name WHEN '' THEN clusters.name ELSE excluded.name END,
			agentversion = CASE excluded.agentversion WHEN '' THEN clusters.agentversion ELSE excluded.agentversion END,
			agenttime = excluded.agenttime, delayseconds = excluded.delayseconds, pending = excluded.pending,
			deadletters = excluded.deadletters, dropped = excluded.dropped,
			heardat = excluded.heardat, v0only = FALSE, `+d.changed("clusters")+`
		RETURNING silent, heardat`),
		a.agent.ClusterUID, a.agent.ClusterName, a.agent.Version, a.agent.Time.UnixMicro(), a.agent.DelaySeconds,
		a.agent.Pending, a.agent.DeadLetters, a.agent.Dropped,
	).Scan(&a.wasSilent, &a.now)
}

// endSilence shows again what was said of the workloads of a cluster that had fallen silent. It comes last in a
// transaction, when no lock is to be taken any more.
func (a *applyTx) endSilence(ctx context.Context) error {
	if !a.wasSilent {
		return nil
	}
	return a.store.endSilence(ctx, a.tx, a.agent.ClusterUID)
}

// endSilence shows again what was said of a cluster's workloads. tx holds the cluster's row.
func (s *Store) endSilence(ctx context.Context, tx *sql.Tx, clusterUID string) error {
	d := s.dialect
	if _, err := tx.ExecContext(ctx, d.rebind("UPDATE clusters SET silent = FALSE WHERE uid = ?"), clusterUID); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, d.rebind("UPDATE workloads SET silent = FALSE, "+restoreReportedStatus+", "+d.changed("workloads")+
		" WHERE clusteruid = ? AND silent AND deletedat IS NULL"), clusterUID)
	return err
}

// heardBySets are the clusters that have an instance and count as silent when no report set comes.
const clusterAwaitingSets = `SELECT c.uid FROM workloads w JOIN clusters c ON c.uid = w.clusteruid
	WHERE w.type = ? AND w.id = ? AND w.deletedat IS NULL AND NOT c.v0only`

// HearV0 notes that an agent wrote of instances through v0. That has no heartbeat, so the clusters that have these
// instances are not silent, and do not fall silent either until their next report set: an agent may be turned back to v0.
//
// It writes only if that is new. What it cannot note now it can with the agent's next write.
func (s *Store) RecordV0Report(ctx context.Context, instances []threeport.Instance) error {
	if s.config.StrictV0 {
		return nil
	}
	for _, of := range instances {
		uid, err := first(ctx, s, clusterAwaitingSets, []any{of.Type, int64(of.ID)}, func(scan scanner) (uid string, err error) {
			err = scan(&uid)
			return uid, err
		})
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err == nil {
			err = s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error { return s.markV0Only(ctx, tx, uid) })
		}
		if err != nil {
			return fmt.Errorf("note that an agent reports by v0: %w", err)
		}
	}
	return nil
}

// turnToV0 takes the cluster's row before its workloads, as report sets and the search for silent clusters do.
func (s *Store) markV0Only(ctx context.Context, tx *sql.Tx, clusterUID string) error {
	var silent bool
	err := tx.QueryRowContext(ctx, s.dialect.rebind("UPDATE clusters SET v0only = TRUE, "+s.dialect.changed("clusters")+
		" WHERE uid = ? AND NOT v0only RETURNING silent"), clusterUID).Scan(&silent)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // another request was first
	}
	if err != nil || !silent {
		return err
	}
	return s.endSilence(ctx, tx, clusterUID)
}
