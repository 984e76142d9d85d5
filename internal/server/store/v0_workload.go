package store

import (
	"context"
	"database/sql"
	"fmt"
)

// addToBoard makes the board's row of a new instance.
func (s *Store) insertWorkload(ctx context.Context, tx *sql.Tx, r *Resource, o Row) error {
	name, _ := o.Values[instanceName].(string)
	said, _ := o.Values[instanceStatus].(string)
	status, rank := displayedStatus(said)
	var since int64 // unknown, unless something was said
	if said != "" {
		since = o.CreatedAt
	}
	_, err := tx.ExecContext(ctx, s.dialect.rebind(
		"INSERT INTO workloads (type, id, name, said, since, saidat, status, rank, changedat) VALUES (?, ?, ?, ?, ?, ?, ?, ?, "+s.dialect.now()+")"),
		r.Object, o.ID, name, said, since, since, status, rank)
	if err != nil {
		return fmt.Errorf("add workload to the board: %w", err)
	}
	return nil
}

// changeOnBoard brings the values that were given to the board's row. What was known of an earlier status does not hold
// for another one; while the cluster is silent, what is shown stays Unknown.
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
		return nil // nothing of the board's
	}
	_, err := tx.ExecContext(ctx, s.dialect.rebind("UPDATE workloads SET "+set+s.dialect.changed("workloads")+" WHERE type = ? AND id = ?"),
		append(args, r.Object, o.ID)...)
	if err != nil {
		return fmt.Errorf("change workload on the board: %w", err)
	}
	return nil
}

// removeFromBoard marks the board's row as deleted, as the instance is.
func (s *Store) deleteWorkload(ctx context.Context, tx *sql.Tx, r *Resource, o Row) error {
	_, err := tx.ExecContext(ctx, s.dialect.rebind("UPDATE workloads SET deletedat = ?, "+s.dialect.changed("workloads")+" WHERE type = ? AND id = ?"),
		*o.DeletedAt, r.Object, o.ID)
	if err != nil {
		return fmt.Errorf("remove workload from the board: %w", err)
	}
	return nil
}
