package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// scanner reads the columns of one row.
type scanner = func(targets ...any) error

// readPool is a pool of connections that run queries only.
type readPool struct {
	*sql.DB
	db *database
}

// reading limits the time of a statement that reads, including all its rows. PostgreSQL itself ends a slow statement,
// but over a dead connection only this timeout ends the wait early.
func (db *database) reading(ctx context.Context) (context.Context, context.CancelFunc) {
	if db.addressHasTimeout {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, db.config.ReadTimeout)
}

// search runs a search, which reads texts of many rows. It returns [ErrSearchTimeout] after Config.SearchTimeout.
func (db *database) search(ctx context.Context, run func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, db.config.SearchTimeout)
	defer cancel()
	err := run(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", ErrSearchTimeout, err)
	}
	return err
}

// collect runs a query that reads, and converts each row with read.
func collect[T any](ctx context.Context, pool *readPool, query string, args []any, read func(scanner) (T, error)) ([]T, error) {
	ctx, cancel := pool.db.reading(ctx)
	defer cancel()
	var all []T
	err := queryRows(ctx, pool.QueryContext, pool.db.dialect.rebind(query), args, func(scan scanner) error {
		one, err := read(scan)
		all = append(all, one)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// maxPageBytes limits the rows that a query of a page returns, in bytes of JSON: one page or chunk has one more row at most.
const maxPageBytes = 1 << 20

// maxEscape is the size of the longest escape of a byte in a JSON string, as of "<".
const maxEscape = len(`\u003c`)

// MaxAnswerBytes limits a page with its last item, in bytes of JSON. No item has more than four long texts.
const MaxAnswerBytes int64 = maxPageBytes + 4*int64(maxEscape)*maxTextBytes

// jsonBytes is about the size of texts as JSON strings, and never less. Escaped, a text may have several times its size.
func jsonBytes(texts ...string) (n int) {
	for _, text := range texts {
		n += len(text) + len(`""`)
		for i := range len(text) {
			switch c := text[i]; {
			case c < ' ', c == '<', c == '>', c == '&':
				n += maxEscape - 1
			case c == '"', c == '\\', c >= utf8.RuneSelf: // of the letters beyond ASCII, few have escapes
				n++
			}
		}
	}
	return n
}

// errPageFull ends a query.
var errPageFull = errors.New("the page is full")

// collectPage is like collect, and ends after the row with which all rows have maxPageBytes. Then full is true.
func collectPage[T any](
	ctx context.Context, pool *readPool, query string, args []any, read func(scanner) (T, error), size func(T) int,
) (page []T, full bool, err error) {
	ctx, cancel := pool.db.reading(ctx)
	defer cancel()
	bytes := 0
	err = queryRows(ctx, pool.QueryContext, pool.db.dialect.rebind(query), args, func(scan scanner) error {
		one, err := read(scan)
		if err != nil {
			return err
		}
		page = append(page, one)
		if bytes += size(one); bytes >= maxPageBytes {
			return errPageFull
		}
		return nil
	})
	if full = errors.Is(err, errPageFull); err != nil && !full {
		return nil, false, err
	}
	return page, full, nil
}

// first reads the only row of a query. It returns [ErrNotFound] if there is none.
func first[T any](ctx context.Context, pool *readPool, query string, args []any, read func(scanner) (T, error)) (T, error) {
	ctx, cancel := pool.db.reading(ctx)
	defer cancel()
	one, err := read(pool.QueryRowContext(ctx, pool.db.dialect.rebind(query), args...).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	return one, err
}

// number reads the only column of a row.
func number(scan scanner) (n int64, err error) {
	err = scan(&n)
	return n, err
}

// nonZeroTime converts a column that stores an unknown time as 0.
func nonZeroTime(micros int64) sql.NullInt64 { return sql.NullInt64{Int64: micros, Valid: micros != 0} }

// now is the current time as it is stored: microseconds since 1970.
func now() int64 { return time.Now().UnixMicro() }

// fromMicros converts a stored time.
func fromMicros(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// optionalTime converts a stored time that may be NULL.
func optionalTime(micros sql.NullInt64) *time.Time {
	if !micros.Valid {
		return nil
	}
	return new(fromMicros(micros.Int64))
}

// queryFunc is QueryContext of sql.DB and sql.Tx.
type queryFunc func(ctx context.Context, text string, args ...any) (*sql.Rows, error)

// queryRows runs a query and calls row for each row of its result.
func queryRows(ctx context.Context, query queryFunc, text string, args []any, row func(scanner) error) error {
	rows, err := query(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err reports the same error
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// whereClause is a conjunction of conditions with their arguments.
type whereClause struct {
	terms []string
	args  []any
}

func (c *whereClause) add(term string, args ...any) {
	c.terms = append(c.terms, term)
	c.args = append(c.args, args...)
}

// clone returns a copy; terms added to it do not change c.
func (c whereClause) clone() whereClause {
	return whereClause{terms: slices.Clip(c.terms), args: slices.Clip(c.args)}
}

func (c whereClause) String() string { return strings.Join(c.terms, " AND ") }

// placeholders is a list of n placeholders, as for IN.
func placeholders(n int) string { return "(?" + strings.Repeat(", ?", n-1) + ")" }

// optionalMicros converts a time for storage; nil becomes NULL.
func optionalMicros(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	return new(t.UnixMicro())
}

// microsOf converts any time to microseconds, limited to the range of int64.
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

// sleep waits for d. It reports false if ctx ended first.
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

// databaseTime is the current time by the database's clock, in microseconds. All changedat columns use this clock.
func (db *database) databaseTime(ctx context.Context) (int64, error) {
	return first(ctx, db.reserved, "SELECT "+db.dialect.now(), nil, number)
}
