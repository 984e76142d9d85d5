package store

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"
	"time"
)

// scanner reads the columns of one row.
type scanner = func(targets ...any) error

// reading bounds a statement that reads, with all its rows. A PostgreSQL that is there gives it up by itself; one that a
// connection leads to no more would be waited for until the operating system notices, which may take a quarter of an hour,
// and whoever asks may have more patience than that.
func (s *Store) reading(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.dialect == sqliteDialect || s.addressHasTimeout {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.config.ReadTimeout)
}

// collect runs a query that reads, and converts each row with read.
func collect[T any](ctx context.Context, s *Store, query string, args []any, read func(scanner) (T, error)) ([]T, error) {
	ctx, cancel := s.reading(ctx)
	defer cancel()
	var all []T
	err := queryRows(ctx, s.read.QueryContext, s.dialect.rebind(query), args, func(scan scanner) error {
		one, err := read(scan)
		all = append(all, one)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
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
func nonZeroTime(micros int64) sql.NullInt64 { return sql.NullInt64{Int64: micros, Valid: micros != 0} }

// now is the current time as it is stored, in microseconds since 1970.
func now() int64 { return time.Now().UnixMicro() }

// fromMicros is a stored time.
func fromMicros(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// optionalTime is a stored time that may be NULL.
func optionalTime(micros sql.NullInt64) *time.Time {
	if !micros.Valid {
		return nil
	}
	return new(fromMicros(micros.Int64))
}

// queryFunc is a method of sql.DB and sql.Tx.
type queryFunc func(ctx context.Context, text string, args ...any) (*sql.Rows, error)

// returned runs a query, and calls row for each row of its result.
func queryRows(ctx context.Context, query queryFunc, text string, args []any, row func(scanner) error) error {
	rows, err := query(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // its error is that of Err
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// conditions are what follows WHERE: all have to hold.
type whereClause struct {
	terms []string
	args  []any
}

func (c *whereClause) add(term string, args ...any) {
	c.terms = append(c.terms, term)
	c.args = append(c.args, args...)
}

// clone returns a copy to which terms can be added without a change of c.
func (c whereClause) clone() whereClause {
	return whereClause{terms: slices.Clip(c.terms), args: slices.Clip(c.args)}
}

func (c whereClause) String() string { return strings.Join(c.terms, " AND ") }

// marks is a list of n arguments, as IN has it.
func placeholders(n int) string { return "(?" + strings.Repeat(", ?", n-1) + ")" }

// optionalMicros is a time to be stored; nil for none.
func optionalMicros(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	return new(t.UnixMicro())
}

// microsOf is a time in microseconds; one that these cannot hold is the nearest that they can.
func microsOf(t time.Time) int64 {
	switch year := t.Year(); {
	case year < -290000:
		return math.MinInt64
	case year > 290000:
		return math.MaxInt64
	default:
		return t.UnixMicro()
	}
}

// sleep waits for a time, and tells whether ctx lets it go on.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// databaseTime is the clock that changedat is of, in microseconds.
func (s *Store) databaseTime(ctx context.Context) (int64, error) {
	return first(ctx, s, "SELECT "+s.dialect.now(), nil, number)
}
