package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const databaseForms = "accepted are sqlite:FILE and sqlite::memory:"

// sqliteFile is the file of a database address; empty for one in memory.
func sqliteFile(address string) (string, error) {
	file, ok := strings.CutPrefix(address, "sqlite:")
	switch {
	case !ok:
		return "", fmt.Errorf("database %q: %s", withoutPassword(address), databaseForms)
	case file == "":
		return "", fmt.Errorf("database %q names no file: %s", address, databaseForms)
	case file == ":memory:":
		return "", nil
	default:
		return file, nil
	}
}

// withoutPassword is the scheme of an address that is not understood: what
// follows may be credentials.
func withoutPassword(address string) string {
	scheme, _, found := strings.Cut(address, ":")
	if !found {
		return address
	}
	return scheme + ":…"
}

// Open opens the database at an address, sqlite:FILE or sqlite::memory:, and
// makes the tables that are missing. A file is created if need be; its
// directory is not. With strictV0 no field is unique. Close the store when
// done with it.
func Open(ctx context.Context, address string, strictV0 bool) (*Store, error) {
	file, err := sqliteFile(address)
	if err != nil {
		return nil, err
	}
	s := &Store{strictV0: strictV0}
	if err := s.connect(file); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open database %q: %w", address, err), s.Close())
	}
	return s, nil
}

// connect opens the pools. SQLite has one writer at a time; giving it one
// connection makes writers wait in line rather than in a busy loop. Readers of
// a file have connections of their own, which under WAL never wait for the
// writer. A database in memory is one connection's own, so all share it.
func (s *Store) connect(file string) error {
	query := url.Values{"_pragma": {
		"busy_timeout(5000)", "foreign_keys(1)", "journal_mode(WAL)",
		// Under WAL a loss of power may cost the last commits, but not the file.
		"synchronous(NORMAL)",
	}}
	name := ":memory:?" + query.Encode()
	if file != "" {
		name = "file:" + url.PathEscape(file) + "?" + query.Encode()
	}
	var err error
	if s.write, err = sql.Open("sqlite", name); err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	s.write.SetMaxOpenConns(1)
	s.read = s.write
	if file == "" {
		return nil
	}
	if s.read, err = sql.Open("sqlite", name); err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	s.read.SetMaxOpenConns(readers)
	s.read.SetMaxIdleConns(readers)
	return nil
}

const readers = 4

// schema is the statements that make the resource's table and indexes. Columns
// hold what row.values hold.
func (r *resource) schema(strictV0 bool) []string {
	types := map[kind]string{text: "TEXT", integer: "BIGINT", boolean: "BOOLEAN", timestamp: "TEXT", document: "TEXT"}
	columns := []string{
		"id BIGINT NOT NULL PRIMARY KEY",
		"createdat TEXT NOT NULL", "updatedat TEXT NOT NULL", "deletedat TEXT",
	}
	var indexes []string
	for _, f := range r.fields {
		column := f.column() + " " + types[f.kind]
		if f.required {
			column += " NOT NULL"
		}
		if f.references != "" {
			column += " REFERENCES " + strings.ReplaceAll(f.references, "-", "_") + " (id)"
		}
		columns = append(columns, column)
		name := r.table() + "_" + f.column()
		switch {
		case f.unique && strictV0:
			indexes = append(indexes, "DROP INDEX IF EXISTS "+name,
				fmt.Sprintf("CREATE INDEX IF NOT EXISTS %s_v0 ON %s (%s, id)", name, r.table(), f.column()))
		case f.unique:
			indexes = append(indexes, fmt.Sprintf(
				"CREATE UNIQUE INDEX IF NOT EXISTS %s ON %s (%s) WHERE deletedat IS NULL AND %[3]s <> ''",
				name, r.table(), f.column()))
		case f.indexed():
			indexes = append(indexes, fmt.Sprintf(
				"CREATE INDEX IF NOT EXISTS %s ON %s (%s, id)", name, r.table(), f.column()))
		}
	}
	return append([]string{
		fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (%s)", r.table(), strings.Join(columns, ", ")),
	}, indexes...)
}

// isUniqueViolation tells that a write would have made two rows with one
// unique value.
func isUniqueViolation(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE
}
