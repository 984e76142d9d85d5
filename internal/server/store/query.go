package store

import (
	"context"
	"database/sql"
	"errors"
)

// scanner reads the columns of one row.
type scanner = func(targets ...any) error

// reading bounds a statement that reads, with all its rows. A PostgreSQL that is there gives it up by itself; one that a
// connection leads to no more would be waited for until the operating system notices, which may take a quarter of an hour,
// and whoever asks may have more patience than that.
func (s *Store) reading(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.dialect == sqliteDialect || s.patient {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.config.ReadTimeout)
}

// collect reads all rows of a query, each by read.
func collect[T any](ctx context.Context, s *Store, query string, args []any, read func(scanner) (T, error)) ([]T, error) {
	ctx, cancel := s.reading(ctx)
	defer cancel()
	rows, err := s.read.QueryContext(ctx, s.dialect.rebind(query), args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // its error is that of Err
	var all []T
	for rows.Next() {
		one, err := read(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// first reads the only row of a query; [ErrNotFound] if there is none.
func first[T any](ctx context.Context, s *Store, query string, args []any, read func(scanner) (T, error)) (T, error) {
	ctx, cancel := s.reading(ctx)
	defer cancel()
	one, err := read(s.read.QueryRowContext(ctx, s.dialect.rebind(query), args...).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	return one, err
}

// number is the only column of a row.
func number(scan scanner) (n int64, err error) {
	err = scan(&n)
	return n, err
}

// knownTime is a time where 0 stands for one that is not known.
func knownTime(micros int64) sql.NullInt64 { return sql.NullInt64{Int64: micros, Valid: micros != 0} }
