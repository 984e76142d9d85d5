package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
)

// Backup returns a consistent copy of an SQLite database that servers may be using. The copy is an unnamed file in the
// same directory, so nothing is left of it after the caller closes it, or dies.
func Backup(ctx context.Context, address string) (copied io.ReadCloser, err error) {
	d, file, err := parse(address)
	if err != nil {
		return nil, err
	}
	if d != sqliteDialect || file == "" {
		return nil, errors.New("only sqlite:FILE can be backed up; use pg_dump for PostgreSQL")
	}
	dir, err := os.MkdirTemp(filepath.Dir(file), "backup-")
	if err != nil {
		return nil, fmt.Errorf("back up %q: %w", address, err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // what is left has nothing that is needed
	backup := filepath.Join(dir, "rows.db")
	if err := vacuumInto(ctx, file, backup); err != nil {
		return nil, fmt.Errorf("back up %q: %w", address, err)
	}
	copied, err = os.Open(backup) //nolint:gosec // in a folder of our own
	if err != nil {
		return nil, fmt.Errorf("back up %q: %w", address, err)
	}
	return copied, nil
}

// vacuumInto copies a database in a read transaction: https://www.sqlite.org/lang_vacuum.html.
func vacuumInto(ctx context.Context, file, backup string) error {
	db, err := sql.Open("sqlite", "file:"+url.PathEscape(file)+"?mode=rw&_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", backup)
	return errors.Join(err, db.Close())
}
