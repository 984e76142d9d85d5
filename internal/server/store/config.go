package store

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

const acceptedAddresses = "must be sqlite:FILE, sqlite::memory: or postgres://USER:PASSWORD@HOST:PORT/DATABASE?OPTION=VALUE"

// Default values of [Config].
const (
	DefaultConnections      = 16
	DefaultStatementTimeout = 30 * time.Second
	DefaultReadTimeout      = DefaultStatementTimeout + 5*time.Second
	DefaultWriteTimeout     = time.Minute
	DefaultSearchTimeout    = 5 * time.Second
	DefaultProbeTimeout     = 5 * time.Second
	DefaultClusterBytes     = 1 << 30
)

// Config selects a database and its limits. Zero fields have their default.
type Config struct {
	// Address is sqlite:FILE, sqlite::memory: or a PostgreSQL URI (postgres://… or postgresql://…).
	Address string

	// StrictV0 restricts the store to the features of Threeport's own API. A RuntimeEventUID may then occur more than once.
	StrictV0 bool
	// KeepIndexes leaves the indexes of Events and the triggers of log_queue as the server has set them. It is for commands beside a server.
	KeepIndexes bool
	// Exclusive is for the server: a file of SQLite is refused while another server has it.
	Exclusive bool

	// Connections limits the PostgreSQL connections for writing and reading together. It has no effect on SQLite.
	Connections int
	// StatementTimeout is PostgreSQL's statement_timeout.
	StatementTimeout time.Duration
	// ReadTimeout limits the wait for a statement that reads. With PostgreSQL it only matters for a dead connection, since
	// StatementTimeout is shorter. It has no effect if the address sets statement_timeout.
	ReadTimeout time.Duration
	// SearchTimeout limits a search: the statements of a list by text, or a statement of a v0 list without a filter on a field with an index.
	SearchTimeout time.Duration
	// ProbeTimeout limits the wait for an answer on an idle PostgreSQL connection before it is used again.
	ProbeTimeout time.Duration
	// WriteTimeout limits a write with all its retries. The end of a request does not end its writes.
	WriteTimeout time.Duration

	// ClusterBytes limits the definitions and objects of a cluster, including deleted ones that are kept.
	ClusterBytes int64

	// ReturnTime is how long an offline agent has to report again until old statuses are shown. It looks at the cluster first, and
	// reports only statuses that changed. A workload with a new status is shown at once. 0 means no wait.
	ReturnTime time.Duration

	// WorkloadMetrics configures the metric of each workload.
	WorkloadMetrics WorkloadMetrics

	// LogBytes limits the records that wait for [Store.ExportLogs]: see [Store.TrimLogs]. A record has the bytes of its status change, and
	// 256 for its row. 0 is for no export: there is no queue, and waiting records are removed.
	LogBytes int64

	// Feed configures the change feed.
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
	if c.SearchTimeout == 0 {
		c.SearchTimeout = DefaultSearchTimeout
	}
	if c.ProbeTimeout == 0 {
		c.ProbeTimeout = DefaultProbeTimeout
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = DefaultWriteTimeout
	}
	if c.ClusterBytes == 0 {
		c.ClusterBytes = DefaultClusterBytes
	}
	c.Feed = c.Feed.withDefaults()
	return c
}

// ValidateAddress checks the address of a database without opening it. The error lists the accepted forms and never
// shows a password.
func ValidateAddress(address string) error {
	_, _, err := parse(address)
	return err
}

// parse returns the dialect of an address and, for SQLite, its file; the file is empty for a database in memory.
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

// checkPostgresURI checks the required parts of a URI. [Open] finds all other errors.
func checkPostgresURI(address string) error {
	uri, err := url.Parse(address)
	switch {
	case err != nil: // the original error quotes the address
		return errors.New("database postgres:…: invalid URI (write %40 for @ and %2F for / in a password): " + acceptedAddresses)
	case uri.Opaque != "" || uri.Host == "" && uri.Query().Get("host") == "":
		return errors.New("database postgres:…: no host: " + acceptedAddresses)
	}
	return nil
}

// name is the address without credentials, for errors.
func (c Config) name() string {
	if d, _, err := parse(c.Address); err == nil && d == sqliteDialect {
		return c.Address
	}
	return withoutPassword(c.Address)
}

// withoutPassword is the scheme of an address; the rest may contain credentials.
func withoutPassword(address string) string {
	scheme, _, _ := strings.Cut(address, ":")
	return scheme + ":…"
}
