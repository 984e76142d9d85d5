package store

import (
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// isRefusal tells that the database refuses what it was given, and always will. Validation is to let nothing through
// that it refuses; this is for what nobody thought of.
func isRefusal(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		class := e.Code[:min(2, len(e.Code))]
		// Data exception, integrity constraint violation, program limit exceeded.
		return slices.Contains([]string{"22", "23", "54"}, class)
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	const primary = 0xff // of an extended code
	return ok && slices.Contains([]int{
		sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE,
	}, e.Code()&primary)
}
