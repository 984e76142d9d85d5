package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/testing/databases"
)

func TestValidateAddress(t *testing.T) {
	for address, want := range map[string]string{
		"sqlite:rows.db": "", "sqlite::memory:": "", "sqlite:/var/lib/a b%#?.db": "",
		"postgres://host/db": "", "postgresql://user:hunter2@host:5432/db?sslmode=verify-full": "",
		"postgres:///db?host=/run/postgresql": "",

		"": "no scheme", "rows.db": "no scheme", "sqlite:": "no file",
		"mysql://user:hunter2@host/db": "mysql:…", "hunter2:x": "hunter2:…", // not a password: it precedes the colon
		"postgres:hunter2": "no host", "postgres://": "no host", "postgres:///db": "no host",
		"postgres://user:hunter2%@host/db": "invalid URI", "postgres://user:hun/ter2@host/db": "invalid URI",
	} {
		err := ValidateAddress(address)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", address, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "sqlite:FILE") {
			t.Errorf("address %q: the error %v does not list the accepted forms", address, err)
		}
		if err != nil && strings.Contains(err.Error(), "ter2") && !strings.HasPrefix(address, "hunter2") {
			t.Errorf("address %q: the error contains the password: %v", address, err)
		}
	}
}

func TestOpen_InvalidConfig_Fails(t *testing.T) {
	for _, address := range []string{
		"", "sqlite:", "rows.db", "sqlite:" + t.TempDir(), "sqlite:/nowhere/at/all.db",
		"postgres://user:hunter2@127.0.0.1:1/db?connect_timeout=5", "postgres://user:hunter2@127.0.0.1/db?sslmode=sometimes",
		"postgres://user:hunter2@127.0.0.1:port/db", "postgres://user:hunter2@127.0.0.1/db?sslrootcert=/nowhere",
		"postgres://user:hunter2%zz@127.0.0.1/db",
	} {
		s, err := Open(t.Context(), Config{Address: address})
		if err == nil {
			t.Errorf("Open accepted the config with address %q", address)
			_ = s.Close()
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error contains the password: %v", err)
		}
	}
}

func TestOpen_ConnectionSettings(t *testing.T) {
	databases.ForEach(t, func(t *testing.T, address string) {
		t.Helper()
		s := open(t, Config{Address: address})
		want := map[string]string{
			"PRAGMA journal_mode": "wal", "PRAGMA synchronous": "2", "PRAGMA foreign_keys": "1", "PRAGMA busy_timeout": "5000",
		}
		if s.dialect == postgresDialect {
			want = map[string]string{
				"SHOW application_name": "threeport-controlplane", "SHOW statement_timeout": "30s",
				"SHOW idle_in_transaction_session_timeout": "30s",
			}
		}
		for query, value := range want {
			var got string
			if err := s.write.QueryRowContext(t.Context(), query).Scan(&got); err != nil || got != value {
				t.Errorf("%s: %q, %v, want %q", query, got, err, value)
			}
		}
		if s.dialect == sqliteDialect {
			if _, err := s.read.ExecContext(t.Context(), "DELETE FROM workloads"); err == nil {
				t.Error("a connection for reading can write")
			}
			return
		}
		own := open(t, Config{Address: address + "&application_name=mine&statement_timeout=7s", Connections: 3})
		var name, timeout string
		readRow(t, own, "SELECT current_setting('application_name'), current_setting('statement_timeout')", nil, &name, &timeout)
		if n := own.write.Stats().MaxOpenConnections; name != "mine" || timeout != "7s" || n != 3 {
			t.Errorf("parameters of the address are ignored: %s, %s, %d connections, want \"mine\", \"7s\" and 3", name, timeout, n)
		}
	})
}

func TestPing(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		if err := s.Ping(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The database has definitions, and hashes of tokens.
func TestOpen_NewFiles_ArePrivate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a b%#?.db")
	s := open(t, Config{Address: "sqlite:" + file})
	create(t, s, "WorkloadInstance", "web")
	for _, name := range []string{file, file + "-wal", file + "-shm"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %v, want only the owner's", filepath.Base(name), mode)
		}
	}
}

func TestOpen_SecondServerOnFile_IsRefused(t *testing.T) {
	config := Config{Address: "sqlite:" + filepath.Join(t.TempDir(), "api.db"), Exclusive: true}
	first, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := Open(t.Context(), config); err == nil || !strings.Contains(err.Error(), "another server uses it") {
		t.Errorf("a second server opens the database: %v, %v", second, err)
	}
	command, err := Open(t.Context(), Config{Address: config.Address, KeepIndexes: true})
	if err != nil {
		t.Fatalf("a command beside the server: %v", err)
	}
	for _, s := range []*Store{command, first} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	next, err := Open(t.Context(), config)
	if err != nil {
		t.Fatalf("the next server: %v", err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}
