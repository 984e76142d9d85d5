// Package databases gives tests the databases that the store is for: SQLite, and PostgreSQL where one is installed.
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

// TestingM is what [testing.M] is to [Main].
type TestingM interface{ Run() int }

// Main runs the tests, with one PostgreSQL for all of them that is started when the first of them asks for it, and ends
// it. It is itself a TestingM, as goleak wants one:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(databasetest.Main(m)) }
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

// shared is what the tests of this process share.
var shared struct {
	sync.Mutex
	server    *postgres.Server
	databases int    // made so far
	prepared  bool   // the template of PostgreSQL is there
	file      []byte // SQLite's template; nil until it is there
}

// template is the database that prepared ones are copies of.
const template = "prepared"

// ForEach runs a test on an empty database of each kind, one after the other. Without PostgreSQL it says so, and runs it
// on SQLite alone.
func ForEach(t *testing.T, test func(t *testing.T, address string)) {
	t.Helper()
	ForEachPrepared(t, nil, test)
}

// ForEachPrepared is ForEach, but a database may be a copy of one that prepare was called for, once in the process: half
// the time of a short test. All calls of a process have the same prepare.
func ForEachPrepared(t *testing.T, prepare func(address string) error, test func(t *testing.T, address string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Helper()
		test(t, sqliteFile(t, prepare))
	})
	onPostgres(t, func(t *testing.T) {
		t.Helper()
		test(t, database(t, prepare))
	})
}

// OnPostgres runs a test of what only PostgreSQL has on an empty database. Where none is installed, it says so.
func OnPostgres(t *testing.T, test func(t *testing.T, address string)) {
	t.Helper()
	onPostgres(t, func(t *testing.T) {
		t.Helper()
		test(t, database(t, nil))
	})
}

// OnOwnPostgres runs a test on a server that no other test has, and that waits for the disk as in earnest, for a test that
// does to it what others could not bear. Where none is installed, it says so.
func OnOwnPostgres(t *testing.T, test func(t *testing.T, server *postgres.Server)) {
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
	if err := postgres.Find(); err != nil {
		t.Log("Not tested on PostgreSQL:", err)
		return
	}
	t.Run("postgres", test)
}

// sqliteFile is the address of a file that goes with the test: it is not there yet, or prepared.
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
			t.Fatal("a part of the prepared database is in its log: it was not closed")
		}
		file, err := os.ReadFile(path) //nolint:gosec // in a folder of our own
		if err != nil {
			t.Fatal(err)
		}
		shared.file = file
	}
	return shared.file
}

// database makes a database of the shared PostgreSQL, which ends with the test.
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

// makeTemplate makes PostgreSQL's template if it is not there. It is called with the lock.
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
