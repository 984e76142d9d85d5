package store

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestRebind(t *testing.T) {
	for query, want := range map[string]string{
		"": "", "SELECT 1": "SELECT 1", "?": "$1", "a = ? AND b IN (?, ?)": "a = $1 AND b IN ($2, $3)",
		"?,?,?,?,?,?,?,?,?,?,?": "$1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11",
	} {
		if got := postgresDialect.rebind(query); got != want {
			t.Errorf("%q became %q, want %q", query, got, want)
		}
		if got := sqliteDialect.rebind(query); got != query {
			t.Errorf("SQLite: %q became %q", query, got)
		}
	}
}

func TestChanged_EachChange_Grows(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		o := create(t, s, "WorkloadInstance", "web")
		changedAt := func() (at int64) {
			readRow(t, s, "SELECT changedat FROM workloads WHERE id = ?", []any{o.ID}, &at)
			return at
		}
		at := changedAt()
		if away := time.Since(fromMicros(at)); away < -time.Minute || away > time.Minute { // both clocks are those of this machine
			t.Errorf("the database's clock differs by %s, want at most a minute", away)
		}
		change := func() {
			t.Helper()
			if err := s.exec(t.Context(), "UPDATE workloads SET "+s.dialect.changed("workloads")+" WHERE id = ?", o.ID); err != nil {
				t.Fatal(err)
			}
		}
		change()
		if again := changedAt(); again <= at {
			t.Errorf("the second change is at %d, want later than %d", again, at)
		}
		const future = int64(1) << 60
		if err := s.exec(t.Context(), "UPDATE workloads SET changedat = "+strconv.FormatInt(future, 10)); err != nil {
			t.Fatal(err)
		}
		change()
		if got := changedAt(); got != future+1 {
			t.Errorf("after the clock was set back, changedat is %d, want %d", got, future+1)
		}
	})
}

func TestErrors_AreClassified(t *testing.T) {
	postgres := func(code string) error { return fmt.Errorf("write: %w", &pgconn.PgError{Code: code}) }
	for _, c := range []struct {
		err                                     error
		unique, foreignKey, conflict, transient bool
	}{
		{err: nil},
		{err: errors.New("any")},
		{err: ErrNotFound},
		{err: postgres("")},
		{err: postgres("22021")}, // invalid UTF-8
		{err: postgres("23505"), unique: true},
		{err: postgres("23503"), foreignKey: true},
		{err: postgres("40001"), conflict: true, transient: true},
		{err: postgres("40P01"), conflict: true, transient: true},
		{err: postgres("53300"), transient: true}, // too many connections
		{err: postgres("57P01"), transient: true}, // the server is stopping
		{err: postgres("57P03"), transient: true}, // the server is starting
		{err: postgres("57014"), transient: true}, // statement_timeout
		{err: postgres("08006"), transient: true},
		{err: fmt.Errorf("read: %w", io.ErrUnexpectedEOF), transient: true},
		{err: fmt.Errorf("dial: %w", &pgconn.ConnectError{}), transient: true},
	} {
		got := [4]bool{isUniqueViolation(c.err), isForeignKey(c.err), isConflict(c.err), IsTransient(c.err)}
		if want := [4]bool{c.unique, c.foreignKey, c.conflict, c.transient}; got != want {
			t.Errorf("%v: unique, foreign key, conflict, transient are %v, want %v", c.err, got, want)
		}
	}
}

// A full disk, or a temporarily read-only file, is not the client's fault.
func TestIsTransient_FullDatabase(t *testing.T) {
	s := open(t, Config{Address: "sqlite:" + filepath.Join(t.TempDir(), "rows.db")})
	if _, err := s.write.ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil { // SQLite raises it to the current size
		t.Fatal(err)
	}
	_, _, err := s.Create(t.Context(), resource(t, "WorkloadInstance"), []any{strings.Repeat("x", maxTextBytes), nil, nil})
	if !IsTransient(err) {
		t.Errorf("a full database is not transient: %v", err)
	}
	for _, wrong := range []error{nil, ErrNotFound, ErrConflict, ErrReference, errors.New("any")} {
		if IsTransient(wrong) {
			t.Errorf("the error %v is transient, want a permanent one", wrong)
		}
	}
}
