package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
)

// column is one column of the rows that a statement is given: a value for each row.
type column struct {
	name    string
	sqlType string // its type in PostgreSQL
	// values is a slice with one element a row, which PostgreSQL takes as one argument.
	values any
	// value is that of one row, which SQLite takes as an argument.
	value func(row int) any
}

// columnOf makes a column of what each row has.
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

// bulk is a statement about many rows, which it reads from a table named x: its text begins after the WITH that makes
// x. args are for the placeholders of that text.
//
// PostgreSQL has all rows in one statement, as an array for each column, so that neither its text nor the number of
// round trips depends on how many rows there are. SQLite, which is in this process, has them in parts of a few fixed
// sizes, so that its statements are prepared once.
type bulk struct {
	text    string
	columns []column
	rows    int
	args    []any
}

// bulkSizes are those of the parts that SQLite has a bulk in: measured, more rows in a statement gain nothing.
var sqliteBatchSizes = []int{64, 8, 1}

// execBulk runs the bulk, and calls row for each row that it returns; row may be nil if it returns none.
func (s *Store) execBulk(ctx context.Context, tx *sql.Tx, b bulk, row func(scanner) error) error {
	if b.rows == 0 {
		return nil
	}
	if s.dialect == postgresDialect {
		return queryRows(ctx, tx.QueryContext, s.dialect.rebind(b.arrayQuery()), b.arrayArgs(), row)
	}
	done := 0
	for _, size := range sqliteBatchSizes {
		for ; b.rows-done >= size; done += size {
			if err := queryRows(ctx, s.prepared.queryIn(tx), b.valuesQuery(size), b.valuesArgs(done, size), row); err != nil {
				return err
			}
		}
	}
	return nil
}

// readBulk runs a bulk that only reads, of a few rows, outside of any transaction.
func (s *Store) readBulk(ctx context.Context, b bulk, row func(scanner) error) error {
	ctx, cancel := s.reading(ctx)
	defer cancel()
	switch {
	case b.rows == 0:
		return nil
	case s.dialect == postgresDialect:
		return queryRows(ctx, s.read.QueryContext, s.dialect.rebind(b.arrayQuery()), b.arrayArgs(), row)
	default:
		return queryRows(ctx, s.read.QueryContext, b.valuesQuery(b.rows), b.valuesArgs(0, b.rows), row)
	}
}

// names is the head of x.
func (b bulk) withHead() string {
	names := make([]string, len(b.columns))
	for i, c := range b.columns {
		names[i] = c.name
	}
	return "WITH x (" + strings.Join(names, ", ") + ") AS "
}

// arrays is the statement with a placeholder for each column.
func (b bulk) arrayQuery() string {
	arrays := make([]string, len(b.columns))
	for i, c := range b.columns {
		arrays[i] = "CAST(? AS " + c.sqlType + "[])"
	}
	return b.withHead() + "(SELECT * FROM unnest(" + strings.Join(arrays, ", ") + ")) " + b.text
}

// slices is the arguments of that: one for each column.
func (b bulk) arrayArgs() []any {
	args := make([]any, 0, len(b.columns)+len(b.args))
	for _, c := range b.columns {
		args = append(args, c.values)
	}
	return append(args, b.args...)
}

// tuples is the statement with a placeholder for each value of so many rows.
func (b bulk) valuesQuery(rows int) string {
	tuple := placeholders(len(b.columns))
	return b.withHead() + "(VALUES " + tuple + strings.Repeat(", "+tuple, rows-1) + ") " + b.text
}

// part is the arguments of some rows.
func (b bulk) valuesArgs(from, rows int) []any {
	args := make([]any, 0, rows*len(b.columns)+len(b.args))
	for i := from; i < from+rows; i++ {
		for _, c := range b.columns {
			args = append(args, c.value(i))
		}
	}
	return append(args, b.args...)
}

// preparedStatements are statements by their text. It is safe for concurrent use; the zero value is empty.
//
// SQLite's only connection that writes is a transaction's, for as long as that runs, and what a transaction prepares ends
// with it. So a text that is new runs as it is, and is prepared for the next time when the transaction is over.
type preparedStatements struct {
	mu      sync.Mutex
	byText  map[string]*sql.Stmt // nil for one that is wanted
	missing []string
}

// on runs queries in a transaction, as prepared statements if they are.
func (p *preparedStatements) queryIn(tx *sql.Tx) queryFunc {
	return func(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
		if statement := p.lookup(text); statement != nil {
			return tx.StmtContext(ctx, statement).QueryContext(ctx, args...)
		}
		return tx.QueryContext(ctx, text, args...)
	}
}

// find is the statement of a text, or nil, and then it notes that there is to be one.
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

// prepare makes the statements that were asked for; db closes them. No transaction of this goroutine's may be open.
func (p *preparedStatements) prepare(ctx context.Context, db *sql.DB) error {
	p.mu.Lock()
	wanted := p.missing
	p.missing = nil
	p.mu.Unlock()
	for _, text := range wanted {
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
