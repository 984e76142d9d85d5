package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
)

// column is one column of the input rows of a bulk statement.
type column struct {
	name    string
	sqlType string // its type in PostgreSQL
	// values is a slice with one element per row: one array argument in PostgreSQL.
	values any
	// value returns the value of one row: one argument in SQLite.
	value func(row int) any
}

// columnOf builds a column with one value per row.
func columnOf[R, V any](name, kind string, rows []R, of func(R) V) column {
	values := make([]V, len(rows))
	for i, row := range rows {
		values[i] = of(row)
	}
	return column{name, kind, values, func(i int) any { return values[i] }}
}

func texts[R any](name string, rows []R, of func(R) string) column {
	return columnOf(name, "TEXT", rows, of)
}

// optionalTexts are NULL where of returns nil.
func optionalTexts[R any](name string, rows []R, of func(R) *string) column {
	return columnOf(name, "TEXT", rows, of)
}

func integers[R any](name string, rows []R, of func(R) int64) column {
	return columnOf(name, "BIGINT", rows, of)
}

// optionalIntegers are NULL where of returns nil.
func optionalIntegers[R any](name string, rows []R, of func(R) *int64) column {
	return columnOf(name, "BIGINT", rows, of)
}

func booleans[R any](name string, rows []R, of func(R) bool) column {
	return columnOf(name, "BOOLEAN", rows, of)
}

// bulk is a statement about many input rows, which it reads from the common table expression x. text follows the WITH
// clause of x; args are the arguments of text.
//
// PostgreSQL gets all rows in one statement, with one array per column, so neither the text nor the number of round
// trips depends on the number of rows. SQLite gets them in batches of a few fixed sizes, so its statements can be
// prepared once.
type bulk struct {
	text    string
	columns []column
	rows    int
	args    []any
}

// sqliteBatchSizes are the batch sizes for SQLite. Measured: larger batches are not faster.
var sqliteBatchSizes = []int{64, 8, 1}

// execBulk runs a bulk statement in tx and calls row for each returned row. row may be nil if there are none.
func (db *database) execBulk(ctx context.Context, tx *sql.Tx, b bulk, row func(scanner) error) error {
	if b.rows == 0 {
		return nil
	}
	if db.dialect == postgresDialect {
		return queryRows(ctx, tx.QueryContext, db.dialect.rebind(b.arrayQuery()), b.arrayArgs(), row)
	}
	done := 0
	for _, size := range sqliteBatchSizes {
		for ; b.rows-done >= size; done += size {
			if err := queryRows(ctx, db.prepared.queryIn(tx), b.valuesQuery(size), b.valuesArgs(done, size), row); err != nil {
				return err
			}
		}
	}
	return nil
}

// readBulk runs a bulk query over few rows outside of a transaction.
func (db *database) readBulk(ctx context.Context, pool *readPool, b bulk, row func(scanner) error) error {
	ctx, cancel := db.reading(ctx)
	defer cancel()
	switch {
	case b.rows == 0:
		return nil
	case db.dialect == postgresDialect:
		return queryRows(ctx, pool.QueryContext, db.dialect.rebind(b.arrayQuery()), b.arrayArgs(), row)
	default:
		return queryRows(ctx, pool.QueryContext, b.valuesQuery(b.rows), b.valuesArgs(0, b.rows), row)
	}
}

// withHead is the beginning of the WITH clause.
func (b bulk) withHead() string {
	names := make([]string, len(b.columns))
	for i, c := range b.columns {
		names[i] = c.name
	}
	return "WITH x (" + strings.Join(names, ", ") + ") AS "
}

// arrayQuery is the statement with one placeholder per column.
func (b bulk) arrayQuery() string {
	arrays := make([]string, len(b.columns))
	for i, c := range b.columns {
		arrays[i] = "CAST(? AS " + c.sqlType + "[])"
	}
	return b.withHead() + "(SELECT * FROM unnest(" + strings.Join(arrays, ", ") + ")) " + b.text
}

// arrayArgs are the arguments of arrayQuery.
func (b bulk) arrayArgs() []any {
	args := make([]any, 0, len(b.columns)+len(b.args))
	for _, c := range b.columns {
		args = append(args, c.values)
	}
	return append(args, b.args...)
}

// valuesQuery is the statement with one placeholder per value of this number of rows.
func (b bulk) valuesQuery(rows int) string {
	tuple := placeholders(len(b.columns))
	return b.withHead() + "(VALUES " + tuple + strings.Repeat(", "+tuple, rows-1) + ") " + b.text
}

// valuesArgs are the arguments of valuesQuery for some of the rows.
func (b bulk) valuesArgs(from, rows int) []any {
	args := make([]any, 0, rows*len(b.columns)+len(b.args))
	for i := from; i < from+rows; i++ {
		for _, c := range b.columns {
			args = append(args, c.value(i))
		}
	}
	return append(args, b.args...)
}

// preparedStatements are prepared statements by their text. It is safe for concurrent use; the zero value is empty.
//
// While SQLite's only writing connection is in a transaction, nothing can be prepared that outlives it. So a new text
// runs unprepared, and is prepared after the transaction.
type preparedStatements struct {
	mu      sync.Mutex
	byText  map[string]*sql.Stmt // nil until it is prepared
	missing []string
}

// queryIn runs queries in a transaction, with the prepared statement if there is one.
func (p *preparedStatements) queryIn(tx *sql.Tx) queryFunc {
	return func(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
		if statement := p.lookup(text); statement != nil {
			return tx.StmtContext(ctx, statement).QueryContext(ctx, args...)
		}
		return tx.QueryContext(ctx, text, args...)
	}
}

// lookup returns the statement of a text. If there is none, it returns nil and requests that prepare makes it.
func (p *preparedStatements) lookup(text string) *sql.Stmt {
	p.mu.Lock()
	defer p.mu.Unlock()
	statement, known := p.byText[text]
	if !known {
		if p.byText == nil {
			p.byText = make(map[string]*sql.Stmt)
		}
		p.byText[text] = nil
		p.missing = append(p.missing, text)
	}
	return statement
}

// prepare prepares the requested statements; the database closes them. The caller must not have an open transaction.
func (p *preparedStatements) prepare(ctx context.Context, db *sql.DB) error {
	p.mu.Lock()
	missing := p.missing
	p.missing = nil
	p.mu.Unlock()
	for _, text := range missing {
		statement, err := db.PrepareContext(ctx, text)
		if err != nil {
			return fmt.Errorf("prepare statement: %w", err)
		}
		p.mu.Lock()
		p.byText[text] = statement
		p.mu.Unlock()
	}
	return nil
}
