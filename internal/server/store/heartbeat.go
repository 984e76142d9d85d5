package store

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
)

// hear notes that the cluster's agent is there, and what it says of itself. It comes first in a transaction, so that the
// sets of one cluster take turns.
func (a *application) hear(ctx context.Context) error {
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
func (a *application) endSilence(ctx context.Context) error {
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
	_, err := tx.ExecContext(ctx, d.rebind("UPDATE workloads SET silent = FALSE, "+saidIsShown+", "+d.changed("workloads")+
		" WHERE clusteruid = ? AND silent AND deletedat IS NULL"), clusterUID)
	return err
}

// saidIsShown assigns status and rank as [shown] does.
var saidIsShown = func() string {
	words, ranks := make([]string, len(statuses)), make([]string, len(statuses))
	var unknownRank string
	for rank, word := range statuses {
		words[rank] = "'" + word + "'"
		ranks[rank] = "WHEN " + words[rank] + " THEN " + strconv.Itoa(rank)
	}
	_, rank := shown(unknown)
	unknownRank = strconv.Itoa(rank)
	return "status = CASE WHEN said IN (" + strings.Join(words, ", ") + ") THEN said ELSE '" + unknown + "' END, " +
		"rank = CASE said " + strings.Join(ranks, " ") + " ELSE " + unknownRank + " END"
}()
