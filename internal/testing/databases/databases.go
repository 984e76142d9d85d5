// Package databases runs tests on the databases of the store: SQLite, and PostgreSQL if it is installed. All functions
// are safe for concurrent use by parallel tests.
package databases

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/threeport/threeport-agent/internal/testing/postgres"
)

// TestingM is the part of [testing.M] that [Main] needs.
type TestingM interface{ Run() int }

// Main runs the tests, and then stops the PostgreSQL server that they share, which starts with its first use. The
// result is itself a TestingM, for goleak:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(databases.Main(m)) }
func Main(m TestingM) TestingM { return &run{tests: m} }

type run struct{ tests TestingM }

// Run runs the tests.
func (r *run) Run() int {
	code := r.tests.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		if err := shared.server.Stop(); err != nil {
			fmt.Println("stop PostgreSQL:", err)
			code = 1
		}
		shared.server = nil
	}
	return code
}

// shared is the state that all tests of the process share.
var shared struct {
	sync.Mutex
	server    *postgres.Server
	databases int    // number of created databases
	prepared  bool   // PostgreSQL's template exists
	file      []byte // SQLite's template; nil until it exists
}

// template is the name of the database that prepared ones are copies of.
const template = "prepared"

// ForEach runs a test on an empty database of each kind in turn. Without PostgreSQL it logs that, and uses only SQLite.
func ForEach(t *testing.T, test func(t *testing.T, address string)) {
	t.Helper()
	ForEachPrepared(t, nil, test)
}

// ForEachPrepared is like ForEach with copies of a database on which prepare was called once per process. This halves
// the time of a short test. All calls in a process must have the same prepare.
func ForEachPrepared(t *testing.T, prepare func(address string) error, test func(t *testing.T, address string)) {
	t.Helper()
	onSQLite(t, prepare, test)
	onPostgres(t, func(t *testing.T) {
		t.Helper()
		test(t, database(t, prepare))
	})
}

// OnSQLite runs a test on an empty SQLite database.
func OnSQLite(t *testing.T, test func(t *testing.T, address string)) {
	t.Helper()
	onSQLite(t, nil, test)
}

func onSQLite(t *testing.T, prepare func(address string) error, test func(t *testing.T, address string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Helper()
		test(t, sqliteFile(t, prepare))
	})
}

// OnPostgres runs a test on an empty PostgreSQL database. If PostgreSQL is not installed, it only logs that.
func OnPostgres(t *testing.T, test func(t *testing.T, address string)) {
	t.Helper()
	onPostgres(t, func(t *testing.T) {
		t.Helper()
		test(t, database(t, nil))
	})
}

// OnPrivatePostgres runs a test on a server of its own, with fsync, so that the test may kill or freeze it. If
// PostgreSQL is not installed, it only logs that.
func OnPrivatePostgres(t *testing.T, test func(t *testing.T, server *postgres.Server)) {
	t.Helper()
	onPostgres(t, func(t *testing.T) {
		t.Helper()
		server, err := postgres.Start(t.Context(), postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := server.Stop(); err != nil {
				t.Error(err)
			}
		})
		test(t, server)
	})
}

func onPostgres(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if err := postgres.Installed(); err != nil {
		t.Log("PostgreSQL is not tested:", err)
		return
	}
	t.Run("postgres", test)
}

// sqliteFile returns the address of a file in the test's directory, which does not exist yet or is prepared.
func sqliteFile(t *testing.T, prepare func(address string) error) (address string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a b%#?.db")
	if prepare != nil {
		if err := os.WriteFile(path, preparedFile(t, prepare), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return "sqlite:" + path
}

func preparedFile(t *testing.T, prepare func(address string) error) []byte {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.file == nil {
		path := filepath.Join(t.TempDir(), template)
		if err := prepare("sqlite:" + path); err != nil {
			t.Fatal(err)
		}
		if left, err := os.Stat(path + "-wal"); err == nil && left.Size() > 0 {
			t.Fatal("the prepared database has a write-ahead log: prepare did not close it")
		}
		file, err := os.ReadFile(path) //nolint:gosec // in our own directory
		if err != nil {
			t.Fatal(err)
		}
		shared.file = file
	}
	return shared.file
}

// database creates a database on the shared server and drops it at the end of the test.
func database(t *testing.T, prepare func(address string) error) (address string) {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		server, err := postgres.Start(t.Context(), postgres.Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		shared.server = server
	}
	of := ""
	if prepare != nil {
		makeTemplate(t, prepare)
		of = template
	}
	shared.databases++
	server, name := shared.server, fmt.Sprintf("test%d", shared.databases)
	address, err := server.CreateDatabase(t.Context(), name, of)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.DropDatabase(context.WithoutCancel(t.Context()), name); err != nil {
			t.Error(err)
		}
	})
	return address
}

// makeTemplate creates PostgreSQL's template once. The caller holds the lock.
func makeTemplate(t *testing.T, prepare func(address string) error) {
	t.Helper()
	if shared.prepared {
		return
	}
	address, err := shared.server.CreateDatabase(t.Context(), template, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := prepare(address); err != nil {
		t.Fatal(err)
	}
	shared.prepared = true
}
