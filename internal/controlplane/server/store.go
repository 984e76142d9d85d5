package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

var (
	errNotFound = errors.New("record not found")
	errConflict = errors.New("another record has this value of a unique field")
)

// Store keeps the rows of all resources. It is safe for concurrent use.
//
// A write is not interrupted when its request ends: it takes a fraction of a
// millisecond, and a finished write has a definite outcome.
type Store struct {
	write, read *sql.DB
	strictV0    bool
	ids         *ids
	statements  map[*resource]*statements
}

// statements of one resource, prepared once.
type statements struct {
	insert, update, remove *sql.Stmt // on write
	get, byUnique          *sql.Stmt // on read; byUnique on write, nil without such a field
}

// Close closes the database. No method may be running or called after it.
func (s *Store) Close() error {
	var errs []error
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			errs = append(errs, db.Close()) // closes the statements as well
		}
	}
	return errors.Join(errs...)
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	return s.read.QueryRowContext(ctx, "SELECT 1").Scan(&one)
}

// prepare makes the tables, the statements and the ID generator.
func (s *Store) prepare(ctx context.Context) error {
	s.statements = make(map[*resource]*statements, len(resources))
	var newest int64
	for _, r := range resources {
		for _, statement := range r.schema(s.strictV0) {
			if _, err := s.write.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("make table %s: %w", r.table(), err)
			}
		}
		var top sql.NullInt64
		if err := s.write.QueryRowContext(ctx, "SELECT MAX(id) FROM "+r.table()).Scan(&top); err != nil {
			return fmt.Errorf("read newest ID of %s: %w", r.table(), err)
		}
		newest = max(newest, top.Int64)
		var err error
		if s.statements[r], err = s.prepareResource(ctx, r); err != nil {
			return fmt.Errorf("prepare statements of %s: %w", r.table(), err)
		}
	}
	s.ids = newIDs(newest)
	return nil
}

func (s *Store) prepareResource(ctx context.Context, r *resource) (*statements, error) {
	sets := make([]string, 0, len(r.fields))
	for _, f := range r.fields {
		sets = append(sets, fmt.Sprintf("%s = COALESCE(?, %[1]s)", f.column()))
	}
	sel := "SELECT " + r.columns() + " FROM " + r.table() + " WHERE deletedat IS NULL AND "
	var errs []error
	prepare := func(db *sql.DB, query string) *sql.Stmt {
		statement, err := db.PrepareContext(ctx, query)
		errs = append(errs, err)
		return statement
	}
	prepared := &statements{
		insert: prepare(s.write, fmt.Sprintf("INSERT INTO %s (%s) VALUES (?, ?, ?, NULL%s) ON CONFLICT DO NOTHING",
			r.table(), r.columns(), strings.Repeat(", ?", len(r.fields)))),
		// A field that was not given is left alone.
		update: prepare(s.write, fmt.Sprintf("UPDATE %s SET updatedat = ?, %s WHERE id = ? AND deletedat IS NULL RETURNING %s",
			r.table(), strings.Join(sets, ", "), r.columns())),
		remove: prepare(s.write, fmt.Sprintf("UPDATE %s SET deletedat = ? WHERE id = ? AND deletedat IS NULL RETURNING %s",
			r.table(), r.columns())),
		get: prepare(s.read, sel+"id = ?"),
	}
	if i, ok := s.unique(r); ok {
		prepared.byUnique = prepare(s.write, sel+r.fields[i].column()+" = ?")
	}
	return prepared, errors.Join(errs...)
}

// unique is the field that identifies a row besides its ID, if there is one.
func (s *Store) unique(r *resource) (index int, ok bool) {
	if s.strictV0 {
		return 0, false
	}
	return r.unique()
}

// create adds a row. If one with the same unique value exists, it returns that
// one and created is false.
func (s *Store) create(ctx context.Context, r *resource, values []any) (o row, created bool, err error) {
	ctx = context.WithoutCancel(ctx)
	for {
		at := now()
		o = row{id: s.ids.next(), createdAt: at, updatedAt: at, values: values}
		result, err := s.statements[r].insert.ExecContext(ctx, append([]any{o.id, at, at}, values...)...)
		if err != nil {
			return row{}, false, err
		}
		if n, err := result.RowsAffected(); err != nil || n == 1 {
			return o, true, err
		}
		i, ok := s.unique(r)
		if !ok {
			continue // another process took the same ID
		}
		o, err = r.scan(s.statements[r].byUnique.QueryRowContext(ctx, values[i]).Scan)
		if !errors.Is(err, sql.ErrNoRows) { // deleted in between: its value is free
			return o, false, err
		}
	}
}

// get returns a row that is not deleted, or errNotFound.
func (s *Store) get(ctx context.Context, r *resource, id int64) (row, error) {
	return found(r.scan(s.statements[r].get.QueryRowContext(ctx, id).Scan))
}

// update sets the values that are not nil, and returns the whole row.
func (s *Store) update(ctx context.Context, r *resource, id int64, values []any) (row, error) {
	args := append([]any{now()}, values...)
	o, err := found(r.scan(s.statements[r].update.QueryRowContext(context.WithoutCancel(ctx), append(args, id)...).Scan))
	if isUniqueViolation(err) {
		return row{}, errConflict
	}
	return o, err
}

// remove marks a row as deleted, and returns it so. Rows that refer to it stay.
func (s *Store) remove(ctx context.Context, r *resource, id int64) (row, error) {
	return found(r.scan(s.statements[r].remove.QueryRowContext(context.WithoutCancel(ctx), now(), id).Scan))
}

// found makes errNotFound of no rows.
func found(o row, err error) (row, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return row{}, errNotFound
	}
	return o, err
}
