package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// InstanceCluster is the UID of the cluster that an instance belongs to: the first that reported of it; empty if none
// has. It returns [ErrNotFound] if there is no such instance.
func (s *Store) InstanceCluster(ctx context.Context, instanceType string, id int64) (string, error) {
	var cluster sql.NullString
	query := s.dialect.rebind("SELECT clusteruid FROM workloads WHERE type = ? AND id = ? AND deletedat IS NULL")
	switch err := s.read.QueryRowContext(ctx, query, instanceType, id).Scan(&cluster); {
	case errors.Is(err, sql.ErrNoRows):
		return "", ErrNotFound
	case err != nil:
		return "", fmt.Errorf("read the cluster of an instance: %w", err)
	}
	return cluster.String, nil
}
