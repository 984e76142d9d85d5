package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/threeport/threeport-agent/internal/server"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/testing/certs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun_InvalidArguments(t *testing.T) {
	used, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close() //nolint:errcheck // no test depends on it
	own := certs.ForTest(t).IssueFiles("server")
	signOn := []string{
		"--database=sqlite::memory:", "--bind-address=127.0.0.1:0", "--cert-file=" + own.Cert, "--key-file=" + own.Key, "--ca-file=",
		"--oidc-issuer=https://id.example", "--oidc-client-id=threeport", "--oidc-admin-group=root",
		"--oidc-redirect-url=https://threeport.example/login/sso/callback",
	}
	for _, tc := range []struct {
		reason string
		args   []string
		code   int
		out    string // a part of the output
	}{
		{"version", []string{"--version"}, 0, "controlplane "},
		{"help", []string{"--help"}, 0, "-bind-address"},
		{"unknown flag", []string{"--port=1"}, 2, "controlplane: flag provided but not defined: -port; see --help\n"},
		{"used port", []string{"--auth-enabled=false", "--database=sqlite::memory:", "--bind-address=" + used.Addr().String()}, 1, "address already in use; set another address with --bind-address\n"},
		{"stray argument", []string{"serve"}, 2, `unexpected argument "serve"`},
		{"bad address", []string{"--bind-address=1323"}, 2, "accepted is HOST:PORT"},
		{"bad port", []string{"--bind-address=:99999"}, 2, `bind address ":99999": accepted is HOST:PORT`},
		{"no port", []string{"--bind-address=127.0.0.1:"}, 2, "with a port of 0 to 65535"},
		{"profiles for other machines", []string{"--pprof-bind-address=:6060"}, 2, `--pprof-bind-address is ":6060": give a loopback address`},
		{"profiles at a used port", []string{"--auth-enabled=false", "--database=sqlite::memory:", "--pprof-bind-address=" + used.Addr().String()}, 1, "--pprof-bind-address: listen tcp"},
		{"bad database", []string{"--database=mysql://user:hunter2@host/db"}, 2, "must be sqlite:FILE, sqlite::memory: or postgres://"},
		{"two databases", []string{"--database=sqlite::memory:", "--database-file=hunter2"}, 2, "exclude each other: set one of them"},
		{"no file with the database", []string{"--database-file=/nowhere/database"}, 2, "/nowhere/database"},
		{"bad timeout", []string{"--agent-timeout=1ms"}, 2, "agent timeout 1ms: must be at least"},
		{"no duration", []string{"--event-retention=30"}, 2, `invalid value "30" for flag -event-retention: not a duration: use a number with a unit, such as 90s, 5m or 24h; see --help`},
		{"no number", []string{"--max-reports=many"}, 2, `invalid value "many" for flag -max-reports: not a whole number: use one such as 1000; see --help`},
		{"bad retention", []string{"--event-retention=1s"}, 2, "must be at least a minute"},
		{"bad count", []string{"--events-per-workload=0"}, 2, "must be at least 1"},
		{"bad age of tombstones", []string{"--tombstone-retention=-1h"}, 2, "must be at least a minute"},
		{"bad age of audit records", []string{"--audit-retention=1s"}, 2, "must be at least a minute, or 0 to keep all records"},
		{"bad size", []string{"--max-body=8MB"}, 2, "use a number of bytes such as"},
		{"small body", []string{"--max-body=1KiB"}, 2, "a body of 1024 bytes: use 65536 to"},
		{"small body of v0", []string{"--max-v0-body=1KiB"}, 2, "a body of v0 of 1024 bytes: use 65536 to"},
		{"decoded smaller than sent", []string{"--max-decoded-body=1MiB"}, 2, "before compression: use at least"},
		{"bad number of reports", []string{"--max-reports=1001"}, 2, "use 1 to 1000"},
		{"bad rate", []string{"--rate-limit=-1"}, 2, `invalid value "-1" for flag -rate-limit: not a number of requests per second`},
		{"no rate", []string{"--viewer-rate-limit=NaN"}, 2, `invalid value "NaN" for flag -viewer-rate-limit: not a number of`},
		{"rate without end", []string{"--rate-limit=Inf"}, 2, "0 for no limit"},
		{"rate beyond numbers", []string{"--rate-limit=1e999"}, 2, "0 for no limit"},
		{"certificate without authentication has no effect", []string{"--auth-enabled=false", "--cert-file=/nowhere", "--certificate-role=viewer"}, 2, "--cert-file, --certificate-role without authentication has no effect"},
		{"rate without authentication has no effect", []string{"--viewer-rate-limit=1", "--auth-enabled=false"}, 2, "--viewer-rate-limit without authentication has no effect"},
		{"watches without authentication have no effect", []string{"--max-watches=5", "--auth-enabled=false"}, 2, "--max-watches without authentication has no effect"},
		{"few bytes of a cluster", []string{"--max-cluster-bytes=1KiB"}, 2, "1024 bytes of a cluster: use at least 65536"},
		{"no watches", []string{"--max-watches=0"}, 2, "0 watches of a principal: use 1 to 3600"},
		{"session without authentication has no effect", []string{"--session-lifetime=1h", "--auth-enabled=false"}, 2, "--session-lifetime without authentication has no effect"},
		{"short session", []string{"--session-lifetime=1s"}, 2, "session lifetime 1s: must be at least a minute and at most 30 days"},
		{"proxy without a network", []string{"--trusted-proxies=10.0.0.0/8,192.0.2.7"}, 2, `"192.0.2.7" is not a CIDR: use one such as`},
		{"no proxies", []string{"--trusted-proxies="}, 2, `"" is not a CIDR: use one such as`},
		{"all are proxies", []string{"--auth-enabled=false", "--trusted-proxies=0.0.0.0/0"}, 2, "trusted proxies 0.0.0.0/0: use the networks of the proxies only"},
		{"bad role", []string{"--certificate-role=owner"}, 2, `"owner" is not a role: use admin, viewer or agent`},
		{"role without a certificate", []string{"--certificate-role=agent"}, 2, "must be viewer or admin"},
		{"no provider", []string{"--oidc-client-id=threeport"}, 2, "--oidc-issuer is required"},
		{"provider without authentication has no effect", []string{"--auth-enabled=false", "--oidc-issuer=https://id.example"}, 2, "remove --auth-enabled=false"},
		{"logs to no URL", []string{"--otlp-logs-endpoint=collector:4318"}, 2, "OTLP endpoint: use a URL of HTTP"},
		{"secret headers in plain text", []string{"--otlp-logs-endpoint=http://collector:4318", "--otlp-headers-file=h"}, 2, "use an https URL or a loopback address"},
		{"headers for no URL", []string{"--otlp-headers-file=h"}, 2, "have no effect without an OTLP endpoint"},
		{"logs under strict v0", []string{"--strict-v0", "--otlp-logs-endpoint=http://collector:4318"}, 2, "export of logs or traces under strict v0"},
		{"traces under strict v0", []string{"--strict-v0", "--otlp-traces-endpoint=http://collector:4318"}, 2, "export of logs or traces under strict v0"},
		{"traces to no URL", []string{"--otlp-traces-endpoint=collector:4318"}, 2, "OTLP endpoint: use a URL of HTTP"},
		{"secret headers of traces in plain text", []string{"--otlp-traces-endpoint=http://collector:4318", "--otlp-headers-file=h"}, 2, "use an https URL or a loopback address"},
		{
			"no authorities of the backend", []string{
				"--auth-enabled=false", "--database=sqlite::memory:", "--bind-address=127.0.0.1:0", "--otlp-logs-endpoint=https://collector:4318", "--otlp-ca-file=/nowhere/ca.crt",
			}, 1, "open /nowhere/ca.crt: no such file or directory\n",
		},
		{"provider without a page", []string{"--strict-v0", "--oidc-issuer=https://id.example"}, 2, "under strict v0"},
		{"redaction rules without authentication have no effect", []string{"--redaction-rules=/nowhere", "--auth-enabled=false"}, 2, "--redaction-rules without authentication has no effect"},
		{"redaction rules under strict v0 have no effect", []string{"--redaction-rules=/nowhere", "--strict-v0"}, 2, "redaction rules without effect: every client is an administrator"},
		{"group without a name", []string{
			"--oidc-issuer=https://id.example", "--oidc-client-id=threeport", "--oidc-scopes=openid groups",
			"--oidc-redirect-url=https://threeport.example/login/sso/callback", "--oidc-admin-group=cn=root,ou=groups", "--oidc-viewer-group=",
		}, 2, "must not be empty"},
		{"no certificate", []string{"--cert-file=/nowhere/tls.crt", "--database=sqlite::memory:"}, 1, "--auth-enabled=false"},
		// The line ends there: a hint on the server's certificates would not help.
		{"no secret of the provider's", slices.Concat(signOn, []string{"--oidc-client-secret-file=/nowhere/secret"}), 1, "open /nowhere/secret: no such file or directory\n"},
		{"no redaction rules", slices.Concat(signOn, []string{"--redaction-rules=/nowhere/rules.yaml"}), 1, "redaction rules (--redaction-rules): read the files: stat /nowhere/rules.yaml: no such file or directory\n"},
		{"no authorities of the provider's", slices.Concat(signOn, []string{"--oidc-ca-file=/nowhere/ca.crt"}), 1, "open /nowhere/ca.crt: no such file or directory\n"},
		{"backup of PostgreSQL", []string{"backup", "--database=postgres://user:hunter2@host/db"}, 1, "pg_dump"},
		{"backup of memory", []string{"backup", "--database=sqlite::memory:"}, 1, "set the address of the server's database with"},
		{"backup of nothing", []string{"backup", "--database=sqlite:/nowhere/rows.db"}, 1, "no such file"},
		{"help of backup", []string{"backup", "--help"}, 0, "usage: controlplane backup"},
		{"backup to a file", []string{"backup", "rows.db"}, 2, "is written to stdout"},
		{"no directory", []string{"--auth-enabled=false", "--database=sqlite:/nowhere/rows.db"}, 1, `open database "sqlite:/nowhere/rows.db": directory "/nowhere" does not exist`},
		{"no directory but a file", []string{"--auth-enabled=false", "--database=sqlite:" + own.Cert + "/rows.db"}, 1, "does not exist"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var out bytes.Buffer
			if code := run(t.Context(), tc.args, &out, &out); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if !strings.Contains(out.String(), tc.out) || strings.Contains(out.String(), "hunter2") {
				t.Errorf("printed %s, want %q", out.String(), tc.out)
			}
		})
	}
}

func TestDatabaseFlags_Address_Precedence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "database")
	if err := os.WriteFile(file, []byte("postgres://file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason      string
		flags       databaseFlags
		environment string
		want        string
	}{
		{"default", databaseFlags{}, "", server.DefaultDatabase},
		{"environment", databaseFlags{}, "postgres://environment", "postgres://environment"},
		{"file", databaseFlags{file: file}, "postgres://environment", "postgres://file"},
		{"flag", databaseFlags{flag: "postgres://flag"}, "postgres://environment", "postgres://flag"},
	} {
		t.Setenv(databaseVariable, tc.environment)
		if got, err := tc.flags.address(); got != tc.want || err != nil {
			t.Errorf("%s: got %s, %v", tc.reason, got, err)
		}
	}
}

func TestSize_Set_String(t *testing.T) {
	for text, want := range map[string]size{"1": 1, "65536": 65536, "64KiB": 64 << 10, "8MiB": 8 << 20, "3GiB": 3 << 30} {
		var got size
		if err := got.Set(text); err != nil || got != want {
			t.Errorf("%s: got %d, %v", text, got, err)
		}
		var again size
		if err := again.Set(got.String()); err != nil || again != want {
			t.Errorf("%s is written %s, and read %d, %v", text, &got, again, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "1.5MiB", "MiB", "8 MiB", "9223372036854775807KiB"} {
		if err := new(size).Set(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestRunToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rows.db")
	database := "--database=sqlite:" + file
	token := func(code int, args ...string) (stdout, stderr string) {
		t.Helper()
		var out, err bytes.Buffer
		if got := run(t.Context(), append([]string{"token"}, args...), &out, &err); got != code {
			t.Errorf("%q: exit code %d, want %d: %s", args, got, code, err.String())
		}
		return out.String(), err.String()
	}
	for _, lost := range []string{database, "--database=sqlite::memory:"} {
		if out, said := token(1, "create", lost, "--role=admin", "--name=lost"); out != "" || !strings.Contains(said, "set the address of the server's database with --database") {
			t.Errorf("%s: printed %q, said %s", lost, out, said)
		}
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the command created the database: %v", err)
	}
	made, err := store.Open(t.Context(), store.Config{Address: "sqlite:" + file})
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
	secret, _ := token(0, "create", database, "--role=admin", "--name", "first")
	if len(secret) < 20 {
		t.Errorf("the secret is %q", secret)
	}
	flag, address, _ := strings.Cut(database, "=")
	list, _ := token(0, flag, address, "list")
	if !strings.Contains(list, "first") || strings.Contains(list, strings.TrimSpace(secret)) {
		t.Errorf("the list is %s", list)
	}
	id := strings.Fields(strings.Split(list, "\n")[1])[0]
	token(0, "revoke", id, database)
	if list, _ := token(0, "list", database); !strings.Contains(list, "revoked") {
		t.Errorf("the list is %s", list)
	}
	token(2, "create", database, "--role=owner", "--name=x")
	token(2)
	token(2, "lost", "--database=sqlite:/nowhere/rows.db")
	token(0, "help")
	token(2, "list", "--database")
	token(2, "list", "--database=mysql:x")
	if _, said := token(1, "list", "--database=sqlite:/nowhere/rows.db"); !strings.Contains(said, "/nowhere/rows.db") {
		t.Errorf("said %s", said)
	}
}

// The database is in use: the last writes are in its log only.
func TestRunBackup_CopiesDatabaseInUse(t *testing.T) {
	dir := t.TempDir()
	address := "sqlite:" + filepath.Join(dir, "rows.db")
	used, err := store.Open(t.Context(), store.Config{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close() //nolint:errcheck // its file is in the test's folder
	var backup, said bytes.Buffer
	if code := run(t.Context(), []string{"token", "create", "--role=viewer", "--name=kept", "--database=" + address}, &backup, &said); code != 0 {
		t.Fatalf("exit code %d: %s", code, said.String())
	}
	backup.Reset()
	// The reader may stop at any time, so no temporary file may exist during the write.
	left := filepath.Join(dir, "backup-*")
	if code := run(t.Context(), []string{"backup", "--database=" + address}, &writerWithoutFiles{w: &backup, absent: left, t: t}, &said); code != 0 {
		t.Fatalf("exit code %d: %s", code, said.String())
	}
	restored := filepath.Join(t.TempDir(), "rows.db")
	if err := os.WriteFile(restored, backup.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var list bytes.Buffer
	if code := run(t.Context(), []string{"token", "list", "--database=sqlite:" + restored}, &list, &said); code != 0 || !strings.Contains(list.String(), "kept") {
		t.Errorf("exit code %d, the backup has %s, %s", code, list.String(), said.String())
	}
}

// writerWithoutFiles fails the test if files of a pattern exist during a write.
type writerWithoutFiles struct {
	w      io.Writer
	absent string
	t      *testing.T
}

func (o *writerWithoutFiles) Write(p []byte) (int, error) {
	if left, err := filepath.Glob(o.absent); err != nil || len(left) > 0 {
		o.t.Errorf("files %q exist during the write, %v", left, err)
	}
	return o.w.Write(p)
}

func TestRun_ServesUntilStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read, write := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		code := run(ctx, []string{
			"--auth-enabled=false", "--bind-address=127.0.0.1:0", "--database=sqlite:" + filepath.Join(t.TempDir(), "rows.db"),
		}, io.Discard, write)
		_ = write.Close()
		exit <- code
	}()
	var line struct{ URL string }
	if err := json.NewDecoder(read).Decode(&line); err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, line.URL+"/healthz", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("health: %d", resp.StatusCode)
	}
	cancel()
	if rest, err := io.ReadAll(read); err != nil || len(rest) > 1 {
		t.Errorf("printed more than the line that says where it listens: %s, %v", rest, err)
	}
	if code := <-exit; code != 0 {
		t.Errorf("exit code %d", code)
	}
}
