package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// heardBySets are the clusters that have an instance and count as silent when no report set comes.
const heardBySets = `SELECT c.uid FROM workloads w JOIN clusters c ON c.uid = w.clusteruid
	WHERE w.type = ? AND w.id = ? AND w.deletedat IS NULL AND NOT c.v0only`

// HearV0 notes that an agent wrote of instances through v0. That has no heartbeat, so the clusters that have these
// instances are not silent, and do not fall silent either until their next report set: an agent may be turned back to v0.
//
// It writes only if that is new. What it cannot note now it can with the agent's next write.
func (s *Store) HearV0(ctx context.Context, instances []threeport.Instance) error {
	if s.config.StrictV0 {
		return nil
	}
	for _, of := range instances {
		uid, err := first(ctx, s, heardBySets, []any{of.Type, int64(of.ID)}, func(scan scanner) (uid string, err error) {
			err = scan(&uid)
			return uid, err
		})
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err == nil {
			err = s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error { return s.turnToV0(ctx, tx, uid) })
		}
		if err != nil {
			return fmt.Errorf("note that an agent reports by v0: %w", err)
		}
	}
	return nil
}

// turnToV0 takes the cluster's row before its workloads, as report sets and the search for silent clusters do.
func (s *Store) turnToV0(ctx context.Context, tx *sql.Tx, clusterUID string) error {
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
