package store

import (
	"context"
	"database/sql"
	"fmt"
)

// insertWorkload inserts the workloads row of a new instance, which has no cluster if the UID is empty.
func (s *Store) insertWorkload(ctx context.Context, tx *sql.Tx, r *Resource, o Row, clusterUID string) error {
	name, _ := o.Values[instanceName].(string)
	reported, _ := o.Values[instanceStatus].(string)
	status, rank := displayedStatus(reported)
	var since int64 // unknown without a status
	if reported != "" {
		since = o.CreatedAt
	}
	_, err := tx.ExecContext(ctx, s.dialect.rebind(
		"INSERT INTO workloads (type, id, clusteruid, name, said, since, saidat, status, rank, changedat) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, "+s.dialect.now()+")"),
		r.Object, o.ID, nullable(clusterUID), name, reported, since, since, status, rank)
	if err != nil {
		return fmt.Errorf("insert workload: %w", err)
	}
	return nil
}

// updateWorkload copies the given values to the workloads row. Reason, cause and since of another status are reset.
// While the cluster is silent, the displayed status stays Unknown.
func (s *Store) updateWorkload(ctx context.Context, tx *sql.Tx, r *Resource, o Row, given []any) error {
	set, args := "", []any{}
	if name, ok := given[instanceName].(string); ok {
		set, args = "name = ?, ", append(args, name)
	}
	if reported, ok := given[instanceStatus].(string); ok {
		status, rank := displayedStatus(reported)
		set += `since = CASE WHEN said <> ? THEN ? ELSE since END,
			reason = CASE WHEN said <> ? THEN '' ELSE reason END,
			cause = CASE WHEN said <> ? THEN '' ELSE cause END,
			causesince = CASE WHEN said <> ? THEN 0 ELSE causesince END,
			said = ?, saidat = ?,
			status = CASE WHEN silent THEN status ELSE ? END,
			rank = CASE WHEN silent THEN rank ELSE ? END, `
		args = append(args, reported, o.UpdatedAt, reported, reported, reported, reported, o.UpdatedAt, status, rank)
	}
	if len(args) == 0 {
		return nil // no copied field was given
	}
	_, err := tx.ExecContext(ctx, s.dialect.rebind("UPDATE workloads SET "+set+s.dialect.changed("workloads")+" WHERE type = ? AND id = ?"),
		append(args, r.Object, o.ID)...)
	if err != nil {
		return fmt.Errorf("update workload: %w", err)
	}
	return nil
}

// deleteWorkload marks the workloads row as deleted.
func (s *Store) deleteWorkload(ctx context.Context, tx *sql.Tx, r *Resource, o Row) error {
	_, err := tx.ExecContext(ctx, s.dialect.rebind("UPDATE workloads SET deletedat = ?, "+s.dialect.changed("workloads")+" WHERE type = ? AND id = ?"),
		*o.DeletedAt, r.Object, o.ID)
	if err != nil {
		return fmt.Errorf("delete workload: %w", err)
	}
	return nil
}
