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
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/testing/postgres"
)

// database is the database of the API, with a connection of this program.
type database struct {
	name, address string
	sql           *sql.DB
	dialect       dialect
	stop          func() error
	// runMaintenance runs the maintenance that a long-running database has already done, and waits for the disk. Otherwise
	// the first measured requests would wait for it.
	runMaintenance func(context.Context) error
	// bytes returns its size on disk.
	bytes func(context.Context) (int64, error)
	// scans returns the number of full table scans; nil if the database does not count them.
	scans func(ctx context.Context, table string) (int64, error)
	// pid is the parent process of the database; 0 if it runs in the process of the API.
	pid int
}

// openDatabase creates an empty database of a kind in a folder.
func openDatabase(ctx context.Context, kind, dir string) (*database, error) {
	switch kind {
	case "postgres":
		return openPostgres(ctx)
	case "sqlite":
		return openSQLite(filepath.Join(dir, "sqlite"))
	}
	return nil, fmt.Errorf("--database is %q: give postgres or sqlite", kind)
}

// settings are the usual settings of a PostgreSQL of this size; all others are defaults.
var settings = map[string]string{"shared_buffers": "1GB", "max_wal_size": "4GB"}

func openPostgres(ctx context.Context) (*database, error) {
	server, err := postgres.Start(ctx, postgres.Options{Settings: settings})
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
	stop := func() error { return errors.Join(db.Close(), server.Stop()) }
	var backend int
	if err := db.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		return nil, errors.Join(err, stop())
	}
	pid, err := process.ParentOf(backend)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	number := func(ctx context.Context, query string, args ...any) (n int64, err error) {
		err = db.QueryRowContext(ctx, query, args...).Scan(&n)
		return n, err
	}
	return &database{
		name: "PostgreSQL", address: address, sql: db, dialect: postgresDialect, stop: stop, pid: pid,
		runMaintenance: func(ctx context.Context) error {
			_, err := db.ExecContext(ctx, "VACUUM ANALYZE")
			if err == nil {
				_, err = db.ExecContext(ctx, "CHECKPOINT")
			}
			return err
		},
		bytes: func(ctx context.Context) (int64, error) {
			return number(ctx, "SELECT pg_database_size(current_database())")
		},
		scans: func(ctx context.Context, table string) (int64, error) {
			return number(ctx, "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = $1", table)
		},
	}, nil
}

func openSQLite(dir string) (*database, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "controlplane.db")
	// The same settings as those of the API's writing connection.
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(30000)&_pragma=synchronous(2)&_pragma=cache_size(-65536)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return &database{
		name: "SQLite", address: "sqlite:" + file, sql: db, dialect: sqliteDialect, stop: db.Close,
		runMaintenance: func(context.Context) error { return syncFile(file) },
		bytes:          func(context.Context) (int64, error) { return folderSize(dir) },
	}, nil
}

// syncFile waits until the writes to a file are on disk.
func syncFile(path string) error {
	file, err := os.Open(path) //nolint:gosec // a file of this program
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// growingTables are the tables whose size depends on the fleet or on time.
var growingTables = [...]string{"workload_events", "workloads", "objects", "definitions"}

// countScans returns the number of full scans of each table; 0 if the database does not count them.
func (d *database) countScans(ctx context.Context) (counts [len(growingTables)]int64, err error) {
	if d.scans == nil {
		return counts, nil
	}
	for i, table := range growingTables {
		if counts[i], err = d.scans(ctx, table); err != nil {
			return counts, err
		}
	}
	return counts, nil
}

// folderSize returns the total size of the files in a folder.
func folderSize(dir string) (total int64, err error) {
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
