package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// checkParentFolder checks that the file's directory exists, since SQLite's own error is unclear.
func checkParentFolder(file string) error {
	folder := filepath.Dir(file)
	if at, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) || err == nil && !at.IsDir() {
		return fmt.Errorf("directory %q does not exist: create it, or choose another file", folder)
	}
	return nil // Open reports all other errors
}

// createPrivate creates a missing database file that only its owner may read: it has definitions, and hashes of tokens.
// SQLite gives its other files the same mode.
func createPrivate(file string) {
	created, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // the configured database
	if err == nil {
		_ = created.Close() // nothing was written
	} // SQLite reports any error but that the file exists
}

// lockFile locks a database of SQLite until the file is closed. A second server would not see the changes of the first one. The
// database itself cannot be locked: closing it would end SQLite's own locks.
func lockFile(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // beside the configured database
	if err != nil {
		return nil, fmt.Errorf("create the lock: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = errors.New("another server uses it: stop that one, choose another file, or use PostgreSQL for several replicas")
	case err != nil:
		err = fmt.Errorf("lock %s: %w", name, err)
	default:
		return file, nil
	}
	return nil, errors.Join(err, file.Close())
}

// The numbers of SQLite connections for reading: of the pools read and reserved.
const (
	sqliteReaders         = 4
	sqliteReservedReaders = 2
)

// sqliteReaderLifetime limits the lifetime of these connections: a connection plans with the table statistics of when
// it was opened.
const sqliteReaderLifetime = 10 * time.Minute

// connectFile opens the connection pools of SQLite. SQLite allows one writer at a time, so one writing connection makes
// writers queue instead of polling for the lock. In WAL mode readers never wait for the writer. A database in memory
// belongs to one connection, so all share it.
func (db *database) connectFile(file string) error {
	pragmas := url.Values{"_pragma": {
		"busy_timeout(5000)", "foreign_keys(1)", "journal_mode(WAL)",
		"synchronous(FULL)", // answered writes survive a power loss
	}}
	open := func(more string) (*sql.DB, error) {
		name := ":memory:?" + pragmas.Encode() + more
		if file != "" {
			name = "file:" + url.PathEscape(file) + "?" + pragmas.Encode() + more
		}
		pool, err := sql.Open("sqlite", name)
		if err != nil {
			return nil, fmt.Errorf("open database: %w", err)
		}
		return pool, nil
	}
	if file != "" {
		if err := checkParentFolder(file); err != nil {
			return fmt.Errorf("open database %q: %w", db.config.name(), err)
		}
		createPrivate(file)
	}
	var err error
	if file != "" && db.config.Exclusive {
		if db.lockFile, err = lockFile(file + "-lock"); err != nil {
			return fmt.Errorf("open database %q: %w", db.config.name(), err)
		}
	}
	// The large cache keeps pages of reports and pruning in memory, and temp_store the statement journals. Measured:
	// reports take a quarter less time, pruning half.
	// The write-ahead log grows while reads overlap; the limit makes it small again.
	if db.write, err = open("&_txlock=immediate&_pragma=cache_size(-65536)&_pragma=temp_store(2)&_pragma=journal_size_limit(16777216)"); err != nil {
		return err
	}
	db.write.SetMaxOpenConns(1)
	db.read = &readPool{db.write, db}
	db.reserved = db.read
	if file == "" {
		return nil
	}
	readers := func(connections int) (*readPool, error) {
		opened, err := open("&_pragma=query_only(1)")
		if err != nil {
			return nil, err
		}
		opened.SetMaxOpenConns(connections)
		opened.SetMaxIdleConns(connections)
		opened.SetConnMaxLifetime(sqliteReaderLifetime)
		return &readPool{opened, db}, nil
	}
	if db.read, err = readers(sqliteReaders); err != nil {
		return err
	}
	db.reserved, err = readers(sqliteReservedReaders)
	return err
}

// connectTimeout limits the connection time, unless the address has connect_timeout.
const connectTimeout = 10 * time.Second

// The shares of the PostgreSQL connections that only read: one in this number. Without a pool of their own, queries of the UI
// would wait behind queued reports, and authentication behind queries of the UI.
const (
	readPoolShare     = 4
	reservedPoolShare = 8
)

// connectPostgres opens the connection pools of PostgreSQL. With too few connections for a share, the pool write serves it.
// Session parameters of the address take precedence over the defaults here.
func (db *database) connectPostgres() error {
	config, err := pgx.ParseConfig(db.config.Address)
	if err != nil { // the original error may quote the address
		return errors.New("database postgres:…: invalid option, or invalid file in an option: " + acceptedAddresses)
	}
	_, db.addressHasTimeout = config.RuntimeParams["statement_timeout"]
	timeout := strconv.FormatInt(db.config.StatementTimeout.Milliseconds(), 10)
	for name, value := range map[string]string{
		"application_name":  "threeport-controlplane",
		"statement_timeout": timeout,
		// A hanging replica must not keep its locks.
		"idle_in_transaction_session_timeout": timeout,
	} {
		if _, given := config.RuntimeParams[name]; !given {
			config.RuntimeParams[name] = value
		}
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	db.postgres = config
	// The probe detects a dead idle connection before a caller gets it. A failed probe closes the connection, so the
	// ping that database/sql then sends fails at once.
	probe := stdlib.OptionShouldPing(func(ctx context.Context, p stdlib.ShouldPingParams) bool {
		ctx, cancel := context.WithTimeout(ctx, db.config.ProbeTimeout)
		defer cancel()
		return p.Conn.Ping(ctx) != nil
	})
	pool := func(connections int) *sql.DB {
		opened := stdlib.OpenDB(*config, probe)
		opened.SetMaxOpenConns(connections)
		opened.SetMaxIdleConns(connections)
		return opened
	}
	reading, reserved := db.config.Connections/readPoolShare, db.config.Connections/reservedPoolShare
	db.write = pool(db.config.Connections - reading - reserved)
	readers := func(connections int) *readPool {
		if connections == 0 {
			return &readPool{db.write, db}
		}
		return &readPool{pool(connections), db}
	}
	db.read, db.reserved = readers(reading), readers(reserved)
	return nil
}
