// Package databasetest gives tests the databases that the store is for: SQLite, and PostgreSQL where one is installed.
package databasetest

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/threeport/threeport-agent/hack/postgres"
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

// shared is the PostgreSQL of this process.
var shared struct {
	sync.Mutex
	server    *postgres.Server
	databases int  // made so far
	prepared  bool // the template is there
}

// template is the database that prepared ones are copies of.
const template = "prepared"

// ForEach runs a test on an empty database of each kind, one after the other. Without PostgreSQL it says so, and runs it
// on SQLite alone.
func ForEach(t *testing.T, test func(t *testing.T, address string)) {
	t.Helper()
	forEach(t, nil, test)
}

// ForEachPrepared is ForEach, but a database of PostgreSQL may be a copy of one that prepare was called for, once in the
// process: half the time of a short test. All calls of a process have the same prepare.
func ForEachPrepared(t *testing.T, prepare func(address string) error, test func(t *testing.T, address string)) {
	t.Helper()
	forEach(t, prepare, test)
}

func forEach(t *testing.T, prepare func(address string) error, test func(t *testing.T, address string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Helper()
		test(t, "sqlite:"+filepath.Join(t.TempDir(), "a b%#?.db"))
	})
	if err := postgres.Find(); err != nil {
		t.Log("Not tested on PostgreSQL:", err)
		return
	}
	t.Run("postgres", func(t *testing.T) {
		t.Helper()
		test(t, database(t, prepare))
	})
}

// Postgres is an empty database of PostgreSQL, which has to be installed. It ends with the test.
func Postgres(t *testing.T) (address string) {
	t.Helper()
	return database(t, nil)
}

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

// makeTemplate makes the template if it is not there. It is called with the lock.
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
