package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/threeport/threeport-agent/internal/threeport"
)

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
