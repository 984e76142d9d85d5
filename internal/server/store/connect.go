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
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// checkFolder says that a file cannot be made where it is to be, which SQLite tells less well. The file is empty for a
// database in memory.
func checkParentFolder(file string) error {
	folder := filepath.Dir(file)
	if at, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) || err == nil && !at.IsDir() {
		return fmt.Errorf("there is no folder %q: make it, or name another file", folder)
	}
	return nil // whatever else there is, opening it says
}

// readers is how many connections of SQLite's read.
const sqliteReaders = 4

// readerLifetime is how long each of them is used: it chooses plans by what was counted when it was opened.
const sqliteReaderLifetime = 10 * time.Minute

// connectFile opens the pools of SQLite. It has one writer at a time; giving it one connection makes writers wait in
// line rather than in a busy loop. Readers of a file have connections of their own, which under WAL never wait for the
// writer. A database in memory is one connection's own, so all share it.
func (s *Store) connectFile(file string) error {
	pragmas := url.Values{"_pragma": {
		"busy_timeout(5000)", "foreign_keys(1)", "journal_mode(WAL)",
		"synchronous(FULL)", // what was answered for survives a loss of power
	}}
	open := func(more string) (*sql.DB, error) {
		name := ":memory:?" + pragmas.Encode() + more
		if file != "" {
			name = "file:" + url.PathEscape(file) + "?" + pragmas.Encode() + more
		}
		db, err := sql.Open("sqlite", name)
		if err != nil {
			return nil, fmt.Errorf("open database: %w", err)
		}
		return db, nil
	}
	var err error
	// Pages that reports and pruning touch again and again stay in memory, and so does what undoes a statement: measured,
	// taking reports needs a quarter less time, and pruning half.
	if s.write, err = open("&_txlock=immediate&_pragma=cache_size(-65536)&_pragma=temp_store(2)"); err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	s.read = s.write
	if file == "" {
		return nil
	}
	if s.read, err = open("&_pragma=query_only(1)"); err != nil {
		return err
	}
	s.read.SetMaxOpenConns(sqliteReaders)
	s.read.SetMaxIdleConns(sqliteReaders)
	s.read.SetConnMaxLifetime(sqliteReaderLifetime)
	return nil
}

// connectTimeout bounds the wait for a PostgreSQL that does not answer, unless the address says connect_timeout.
const connectTimeout = 10 * time.Second

// readingPart is which part of the connections to PostgreSQL only read: one in four. Else whoever looks at the board would
// wait behind all reports that wait for a connection; and reading takes less of the database than writing.
const readPoolShare = 4

// connectPostgres makes the pools of PostgreSQL; one that reads and writes, if there are too few connections for two. What
// the address says of the session goes before what is set here.
func (s *Store) connectPostgres() error {
	config, err := pgx.ParseConfig(s.config.Address)
	if err != nil { // which may quote the address
		return errors.New("database postgres:…: invalid option, or invalid file in an option: " + acceptedAddresses)
	}
	_, s.addressHasTimeout = config.RuntimeParams["statement_timeout"]
	timeout := strconv.FormatInt(s.config.StatementTimeout.Milliseconds(), 10)
	for name, value := range map[string]string{
		"application_name":  "threeport-controlplane",
		"statement_timeout": timeout,
		// A replica that hangs must not keep its locks.
		"idle_in_transaction_session_timeout": timeout,
	} {
		if _, given := config.RuntimeParams[name]; !given {
			config.RuntimeParams[name] = value
		}
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	s.postgres = config
	// A connection that has ended meanwhile is to be found out before it is used, not by whoever uses it. One that nobody
	// answers on any more is closed by the probe, so that the ping which is asked for then fails at once.
	probe := stdlib.OptionShouldPing(func(ctx context.Context, p stdlib.ShouldPingParams) bool {
		ctx, cancel := context.WithTimeout(ctx, s.config.ProbeTimeout)
		defer cancel()
		return p.Conn.Ping(ctx) != nil
	})
	pool := func(connections int) *sql.DB {
		db := stdlib.OpenDB(*config, probe)
		db.SetMaxOpenConns(connections)
		db.SetMaxIdleConns(connections)
		return db
	}
	reading := s.config.Connections / readPoolShare
	s.write = pool(s.config.Connections - reading)
	if s.read = s.write; reading > 0 {
		s.read = pool(reading)
	}
	return nil
}
