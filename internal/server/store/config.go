package store

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

const acceptedAddresses = "must be sqlite:FILE, sqlite::memory: or postgres://USER:PASSWORD@HOST:PORT/DATABASE?OPTION=VALUE"

// The defaults of [Config].
const (
	DefaultConnections      = 16
	DefaultStatementTimeout = 30 * time.Second
	DefaultReadTimeout      = DefaultStatementTimeout + 5*time.Second
	DefaultWriteTimeout     = time.Minute
	DefaultProbeTimeout     = 5 * time.Second
)

// Config says which database it is, and how it is used. A field that is zero has its default.
type Config struct {
	// Address is sqlite:FILE, sqlite::memory:, or a connection URI of PostgreSQL, postgres://… or postgresql://….
	Address string

	// StrictV0 leaves out what the API does better than Threeport's own: the same RuntimeEventUID may be there twice.
	StrictV0 bool

	// Connections bounds those to PostgreSQL, of which a part only reads. SQLite has one that writes, and some that read.
	Connections int
	// StatementTimeout is after what time PostgreSQL gives a statement up.
	StatementTimeout time.Duration
	// ReadTimeout is for how long a statement that reads waits for PostgreSQL, which gives it up before if it is there at
	// all. It is of no effect if the address has a statement_timeout of its own.
	ReadTimeout time.Duration
	// ProbeTimeout is for how long a connection to PostgreSQL that was idle waits for a sign of life before it is used.
	ProbeTimeout time.Duration
	// WriteTimeout bounds a transaction with all its repeats. A request that ends does not end its writes.
	WriteTimeout time.Duration

	// Feed is of the changes that subscribers are told of.
	Feed FeedConfig
}

func (c Config) withDefaults() Config {
	if c.Connections == 0 {
		c.Connections = DefaultConnections
	}
	if c.StatementTimeout == 0 {
		c.StatementTimeout = DefaultStatementTimeout
	}
	if c.ReadTimeout == 0 {
		c.ReadTimeout = DefaultReadTimeout
	}
	if c.ProbeTimeout == 0 {
		c.ProbeTimeout = DefaultProbeTimeout
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = DefaultWriteTimeout
	}
	c.Feed = c.Feed.withDefaults()
	return c
}

// ValidateAddress says what is wrong with the address of a database, and what is accepted. It opens nothing. The error
// shows nothing of an address that may have a password in it.
func ValidateAddress(address string) error {
	_, _, err := parse(address)
	return err
}

// parse is the dialect of an address, and its file if that is SQLite's; the file is empty for a database in memory.
func parse(address string) (d dialect, file string, err error) {
	scheme, rest, found := strings.Cut(address, ":")
	switch {
	case !found:
		return 0, "", fmt.Errorf("database: no scheme: %s", acceptedAddresses)
	case scheme == "sqlite" && rest == "":
		return 0, "", fmt.Errorf("database %q: no file: %s", address, acceptedAddresses)
	case scheme == "sqlite" && rest == ":memory:":
		return sqliteDialect, "", nil
	case scheme == "sqlite":
		return sqliteDialect, rest, nil
	case scheme == "postgres" || scheme == "postgresql":
		return postgresDialect, "", checkPostgresURI(address)
	default:
		return 0, "", fmt.Errorf("database %q: %s", withoutPassword(address), acceptedAddresses)
	}
}

// checkURI looks at what a URI of PostgreSQL must have. Whatever else is in it, [Open] finds.
func checkPostgresURI(address string) error {
	uri, err := url.Parse(address)
	switch {
	case err != nil: // which quotes the address
		return errors.New("database postgres:…: invalid URI (write %40 for @ and %2F for / in a password): " + acceptedAddresses)
	case uri.Opaque != "" || uri.Host == "" && uri.Query().Get("host") == "":
		return errors.New("database postgres:…: no host: " + acceptedAddresses)
	}
	return nil
}

// withoutPassword is the scheme of an address: what follows may be credentials.
func withoutPassword(address string) string {
	scheme, _, _ := strings.Cut(address, ":")
	return scheme + ":…"
}
