package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// Silenced is what [Store.MarkSilent] marked.
type Silenced struct {
	Clusters  []string // their names, or their UIDs for clusters without a name
	Workloads int64
}

// overdueClusters are clusters without a recent heartbeat that are not silent or began to return, and silent ones with workloads that
// an interrupted run left unmarked.
const overdueClusters = `SELECT c.uid, c.name FROM clusters c
	WHERE c.heardat < ? AND NOT c.v0only AND (NOT c.silent OR c.returnedat IS NOT NULL OR EXISTS
		(SELECT 1 FROM workloads w WHERE w.clusteruid = c.uid AND w.deletedat IS NULL AND NOT w.silent))
	ORDER BY c.uid`

// MarkSilent marks the clusters without a heartbeat for the timeout, by the database's clock, and shows their workloads
// as Unknown. The reported status is kept. Several replicas may run it at once, also during reports. It skips clusters
// that report meanwhile, and those whose agents use v0 (see [Store.RecordV0Report]). A cluster that reports again reverts it,
// after Config.ReturnTime.
func (s *Store) MarkSilent(ctx context.Context, timeout time.Duration) (Silenced, error) {
	type silentCluster struct{ uid, name string }
	var done Silenced
	present, err := s.databaseTime(ctx)
	if err != nil {
		return done, fmt.Errorf("find silent clusters: %w", err)
	}
	heardBefore := present - timeout.Microseconds()
	overdue, err := collect(ctx, s.read, overdueClusters, []any{heardBefore}, func(scan scanner) (c silentCluster, err error) {
		err = scan(&c.uid, &c.name)
		return c, err
	})
	if err != nil {
		return done, fmt.Errorf("find silent clusters: %w", err)
	}
	for _, c := range overdue {
		workloads, silent, err := s.markClusterSilent(ctx, c.uid, heardBefore)
		done.Workloads += workloads
		if err != nil {
			return done, fmt.Errorf("mark cluster as silent: %w", err)
		}
		if silent {
			done.Clusters = append(done.Clusters, cmp.Or(c.name, c.uid))
		}
	}
	return done, nil
}

// markClusterSilent marks a cluster and its workloads in as many transactions as needed, unless it reports meanwhile.
func (s *Store) markClusterSilent(ctx context.Context, uid string, heardBefore int64) (workloads int64, silent bool, err error) {
	for more := true; more; {
		var marked int64
		begin := time.Now()
		err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			marked, silent, more, err = s.markSilentStep(ctx, tx, uid, heardBefore)
			return err
		})
		workloads += marked
		if err == nil && more {
			err = letOthersWrite(ctx, begin)
		}
		if err != nil {
			return workloads, silent, err
		}
	}
	return workloads, silent, nil
}

// markSilentStep marks some of a cluster's workloads, and reports whether there are more. Its first statement locks the cluster's row, so
// it cannot run at the same time as a report set.
func (s *Store) markSilentStep(ctx context.Context, tx *sql.Tx, uid string, heardBefore int64) (marked int64, silent, more bool, err error) {
	d := s.dialect
	err = tx.QueryRowContext(ctx, d.rebind("UPDATE clusters SET silent = TRUE, returnedat = NULL, "+d.changed("clusters")+
		" WHERE uid = ? AND heardat < ? AND NOT v0only RETURNING silent"), uid, heardBefore).Scan(&silent)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, false, nil
	}
	if err != nil {
		return 0, false, false, err
	}
	_, err = tx.ExecContext(ctx, d.rebind("INSERT INTO silences (clusteruid, startedat) SELECT uid, heardat FROM clusters WHERE uid = ? "+
		"ON CONFLICT DO NOTHING"), uid)
	if err != nil {
		return 0, false, false, err
	}
	chosen, more, err := s.someWorkloads(ctx, tx, uid, "NOT w.silent")
	if err != nil {
		return 0, false, false, err
	}
	status, rank := displayedStatus(statusUnknown)
	result, err := tx.ExecContext(ctx, d.rebind("UPDATE workloads AS w SET silent = TRUE, status = ?, rank = ?, "+d.changed("w")+
		" WHERE "+chosen.condition), append([]any{status, rank}, chosen.args...)...)
	if err != nil {
		return 0, false, false, err
	}
	marked, err = result.RowsAffected()
	return marked, silent, more, err
}

// The tokens that fix a name for the same cluster or for another one, and the other clusters with that name.
const (
	nameFixedHere      = "SELECT 1 FROM tokens t WHERE LOWER(t.clustername) = ? AND t.clustername <> '' AND t.clusteruid = ? AND t.revokedat IS NULL"
	nameFixedElsewhere = "SELECT 1 FROM tokens t WHERE LOWER(t.clustername) = ? AND t.clustername <> '' AND t.clusteruid <> ? AND t.revokedat IS NULL"
	nameUsedElsewhere  = "SELECT 1 FROM clusters o WHERE o.namekey = ? AND o.uid <> ?"
)

// clusterName is the name of a cluster. A name that another cluster has, or that a token fixes for another cluster, is
// followed by the cluster's UID. Otherwise an agent could show its workloads under the name of another cluster. A token
// that fixes the name for this cluster takes precedence. The arguments are those of clusterNameArgs.
//
// The databases compare ASCII letters only, so other names are always followed by the UID. They could look like another name. A
// reported name that ends like one with a UID is followed by the UID, too.
const clusterName = "CASE WHEN EXISTS (" + nameFixedHere + ") THEN CAST(? AS TEXT) WHEN EXISTS (" + nameUsedElsewhere + ") OR EXISTS (" + nameFixedElsewhere +
	") THEN CAST(? AS TEXT) ELSE CAST(? AS TEXT) END"

func clusterNameArgs(agent *threeport.Agent) []any {
	key, uid, fixed := lowerASCII(agent.ClusterName), agent.ClusterUID, agent.ClusterName
	long := fixed + " (" + uid + ")"
	if !isASCII(fixed) {
		fixed = long
	}
	reported := fixed
	// A cluster without a name is shown by its UID.
	if strings.HasSuffix(reported, ")") || uuid.Validate(reported) == nil {
		reported = long
	}
	return []any{key, uid, fixed, key, uid, key, uid, long, reported}
}

// recordHeartbeat stores the agent's state in the cluster's row. It is the first step of a transaction, so that the
// report sets of a cluster are serialized.
func (a *applyTx) recordHeartbeat(ctx context.Context) error {
	d := a.store.dialect
	name, args := "?", []any{a.agent.ClusterUID, ""}
	if a.agent.ClusterName != "" {
		name, args = clusterName, append(args[:1], clusterNameArgs(a.agent.Agent)...)
	}
	args = append(args, a.agent.Version, a.agent.Time.UnixMicro(), a.agent.DelaySeconds, a.agent.Pending, a.agent.DeadLetters, a.agent.Dropped)
	return a.tx.QueryRowContext(ctx, d.rebind(`INSERT INTO clusters
		(uid, name, agentversion, agenttime, delayseconds, pending, deadletters, dropped, heardat, changedat)
		VALUES (?, `+name+`, ?, ?, ?, ?, ?, ?, `+d.now()+`, `+d.now()+`)
		ON CONFLICT (uid) DO UPDATE SET
			name = CASE excluded.name WHEN '' THEN clusters.name ELSE excluded.name END,
			agentversion = CASE excluded.agentversion WHEN '' THEN clusters.agentversion ELSE excluded.agentversion END,
			agenttime = excluded.agenttime, delayseconds = excluded.delayseconds, pending = excluded.pending,
			deadletters = excluded.deadletters, dropped = excluded.dropped,
			heardat = excluded.heardat, v0only = FALSE,
			returnedat = CASE WHEN clusters.silent THEN COALESCE(clusters.returnedat, excluded.heardat) END, `+d.changed("clusters")+`
		RETURNING silent, COALESCE(returnedat, 0), heardat, storedbytes`), args...,
	).Scan(&a.wasSilent, &a.returnedAt, &a.now, &a.stored.before)
}

// hasReturned reports whether the cluster was marked as silent and has reported again for Config.ReturnTime.
func (a *applyTx) hasReturned() bool {
	return a.wasSilent && a.now-a.returnedAt >= a.store.config.ReturnTime.Microseconds()
}

// maxRestoreTime limits the time for which a report set restores the workloads of its cluster. The next set continues.
const maxRestoreTime = time.Second

// endSilence restores the reported status of a cluster's workloads, in as many transactions as needed, until a time.
func (s *Store) endSilence(ctx context.Context, uid string, until time.Time) error {
	for more := true; more && time.Now().Before(until); {
		begin := time.Now()
		err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
			more, err = s.endSilenceStep(ctx, tx, uid)
			return err
		})
		if err == nil && more {
			err = letOthersWrite(ctx, begin)
		}
		if err != nil {
			return fmt.Errorf("end the silence of the cluster: %w", err)
		}
	}
	return nil
}

// endSilenceStep restores some of a cluster's workloads, and reports whether there are more. After the last ones the cluster is no longer
// silent. Its first statement locks the cluster's row.
func (s *Store) endSilenceStep(ctx context.Context, tx *sql.Tx, uid string) (more bool, err error) {
	d := s.dialect
	locked, err := tx.ExecContext(ctx, d.rebind("UPDATE clusters SET "+d.changed("clusters")+" WHERE uid = ? AND silent"), uid)
	if err != nil {
		return false, err
	}
	if n, err := locked.RowsAffected(); err != nil || n == 0 {
		return false, err
	}
	chosen, more, err := s.someWorkloads(ctx, tx, uid, "w.silent")
	if err != nil {
		return false, err
	}
	_, err = tx.ExecContext(ctx, d.rebind("UPDATE workloads AS w SET silent = FALSE, "+restoreReportedStatus+", "+d.changed("w")+
		" WHERE "+chosen.condition), chosen.args...)
	if err != nil || more {
		return more, err
	}
	if _, err := tx.ExecContext(ctx, d.rebind("UPDATE clusters SET silent = FALSE, returnedat = NULL WHERE uid = ?"), uid); err != nil {
		return false, err
	}
	_, err = tx.ExecContext(ctx, d.rebind("UPDATE silences SET endedat = "+d.now()+" WHERE clusteruid = ? AND endedat IS NULL"), uid)
	return false, err
}

// maxSilences limits the silences that a workload shows, newest first.
const maxSilences = 100

// silences returns when the agent of a workload's cluster did not report, newest first. It leaves out the present silence.
func (s *Store) silences(ctx context.Context, of threeport.Instance) ([]threeport.Silence, error) {
	return collect(ctx, s.read, `SELECT x.startedat, x.endedat FROM workloads w JOIN silences x ON x.clusteruid = w.clusteruid
		WHERE w.type = ? AND w.id = ? AND x.endedat IS NOT NULL ORDER BY x.startedat DESC LIMIT ?`,
		[]any{of.Type, int64(of.ID), maxSilences}, func(scan scanner) (threeport.Silence, error) {
			var from, to int64
			err := scan(&from, &to)
			return threeport.Silence{From: fromMicros(from), To: fromMicros(to)}, err
		})
}

// clusterAwaitingSets is the cluster of an instance, unless its agent is known to use v0 and its silence has ended.
const clusterAwaitingSets = `SELECT c.uid FROM workloads w JOIN clusters c ON c.uid = w.clusteruid
	WHERE w.type = ? AND w.id = ? AND w.deletedat IS NULL AND (NOT c.v0only OR c.silent)`

// RecordV0Report records that an agent reported instances through v0, which has no heartbeat. Their clusters are not
// silent, and are not marked as silent before their next report set, since an agent may be switched back to v0.
//
// It writes only for the first v0 report after a report set. After an error, the next v0 report records it.
func (s *Store) RecordV0Report(ctx context.Context, instances []threeport.Instance) error {
	if s.config.StrictV0 {
		return nil
	}
	for _, of := range instances {
		uid, err := first(ctx, s.reserved, clusterAwaitingSets, []any{of.Type, int64(of.ID)}, func(scan scanner) (uid string, err error) {
			err = scan(&uid)
			return uid, err
		})
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err == nil {
			err = s.markV0Only(ctx, uid)
		}
		if err != nil {
			return fmt.Errorf("record v0 report: %w", err)
		}
	}
	return nil
}

// markV0Only records that the agent of a cluster uses v0, and ends the silence of the cluster. The next v0 report continues.
func (s *Store) markV0Only(ctx context.Context, uid string) error {
	err := s.exec(ctx, "UPDATE clusters SET v0only = TRUE, "+s.dialect.changed("clusters")+" WHERE uid = ? AND NOT v0only", uid)
	if err != nil {
		return err
	}
	return s.endSilence(ctx, uid, time.Now().Add(maxRestoreTime))
}
