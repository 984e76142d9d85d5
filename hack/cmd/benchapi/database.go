package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/threeport/threeport-agent/hack/postgres"
)

// database is what the API keeps its rows in.
type database struct {
	name, address string
	stop          func() error
	// settle does what a database that has run for long has done: gathered its statistics.
	settle func(context.Context) error
	// bytes returns its size on disk.
	bytes func(context.Context) (int64, error)
}

// open makes an empty database of a sort, in a folder.
func open(ctx context.Context, sort, dir string) (*database, error) {
	switch sort {
	case "postgres":
		return openPostgres(ctx)
	case "sqlite":
		return openSQLite(filepath.Join(dir, "sqlite"))
	}
	return nil, fmt.Errorf("--database is %q: give postgres or sqlite", sort)
}

func openPostgres(ctx context.Context) (*database, error) {
	server, err := postgres.Start(ctx, postgres.Options{})
	if err != nil {
		return nil, err
	}
	address, err := server.CreateDatabase(ctx, "bench", "")
	if err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	db, err := sql.Open("pgx", address)
	if err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return &database{
		name: "PostgreSQL", address: address,
		stop: func() error { return errors.Join(db.Close(), server.Stop()) },
		settle: func(ctx context.Context) error {
			_, err := db.ExecContext(ctx, "VACUUM ANALYZE")
			return err
		},
		bytes: func(ctx context.Context) (n int64, err error) {
			err = db.QueryRowContext(ctx, "SELECT pg_database_size(current_database())").Scan(&n)
			return n, err
		},
	}, nil
}

func openSQLite(dir string) (*database, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	return &database{
		name: "SQLite", address: "sqlite:" + filepath.Join(dir, "controlplane.db"),
		stop:   func() error { return nil },
		settle: func(context.Context) error { return nil },
		bytes:  func(context.Context) (int64, error) { return folder(dir) },
	}, nil
}

// folder returns the bytes of the files in a folder.
func folder(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}
