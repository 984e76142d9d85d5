package store

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// PostgreSQL error codes: https://www.postgresql.org/docs/current/errcodes-appendix.html.
const (
	pgForeignKeyViolation  = "23503"
	pgUniqueViolation      = "23505"
	pgSerializationFailure = "40001" // CockroachDB: restart the transaction
	pgDeadlockDetected     = "40P01"
)

// isUniqueViolation reports whether a write violates a unique index.
func isUniqueViolation(err error) bool {
	return hasCode(err, pgUniqueViolation, sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// isForeignKey reports whether a write violates a foreign key.
func isForeignKey(err error) bool {
	return hasCode(err, pgForeignKeyViolation, sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY)
}

// hasCode reports whether err has this SQLSTATE of PostgreSQL or one of these extended result codes of SQLite.
func hasCode(err error, postgres string, lite ...int) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == postgres
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && slices.Contains(lite, e.Code())
}

// hasClass reports whether err has one of these SQLSTATE classes of PostgreSQL or primary result codes of SQLite.
func hasClass(err error, postgres []string, lite ...int) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return slices.Contains(postgres, e.Code[:min(2, len(e.Code))])
	}
	const primary = 0xff // mask of the primary code in an extended one
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && slices.Contains(lite, e.Code()&primary)
}

// isConflict reports whether the database rolled a transaction back because of a concurrent one.
func isConflict(err error) bool {
	return hasCode(err, pgSerializationFailure) || hasCode(err, pgDeadlockDetected) ||
		hasClass(err, nil, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
}

// IsTransient reports whether a retry may succeed: a conflict with another transaction, a lost connection, a full disk, an I/O
// error, or a database that is starting or stopping.
func IsTransient(err error) bool {
	// The server's own code decides if there is one: a connection error may wrap a wrong password.
	if _, answered := errors.AsType[*pgconn.PgError](err); !answered && isConnectionLost(err) {
		return true
	}
	return isConflict(err) ||
		// Connection exception, insufficient resources, operator intervention.
		hasClass(err, []string{"08", "53", "57"},
			sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_NOMEM)
}

// isConnectionLost reports whether PostgreSQL did not answer.
func isConnectionLost(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err)
}

// isRejectedData reports whether the database rejects the data itself, so that a retry cannot succeed. Validation should catch
// all such data earlier; this is the fallback for cases that it misses.
func isRejectedData(err error) bool {
	// Data exception, integrity constraint violation, program limit exceeded.
	return hasClass(err, []string{"22", "23", "54"},
		sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE)
}

// rejectionCode says which rule of the database data violates, without the data.
func rejectionCode(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.TrimSpace("SQLSTATE " + e.Code + " " + e.ConstraintName)
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return fmt.Sprintf("result code %d of SQLite", e.Code())
	}
	return "unknown code"
}

// Errors that describe the outcome of a request.
var (
	ErrNotFound = errors.New("record not found")
	ErrConflict = errors.New("another record has the same value in a unique field")
	// ErrTokenChanged reports a token that was renewed or revoked since it was read.
	ErrTokenChanged = errors.New("the token was renewed or revoked meanwhile")
)

// ErrSearchTimeout is the error of a search that took longer than [Config].SearchTimeout.
var ErrSearchTimeout = errors.New("the search took too long")

// Errors of v0 writes.
var (
	ErrReference = errors.New("a referenced row does not exist")
	ErrRefused   = errors.New("the database rejects this row")
)

// writeError classifies the error of a v0 write.
func writeError(err error) error {
	switch {
	case isUniqueViolation(err):
		return ErrConflict
	case isForeignKey(err):
		return fmt.Errorf("%w: %w", ErrReference, err)
	case isRejectedData(err):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	default:
		return err
	}
}

// ErrNoReportSets rejects report sets under [Config].StrictV0, where Events are not unique.
var ErrNoReportSets = errors.New("report sets are not supported with --strict-v0")
