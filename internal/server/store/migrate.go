package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

// migrations has a folder for each dialect. What is released in one is not changed any more: a change is a new file, that
// fails if it is run twice.
//
//go:embed migrations
var migrations embed.FS

// migrate brings the schema to the newest version that this program knows. Replicas that start at once take turns.
func (s *Store) migrate(ctx context.Context) error {
	db := s.write
	if s.dialect == postgresDialect {
		config := s.postgres.Copy()
		config.RuntimeParams["statement_timeout"] = "0" // of a large table it may take long
		db = stdlib.OpenDB(*config)
		defer db.Close() //nolint:errcheck // nothing is under way any more
	}
	return s.dialect.withMigrationLock(ctx, db, func() error {
		if err := s.dialect.runMigrations(ctx, db); err != nil {
			return err
		}
		return s.dialect.setEventUniqueness(ctx, db, s.config.StrictV0)
	})
}

// migrating runs change while no other process changes the schema.
func (d dialect) withMigrationLock(ctx context.Context, db *sql.DB, change func() error) (err error) {
	if d == sqliteDialect {
		return withoutForeignKeys(ctx, db, change)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // with it ends the session, and its lock
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", int64(lockMigration)); err != nil {
		return fmt.Errorf("wait for other replicas to migrate: %w", err)
	}
	return change()
}

// withoutForeignKeys runs change while SQLite lets a table be replaced that others refer to, and checks the references
// after it: https://www.sqlite.org/lang_altertable.html#otheralter. db has one connection.
func withoutForeignKeys(ctx context.Context, db *sql.DB, change func() error) error {
	if _, err := db.ExecContext(ctx, "PRAGMA foreign_keys = OFF"); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	var table string
	err := db.QueryRowContext(ctx, `SELECT "table" FROM pragma_foreign_key_check LIMIT 1`).Scan(&table)
	if err == nil {
		return fmt.Errorf("a row of %s refers to one that does not exist", table)
	} else if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	_, err = db.ExecContext(ctx, "PRAGMA foreign_keys = ON")
	return err
}

// up runs the migrations that the database has not had.
func (d dialect) runMigrations(ctx context.Context, db *sql.DB) error {
	folder, kind := "migrations/sqlite", goose.DialectSQLite3
	if d == postgresDialect {
		folder, kind = "migrations/postgres", goose.DialectPostgres
	}
	files, err := fs.Sub(migrations, folder)
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(kind, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	has, known, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read version of the schema: %w", err)
	}
	if has > known {
		return fmt.Errorf("its schema has version %d, made by a newer program; this one knows versions up to %d", has, known)
	}
	for attempt := has; ; attempt++ {
		_, err := provider.Up(ctx)
		if err == nil {
			return nil
		}
		// Another process may be doing the same to the file: then the second of two equal migrations fails, and what is
		// done is not done again.
		if d != sqliteDialect || attempt == known {
			return fmt.Errorf("migrate from version %d to %d: %w", has, known, err)
		}
	}
}

// setUnique makes runtimeeventuid unique among the rows that are not deleted and have one, or not, as strictV0 says. It
// fails if it is to be unique and is not.
func (d dialect) setEventUniqueness(ctx context.Context, db *sql.DB, strictV0 bool) error {
	const index = "workload_events_runtimeeventuid"
	statements := []string{
		"CREATE UNIQUE INDEX IF NOT EXISTS " + index + " ON workload_events (runtimeeventuid) WHERE deletedat IS NULL AND runtimeeventuid <> ''",
		"DROP INDEX IF EXISTS " + index + "_v0",
	}
	if strictV0 {
		statements = []string{
			"CREATE INDEX IF NOT EXISTS " + index + "_v0 ON workload_events (runtimeeventuid, id)",
			"DROP INDEX IF EXISTS " + index,
		}
	}
	for _, statement := range statements {
		_, err := db.ExecContext(ctx, statement)
		if isUniqueViolation(err) {
			return fmt.Errorf("it has several WorkloadEvents of one RuntimeEventUID, as --strict-v0 lets them be made: "+
				"serve it with --strict-v0, and through v0 delete all but one of each before it is opened without: %w", err)
		}
		if err != nil {
			return fmt.Errorf("make runtimeeventuid unique, or not, as configured: %w", err)
		}
	}
	return nil
}
