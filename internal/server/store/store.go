package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // the driver
)

// Store keeps all rows. It is safe for concurrent use.
type Store struct {
	config  Config
	dialect dialect
	// write runs transactions; read has the same rows, and writes nothing.
	write, read *sql.DB
	// postgres is how to connect to PostgreSQL; nil for SQLite. It is copied before use.
	postgres *pgx.ConnConfig
	// patient is set if the address says how long a statement may take: then a read waits as long.
	addressHasTimeout bool

	ids         *ids
	statements  map[*Resource]*resourceStatements
	feed        *feed
	prepared    preparedStatements // for SQLite's reports
	eventGrowth eventGrowth
}

// Open opens a database and brings its schema to this version. A file is created if need be; its directory is not.
// Close the store when done with it.
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

// Close closes the database. No method may be running or called after it.
func (s *Store) Close() error {
	var errs []error
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			errs = append(errs, db.Close()) // closes the statements as well
		}
	}
	return errors.Join(errs...)
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	return s.read.QueryRowContext(ctx, "SELECT 1").Scan(&one)
}

// prepare brings the schema to this version, and makes the statements and the generator of IDs.
func (s *Store) prepare(ctx context.Context) error {
	if err := s.migrate(ctx); err != nil {
		return err
	}
	return s.prepareResources(ctx)
}
