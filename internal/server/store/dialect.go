package store

import (
	"strconv"
	"strings"
	"time"
)

// dialect covers the differences between the databases. All other SQL runs on both: see the package documentation.
type dialect int

const (
	sqliteDialect dialect = iota
	postgresDialect
)

// rebind converts the ? placeholders of a query to those of the database. String literals in the query must not contain
// a ?.
func (d dialect) rebind(query string) string {
	if d == sqliteDialect {
		return query
	}
	b := make([]byte, 0, len(query)+16)
	for n := 1; ; n++ {
		before, after, found := strings.Cut(query, "?")
		b = append(b, before...)
		if !found {
			return string(b)
		}
		b = strconv.AppendInt(append(b, '$'), int64(n), 10)
		query = after
	}
}

// now is an SQL expression for the current time of the database's clock, which all replicas share, in microseconds.
func (d dialect) now() string {
	if d == sqliteDialect {
		return strconv.FormatInt(time.Now().UnixMicro(), 10)
	}
	return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"
}

// changed assigns the current time to changedat in an UPDATE or upsert. The value always grows, even if the clock is
// set back.
func (d dialect) changed(table string) string {
	now, before := d.now(), table+".changedat"
	return "changedat = CASE WHEN " + before + " < " + now + " THEN " + now + " ELSE " + before + " + 1 END"
}

// locking locks the selected rows until the transaction ends. SQLite has only one writing transaction and needs no row
// locks.
func (d dialect) locking(tables string) string {
	if d == sqliteDialect {
		return ""
	}
	return " FOR NO KEY UPDATE OF " + tables // which allows inserts of rows that refer to these
}

// skipLocked locks the selected rows and skips those that are locked by other transactions.
func (d dialect) skipLocked() string {
	if d == sqliteDialect {
		return ""
	}
	return " FOR UPDATE SKIP LOCKED"
}
