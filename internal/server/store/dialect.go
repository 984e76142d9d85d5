package store

import (
	"strconv"
	"strings"
	"time"
)

// dialect is what differs between the databases. All else is SQL that both understand: see the package's comment.
type dialect int

const (
	sqliteDialect dialect = iota
	postgresDialect
)

// rebind makes of a query with placeholders ? one that the database understands. There must be no ? in its texts.
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

// now is an SQL expression of the present time in microseconds: by the clock of the database, which its replicas share.
func (d dialect) now() string {
	if d == sqliteDialect {
		return strconv.FormatInt(time.Now().UnixMicro(), 10)
	}
	return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"
}

// changed assigns now to changedat, in an UPDATE or an upsert of a table. It grows with every change of a row, even if
// the clock is set back.
func (d dialect) changed(table string) string {
	now, before := d.now(), table+".changedat"
	return "changedat = CASE WHEN " + before + " < " + now + " THEN " + now + " ELSE " + before + " + 1 END"
}

// locking is what locks the rows of a SELECT until the transaction ends. SQLite has one transaction that writes, and no
// need of it.
func (d dialect) locking(tables string) string {
	if d == sqliteDialect {
		return ""
	}
	return " FOR NO KEY UPDATE OF " + tables // which lets others add rows that refer to these
}

// skipLocked locks the rows of a SELECT that no other transaction has locked, and leaves out the others.
func (d dialect) skipLocked() string {
	if d == sqliteDialect {
		return ""
	}
	return " FOR UPDATE SKIP LOCKED"
}

// like is the operator that finds a pattern in letters of either case. SQLite folds those of ASCII, PostgreSQL all that
// its locale knows.
func (d dialect) like() string {
	if d == sqliteDialect {
		return "LIKE"
	}
	return "ILIKE"
}
