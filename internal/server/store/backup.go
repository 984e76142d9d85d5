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

// Backup makes a copy of an SQLite database, as it is at one moment, with its schema as it is. Servers may read and write
// the database meanwhile. The copy is beside the database, where it takes as much room until it is closed: it has no name any
// more, so that nothing is left of it whatever becomes of its reader.
func Backup(ctx context.Context, address string) (copied io.ReadCloser, err error) {
	d, file, err := parse(address)
	if err != nil {
		return nil, err
	}
	if d != sqliteDialect || file == "" {
		return nil, errors.New("a backup is made of sqlite:FILE only: PostgreSQL has pg_dump for that")
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

// vacuumInto copies one file to another in a transaction that reads: https://www.sqlite.org/lang_vacuum.html.
func vacuumInto(ctx context.Context, file, backup string) error {
	db, err := sql.Open("sqlite", "file:"+url.PathEscape(file)+"?mode=rw&_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", backup)
	return errors.Join(err, db.Close())
}
