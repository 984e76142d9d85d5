package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // registers the driver
)

// database runs statements and transactions on SQLite or PostgreSQL. It is safe for concurrent use.
type database struct {
	config  Config
	dialect dialect
	// The pool write runs transactions. The others run queries only, and may be the same pool.
	write *sql.DB
	// read runs the queries that clients may repeat or make slow.
	read *readPool
	// reserved runs quick queries that everybody depends on: authentication, probes, and the lookups before an agent's write.
	// Slow lists and searches do not delay them.
	reserved *readPool
	// postgres has the connection parameters of PostgreSQL; nil for SQLite. Copy it before use.
	postgres *pgx.ConnConfig
	// addressHasTimeout reports whether the address sets statement_timeout. Then reads have no timeout of their own.
	addressHasTimeout bool
	prepared          preparedStatements // SQLite only
	lockFile          *os.File           // of a server with SQLite
	// committed is called after each commit of a transaction; it must not block.
	committed func()
}

// openDatabase opens the connection pools and migrates the schema.
func openDatabase(ctx context.Context, config Config) (*database, error) {
	d, file, err := parse(config.Address)
	if err != nil {
		return nil, err
	}
	db := &database{config: config, dialect: d, committed: func() {}}
	if d == sqliteDialect {
		err = db.connectFile(file)
	} else {
		err = db.connectPostgres()
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := db.migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open database %q: %w", config.name(), err), db.Close())
	}
	return db, nil
}

// Close closes the database. No other method may run during or after it.
func (db *database) Close() error {
	var errs []error
	for _, pool := range []*readPool{db.reserved, db.read} {
		if pool != nil {
			errs = append(errs, pool.Close()) // also closes the prepared statements
		}
	}
	if db.write != nil {
		errs = append(errs, db.write.Close())
	}
	if db.lockFile != nil {
		errs = append(errs, db.lockFile.Close())
	}
	return errors.Join(errs...)
}

// Ping reports whether the database answers.
func (db *database) Ping(ctx context.Context) error {
	var one int
	return db.reserved.QueryRowContext(ctx, "SELECT 1").Scan(&one)
}
