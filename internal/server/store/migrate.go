package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"path"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

// migrations has a directory per dialect. A released migration must not change; a schema change is a new file, which must fail
// if it runs twice.
//
//go:embed migrations
var migrations embed.FS

// migrate updates the schema to the newest version that this program knows. Replicas that start together wait for each
// other.
func (db *database) migrate(ctx context.Context) error {
	pool := db.write
	if db.dialect == postgresDialect {
		config := db.postgres.Copy()
		config.RuntimeParams["statement_timeout"] = "0" // a migration of a large table may take long
		pool = stdlib.OpenDB(*config)
		pool.SetMaxOpenConns(1) // the lock is that of the session
		defer pool.Close()      //nolint:errcheck // no statement is running
	}
	return db.dialect.withMigrationLock(ctx, pool, func() error {
		if err := db.dialect.runMigrations(ctx, pool); err != nil || db.config.KeepIndexes {
			return err
		}
		if err := db.dialect.setLogQueue(ctx, pool, db.config.LogBytes > 0); err != nil {
			return err
		}
		return db.dialect.setEventUniqueness(ctx, pool, db.config.StrictV0)
	})
}

// withMigrationLock runs change. In PostgreSQL no other process changes the schema meanwhile; the lock ends with the connection. SQLite
// has no such lock: see runMigrations. db must have one connection.
func (d dialect) withMigrationLock(ctx context.Context, db *sql.DB, change func() error) (err error) {
	if d == sqliteDialect {
		return withoutForeignKeys(ctx, db, change)
	}
	if _, err := db.ExecContext(ctx, "SELECT pg_advisory_lock($1)", int64(lockMigration)); err != nil {
		return fmt.Errorf("wait for other replicas to migrate: %w", err)
	}
	return change()
}

// withoutForeignKeys runs change without foreign keys, so that a referenced table can be replaced in SQLite, and checks
// the references afterwards: https://www.sqlite.org/lang_altertable.html#otheralter.
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
		return fmt.Errorf("a row of %s refers to a row that does not exist", table)
	} else if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	_, err = db.ExecContext(ctx, "PRAGMA foreign_keys = ON")
	return err
}

// runMigrations runs the pending migrations.
func (d dialect) runMigrations(ctx context.Context, db *sql.DB) error {
	folder, kind := "migrations/sqlite", goose.DialectSQLite3
	if d == postgresDialect {
		folder, kind = "migrations/postgres", goose.DialectPostgres
	}
	steps, err := migrationsIn(folder)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	provider, err := goose.NewProvider(kind, db, nil, goose.WithGoMigrations(steps...), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	has, known, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if has > known {
		return fmt.Errorf("schema version %d was created by a newer program; this one knows versions up to %d", has, known)
	}
	for attempt := has; ; attempt++ {
		_, err := provider.Up(ctx)
		if err == nil {
			return nil
		}
		// Another process may migrate the same file. Then one of two equal migrations fails, and the next attempt
		// continues after it.
		if d != sqliteDialect || attempt == known {
			return fmt.Errorf("migrate from version %d to %d: %w", has, known, err)
		}
	}
}

// migrationsIn returns the migrations of a directory. Each file is executed as a whole: goose's parser of statements would take 8 MiB
// of memory for each file.
func migrationsIn(folder string) ([]*goose.Migration, error) {
	files, err := migrations.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var steps []*goose.Migration
	for _, file := range files {
		version, err := goose.NumericComponent(file.Name())
		if err != nil {
			return nil, err
		}
		text, err := migrations.ReadFile(path.Join(folder, file.Name()))
		if err != nil {
			return nil, err
		}
		execute := func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, string(text))
			return err
		}
		steps = append(steps, goose.NewGoMigration(version, &goose.GoFunc{RunTx: execute}, nil))
	}
	return steps, nil
}

// setEventUniqueness creates or drops the unique index of the UIDs of Events, depending on strictV0. It fails if the index is needed
// and there are duplicates. It drops the index of earlier versions, in which a UID was unique among all owners.
func (d dialect) setEventUniqueness(ctx context.Context, db *sql.DB, strictV0 bool) error {
	const index, strictIndex = "workload_events_uid", "workload_events_runtimeeventuid_v0"
	statements := []string{"CREATE UNIQUE INDEX IF NOT EXISTS " + index + " ON workload_events " + eventConflict, "DROP INDEX IF EXISTS " + strictIndex}
	if strictV0 {
		statements = []string{
			"CREATE INDEX IF NOT EXISTS " + strictIndex + " ON workload_events (runtimeeventuid, id)",
			"DROP INDEX IF EXISTS " + index,
		}
	}
	statements = append(statements, "DROP INDEX IF EXISTS workload_events_runtimeeventuid")
	for _, statement := range statements {
		_, err := db.ExecContext(ctx, statement)
		if isUniqueViolation(err) {
			return fmt.Errorf("several WorkloadEvents of an instance have the same RuntimeEventUID, which --strict-v0 allows: "+
				"start with --strict-v0, delete the duplicates through the v0 API, then start without it: %w", err)
		}
		if err != nil {
			return fmt.Errorf("set uniqueness of runtimeeventuid: %w", err)
		}
	}
	return nil
}
