package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// ReleaseCluster forgets a cluster that is no more, or was built anew under another UID: its workloads are nobody's, so
// that the next cluster which reports of them has them, and show what was said last. It returns how many they were, or
// [ErrNotFound] if no such cluster has been heard.
//
// What the next cluster says counts from the start, since versions of two clusters cannot be compared. What was deleted
// stays with this one. It takes several transactions; the cluster's row goes in the last, so that it can be repeated. A
// cluster that still reports is back with that.
func (s *Store) ReleaseCluster(ctx context.Context, uid string) (workloads int64, err error) {
	if !storable(uid) {
		return 0, fmt.Errorf("release cluster: %w", ErrNotFound)
	}
	for first := true; ctx.Err() == nil; first = false {
		var released int64
		err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			released, err = s.releaseStep(ctx, tx, uid)
			return err
		})
		if errors.Is(err, ErrNotFound) && !first { // another request has done the rest
			return workloads, nil
		}
		if err != nil {
			return workloads, fmt.Errorf("release cluster: %w", err)
		}
		if workloads += released; released < stepRows {
			return workloads, nil
		}
	}
	return workloads, ctx.Err()
}

// releaseStep releases some of a cluster's workloads, and forgets the cluster with the last. Its first statement holds
// the cluster's row, which a report set writes first, so that the two take turns.
func (s *Store) releaseStep(ctx context.Context, tx *sql.Tx, uid string) (released int64, err error) {
	d := s.dialect
	held, err := tx.ExecContext(ctx, d.rebind("UPDATE clusters SET "+d.changed("clusters")+" WHERE uid = ?"), uid)
	if err != nil {
		return 0, err
	}
	if known, err := held.RowsAffected(); err != nil {
		return 0, err
	} else if known == 0 {
		return 0, ErrNotFound
	}
	ids, err := s.releaseWorkloads(ctx, tx, uid)
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		if id.kind != threeport.TypeWorkloadInstance {
			continue
		}
		if _, err := tx.ExecContext(ctx, d.rebind("UPDATE workload_resource_instances SET objectuid = NULL, objectversion = NULL, "+
			"objectdeleted = NULL WHERE workloadinstanceid = ?"), id.id); err != nil {
			return 0, err
		}
	}
	if len(ids) < stepRows {
		_, err = tx.ExecContext(ctx, d.rebind("DELETE FROM clusters WHERE uid = ?"), uid)
	}
	return int64(len(ids)), err
}

// releaseWorkloads makes a step's workloads nobody's.
func (s *Store) releaseWorkloads(ctx context.Context, tx *sql.Tx, uid string) (released []instanceKey, err error) {
	rows, err := tx.QueryContext(ctx, s.dialect.rebind("UPDATE workloads SET clusteruid = NULL, saidversion = 0, treeversion = 0, "+
		"silent = FALSE, "+saidIsShown+", "+s.dialect.changed("workloads")+
		` WHERE clusteruid = ? AND deletedat IS NULL AND (type, id) IN (
			SELECT w.type, w.id FROM workloads w WHERE w.clusteruid = ? AND w.deletedat IS NULL LIMIT ?) RETURNING type, id`),
		uid, uid, stepRows)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // its error is that of Err
	for rows.Next() {
		var of instanceKey
		if err := rows.Scan(&of.kind, &of.id); err != nil {
			return nil, err
		}
		released = append(released, of)
	}
	return released, rows.Err()
}
