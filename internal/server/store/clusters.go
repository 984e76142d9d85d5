package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/threeport/threeport-agent/internal/threeport"
)

const clustersQuery = "SELECT c.uid, c.name, c.agentversion, c.agenttime, c.delayseconds, c.pending, c.deadletters, c.dropped, c.heardat, c.silent, " +
	"(SELECT COUNT(*) FROM workloads w WHERE w.clusteruid = c.uid AND w.deletedat IS NULL) " +
	"FROM clusters c ORDER BY c.namekey, c.uid"

// Clusters returns all clusters whose agents have been heard, by name.
func (s *Store) Clusters(ctx context.Context) ([]threeport.Cluster, error) {
	clusters, err := collect(ctx, s, clustersQuery, nil, scanCluster)
	if err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	return append([]threeport.Cluster{}, clusters...), nil
}

func scanCluster(scan scanner) (threeport.Cluster, error) {
	var (
		c                  threeport.Cluster
		agentTime, heardAt int64
	)
	err := scan(&c.ClusterUID, &c.ClusterName, &c.Version, &agentTime, &c.DelaySeconds, &c.Pending, &c.DeadLetters, &c.Dropped,
		&heardAt, &c.Silent, &c.Workloads)
	c.Time, c.HeardAt = fromMicros(agentTime), fromMicros(heardAt)
	return c, err
}

// ReleaseCluster forgets a cluster that is no more, or was built anew under another UID: its workloads are nobody's, so
// that the next cluster which reports of them has them, and show what was said last. It returns how many they were, or
// [ErrNotFound] if no such cluster has been heard.
//
// What the next cluster says counts from the start, since versions of two clusters cannot be compared. What was deleted
// stays with this one. It takes several transactions; the cluster's row goes in the last, so that it can be repeated. A
// cluster that still reports is back with that.
func (s *Store) DeleteCluster(ctx context.Context, uid string) (workloads int64, err error) {
	if !storable(uid) {
		return 0, fmt.Errorf("release cluster: %w", ErrNotFound)
	}
	for first := true; ctx.Err() == nil; first = false {
		var released int64
		err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			released, err = s.deleteClusterStep(ctx, tx, uid)
			return err
		})
		if errors.Is(err, ErrNotFound) && !first { // another request has done the rest
			return workloads, nil
		}
		if err != nil {
			return workloads, fmt.Errorf("release cluster: %w", err)
		}
		if workloads += released; released < maxRowsPerTx {
			return workloads, nil
		}
	}
	return workloads, ctx.Err()
}

// releaseStep releases some of a cluster's workloads, and forgets the cluster with the last. Its first statement holds
// the cluster's row, which a report set writes first, so that the two take turns.
func (s *Store) deleteClusterStep(ctx context.Context, tx *sql.Tx, uid string) (released int64, err error) {
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
	ids, err := s.detachWorkloads(ctx, tx, uid)
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
	if len(ids) < maxRowsPerTx {
		_, err = tx.ExecContext(ctx, d.rebind("DELETE FROM clusters WHERE uid = ?"), uid)
	}
	return int64(len(ids)), err
}

// detachWorkloads removes the cluster from up to maxRowsPerTx of its workloads.
func (s *Store) detachWorkloads(ctx context.Context, tx *sql.Tx, uid string) (detached []instanceKey, err error) {
	err = queryRows(ctx, tx.QueryContext, s.dialect.rebind("UPDATE workloads SET clusteruid = NULL, saidversion = 0, treeversion = 0, "+
		"silent = FALSE, "+restoreReportedStatus+", "+s.dialect.changed("workloads")+
		` WHERE clusteruid = ? AND deletedat IS NULL AND (type, id) IN (
			SELECT w.type, w.id FROM workloads w WHERE w.clusteruid = ? AND w.deletedat IS NULL LIMIT ?) RETURNING type, id`),
		[]any{uid, uid, maxRowsPerTx}, func(scan scanner) error {
			key, err := scanInstanceKey(scan)
			detached = append(detached, key)
			return err
		})
	return detached, err
}

// InstanceCluster is the UID of the cluster that an instance belongs to: the first that reported of it; empty if none
// has. One that was deleted stays its cluster's, since rows that refer to it stay too. It returns [ErrNotFound] if there
// is no such instance, or if it was deleted before a cluster had it, so that none will.
func (s *Store) InstanceCluster(ctx context.Context, instanceType string, id int64) (string, error) {
	cluster, err := first(ctx, s, "SELECT clusteruid FROM workloads WHERE type = ? AND id = ? AND (deletedat IS NULL OR clusteruid IS NOT NULL)",
		[]any{instanceType, id}, func(scan scanner) (uid sql.NullString, err error) {
			err = scan(&uid)
			return uid, err
		})
	if err != nil {
		return "", fmt.Errorf("read the cluster of an instance: %w", err)
	}
	return cluster.String, nil
}

// ResourceOwner is the instance that a WorkloadResourceInstance belongs to, also if either was deleted. It returns
// [ErrNotFound] if there is no such row.
func (s *Store) ResourceOwner(ctx context.Context, id int64) (threeport.Instance, error) {
	of, err := first(ctx, s, "SELECT workloadinstanceid FROM workload_resource_instances WHERE id = ?", []any{id}, number)
	if err != nil {
		return threeport.Instance{}, fmt.Errorf("read the instance of a resource: %w", err)
	}
	return threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: threeport.ID(of)}, nil
}
