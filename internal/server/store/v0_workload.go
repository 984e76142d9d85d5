package store

import (
	"context"
	"database/sql"
	"fmt"
)

// insertWorkload inserts the workloads row of a new instance.
func (s *Store) insertWorkload(ctx context.Context, tx *sql.Tx, r *Resource, o Row) error {
	name, _ := o.Values[instanceName].(string)
	said, _ := o.Values[instanceStatus].(string)
	status, rank := displayedStatus(said)
	var since int64 // unknown without a status
	if said != "" {
		since = o.CreatedAt
	}
	_, err := tx.ExecContext(ctx, s.dialect.rebind(
		"INSERT INTO workloads (type, id, name, said, since, saidat, status, rank, changedat) VALUES (?, ?, ?, ?, ?, ?, ?, ?, "+s.dialect.now()+")"),
		r.Object, o.ID, name, said, since, since, status, rank)
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
	if said, ok := given[instanceStatus].(string); ok {
		status, rank := displayedStatus(said)
		set += `since = CASE WHEN said <> ? THEN ? ELSE since END,
			reason = CASE WHEN said <> ? THEN '' ELSE reason END,
			cause = CASE WHEN said <> ? THEN '' ELSE cause END,
			said = ?, saidat = ?,
			status = CASE WHEN silent THEN status ELSE ? END,
			rank = CASE WHEN silent THEN rank ELSE ? END, `
		args = append(args, said, o.UpdatedAt, said, said, said, o.UpdatedAt, status, rank)
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
