package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

const clustersQuery = "SELECT c.uid, c.name, c.agentversion, c.agenttime, c.delayseconds, c.pending, c.deadletters, c.dropped, c.heardat, c.silent, " +
	"(SELECT COUNT(*) FROM workloads w WHERE w.clusteruid = c.uid AND w.deletedat IS NULL) " +
	"FROM clusters c ORDER BY c.namekey, c.uid"

// Clusters returns all clusters that have sent a report set, by name.
func (s *Store) Clusters(ctx context.Context) ([]threeport.Cluster, error) {
	clusters, err := collect(ctx, s.read, clustersQuery, nil, scanCluster)
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

// DeleteCluster deletes a cluster that no longer exists, or was rebuilt with another UID. Its workloads keep their last
// status and lose their cluster, so that another cluster can have them. It returns their number, or
// [ErrNotFound] if there is no such cluster.
//
// Versions of two clusters are not comparable, so the stored versions are forgotten. Deleted workloads keep the cluster.
// The deletion takes several transactions; the last one deletes the cluster's row, so an interrupted deletion can be
// repeated. A cluster that still reports is created again.
func (s *Store) DeleteCluster(ctx context.Context, uid string) (workloads int64, err error) {
	if !storable(uid) {
		return 0, fmt.Errorf("delete cluster: %w", ErrNotFound)
	}
	err = s.forgetObjectsOfCluster(ctx, uid)
	for more := true; err == nil && more; {
		var released int64
		begin := time.Now()
		err = s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			released, more, err = s.releaseWorkloads(ctx, tx, uid)
			return err
		})
		if errors.Is(err, ErrNotFound) && workloads > 0 { // a concurrent request deleted the rest
			return workloads, nil
		}
		workloads += released
		if err == nil && more {
			err = letOthersWrite(ctx, begin)
		}
	}
	if err == nil {
		err = s.forgetDefinitions(ctx, "d.clusteruid = ?", uid)
	}
	if err == nil {
		err = s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error { return s.deleteClusterRow(ctx, tx, uid) })
	}
	if err != nil {
		return workloads, fmt.Errorf("delete cluster: %w", err)
	}
	return workloads, nil
}

// forgetObjectsOfCluster calls forgetObjects for each workload of a cluster. One call for all would sort the resources of all workloads for
// each transaction.
func (s *Store) forgetObjectsOfCluster(ctx context.Context, uid string) error {
	ids, err := collect(ctx, s.read, "SELECT w.id FROM workloads w WHERE w.clusteruid = ? AND w.type = ? AND w.deletedat IS NULL",
		[]any{uid, threeport.TypeWorkloadInstance}, number)
	for _, id := range ids {
		if err == nil {
			err = s.forgetObjects(ctx, "r.workloadinstanceid = ?", id)
		}
	}
	return err
}

// releaseWorkloads detaches some of a cluster's workloads, and reports whether there are more. Its first statement locks the cluster's
// row, so it cannot run at the same time as a report set.
func (s *Store) releaseWorkloads(ctx context.Context, tx *sql.Tx, uid string) (released int64, more bool, err error) {
	d := s.dialect
	held, err := tx.ExecContext(ctx, d.rebind("UPDATE clusters SET "+d.changed("clusters")+" WHERE uid = ?"), uid)
	if err != nil {
		return 0, false, err
	}
	if known, err := held.RowsAffected(); err != nil {
		return 0, false, err
	} else if known == 0 {
		return 0, false, ErrNotFound
	}
	ids, more, err := s.detachWorkloads(ctx, tx, uid)
	if err != nil {
		return 0, false, err
	}
	for _, id := range ids {
		if id.kind != threeport.TypeWorkloadInstance {
			continue
		}
		if err := s.forgetObjectsInTx(ctx, tx, id.id); err != nil {
			return 0, false, err
		}
	}
	return int64(len(ids)), more, nil
}

// deleteClusterRow deletes the row of a cluster, which a concurrent request may have done.
func (s *Store) deleteClusterRow(ctx context.Context, tx *sql.Tx, uid string) error {
	d := s.dialect
	if _, err := tx.ExecContext(ctx, d.rebind("DELETE FROM silences WHERE clusteruid = ?"), uid); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, d.rebind("DELETE FROM clusters WHERE uid = ?"), uid)
	return err
}

// detachWorkloads removes the cluster from some of its workloads, and reports whether there are more.
func (s *Store) detachWorkloads(ctx context.Context, tx *sql.Tx, uid string) (detached []instanceKey, more bool, err error) {
	chosen, more, err := s.someWorkloads(ctx, tx, uid, "TRUE")
	if err != nil {
		return nil, false, err
	}
	err = queryRows(ctx, tx.QueryContext, s.dialect.rebind("UPDATE workloads AS w SET clusteruid = NULL, saidversion = 0, treeversion = 0, "+
		"silent = FALSE, "+restoreReportedStatus+", "+s.dialect.changed("w")+" WHERE "+chosen.condition+" RETURNING type, id"),
		chosen.args, func(scan scanner) error {
			key, err := scanInstanceKey(scan)
			detached = append(detached, key)
			return err
		})
	return detached, more, err
}

// workloadRange is a condition on workloads w for some of a cluster's, in the order of an index.
type workloadRange struct {
	condition string
	args      []any
}

// someWorkloads selects workloads w of a cluster that match a condition, within the limits of a transaction. It reports whether there are
// more. The caller's transaction changes them, so that they no longer match.
func (s *Store) someWorkloads(ctx context.Context, tx *sql.Tx, uid, condition string) (chosen workloadRange, more bool, err error) {
	type row struct {
		name  string
		key   instanceKey
		bytes int64
	}
	condition = "w.clusteruid = ? AND w.deletedat IS NULL AND " + condition
	var found []row
	err = queryRows(ctx, tx.QueryContext, s.dialect.rebind("SELECT w.name, w.type, w.id, "+bytesOf("w", "name", "reason", "cause")+
		" FROM workloads w WHERE "+condition+" ORDER BY w.name, w.type, w.id LIMIT ?"),
		[]any{uid, maxRowsPerTx}, func(scan scanner) error {
			var r row
			err := scan(&r.name, &r.key.kind, &r.key.id, &r.bytes)
			found = append(found, r)
			return err
		})
	n := prefixWithin(maxBytesPerTx, found, func(r row) int64 { return r.bytes })
	if err != nil || n == 0 {
		return workloadRange{"FALSE", nil}, false, err
	}
	last := found[n-1]
	chosen = workloadRange{condition + " AND (w.name, w.type, w.id) <= (?, ?, ?)", []any{uid, last.name, last.key.kind, last.key.id}}
	return chosen, n < len(found) || n == maxRowsPerTx, nil
}

// InstanceCluster returns the UID of the cluster that an instance belongs to: the one that it was assigned to, or the first
// that reported it; empty if there is none. A deleted instance keeps its cluster, since rows may still refer to it. It
// returns [ErrNotFound] if the instance does not exist, or was deleted without a cluster.
func (s *Store) InstanceCluster(ctx context.Context, instanceType string, id int64) (string, error) {
	cluster, err := first(ctx, s.reserved, "SELECT clusteruid FROM workloads WHERE type = ? AND id = ? AND (deletedat IS NULL OR clusteruid IS NOT NULL)",
		[]any{instanceType, id}, func(scan scanner) (uid sql.NullString, err error) {
			err = scan(&uid)
			return uid, err
		})
	if err != nil {
		return "", fmt.Errorf("read cluster of instance: %w", err)
	}
	return cluster.String, nil
}

// ResourceOwner returns the instance that a WorkloadResourceInstance belongs to, even if either is deleted. It returns
// [ErrNotFound] if there is no such row.
func (s *Store) ResourceOwner(ctx context.Context, id int64) (threeport.Instance, error) {
	of, err := first(ctx, s.reserved, "SELECT workloadinstanceid FROM workload_resource_instances WHERE id = ?", []any{id}, number)
	if err != nil {
		return threeport.Instance{}, fmt.Errorf("read instance of resource: %w", err)
	}
	return threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: threeport.ID(of)}, nil
}
