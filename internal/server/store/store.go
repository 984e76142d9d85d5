package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // registers the driver
)

// Store is the database of the control-plane API. It is safe for concurrent use.
type Store struct {
	config  Config
	dialect dialect
	// write runs transactions. read is for queries only; it may be the same pool.
	write, read *sql.DB
	// postgres has the connection parameters of PostgreSQL; nil for SQLite. Copy it before use.
	postgres *pgx.ConnConfig
	// addressHasTimeout reports whether the address sets statement_timeout. Then reads have no timeout of their own.
	addressHasTimeout bool

	ids         *ids
	statements  map[*Resource]*resourceStatements
	feed        *feed
	prepared    preparedStatements // SQLite only
	eventGrowth eventGrowth
}

// Open opens a database and migrates its schema. It creates a missing file, but not its directory. The caller must
// close the store.
func Open(ctx context.Context, config Config) (*Store, error) {
	d, file, err := parse(config.Address)
	if err != nil {
		return nil, err
	}
	s := &Store{config: config.withDefaults(), dialect: d, feed: newFeed()}
	connect := s.connectPostgres
	name := withoutPassword(config.Address)
	if d == sqliteDialect {
		connect, name = func() error { return s.connectFile(file) }, config.Address
		if err := checkParentFolder(file); err != nil {
			return nil, fmt.Errorf("open database %q: %w", name, err)
		}
	}
	if err := connect(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open database %q: %w", name, err), s.Close())
	}
	return s, nil
}

// Close closes the database. No other method may run during or after it.
func (s *Store) Close() error {
	var errs []error
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			errs = append(errs, db.Close()) // also closes the prepared statements
		}
	}
	return errors.Join(errs...)
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	return s.read.QueryRowContext(ctx, "SELECT 1").Scan(&one)
}

// prepare migrates the schema, and prepares the statements and the ID generator.
func (s *Store) prepare(ctx context.Context) error {
	if err := s.migrate(ctx); err != nil {
		return err
	}
	return s.prepareResources(ctx)
}
