package store

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
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

// The errors of PostgreSQL that are looked for: https://www.postgresql.org/docs/current/errcodes-appendix.html.
const (
	pgForeignKeyViolation  = "23503"
	pgUniqueViolation      = "23505"
	pgSerializationFailure = "40001" // CockroachDB: restart the transaction
	pgDeadlockDetected     = "40P01"
)

// isUniqueViolation tells that a write would have made two rows with one unique value.
func isUniqueViolation(err error) bool {
	return hasCode(err, pgUniqueViolation, sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// isForeignKey tells that a write would have left a row without the one that it refers to.
func isForeignKey(err error) bool {
	return hasCode(err, pgForeignKeyViolation, sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY)
}

// hasCode looks for an error of either database.
func hasCode(err error, postgres string, lite ...int) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == postgres
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && slices.Contains(lite, e.Code())
}

// isConflict tells that the database gave a transaction up in favour of others, and did nothing of it.
func isConflict(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == pgSerializationFailure || e.Code == pgDeadlockDetected
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	const primary = 0xff // of an extended code
	return ok && (e.Code()&primary == sqlite3.SQLITE_BUSY || e.Code()&primary == sqlite3.SQLITE_LOCKED)
}

// IsPassing tells that the same may succeed later: the database is away, does not answer, is full or fails to read or write,
// or gave a write up in favour of others.
func IsPassing(err error) bool {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		const primary = 0xff // of an extended code
		return isConflict(err) || slices.Contains([]int{
			sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_NOMEM,
		}, e.Code()&primary)
	}
	return isTransient(err)
}

// isTransient tells that the same may succeed later: a conflict, or a database that is away, starts or stops.
func isTransient(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		class := e.Code[:min(2, len(e.Code))]
		// Connection exception, insufficient resources, operator intervention.
		return isConflict(err) || slices.Contains([]string{"08", "53", "57"}, class)
	}
	return isConflict(err) || isConnectionLost(err)
}
