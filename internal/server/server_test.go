package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/testing/certs"
	"github.com/threeport/threeport-agent/internal/testing/databases"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// plain is the configuration of an API without authentication on a database in memory.
func plain() Config {
	config := DefaultConfig()
	config.BindAddress, config.Database, config.AuthEnabled = "127.0.0.1:0", "sqlite::memory:", false
	return config
}

// onFile is the configuration of an API without authentication on a database file.
func onFile(tb testing.TB) Config {
	tb.Helper()
	config := plain()
	config.Database = "sqlite:" + filepath.Join(tb.TempDir(), "rows.db")
	return config
}

// forEachDatabase runs a test on a database of each kind, which has the schema but no rows.
func forEachDatabase(t *testing.T, test func(t *testing.T, address string)) {
	t.Helper()
	databases.ForEachPrepared(t, func(address string) error {
		s, err := store.Open(context.Background(), store.Config{Address: address})
		if err != nil {
			return err
		}
		return s.Close()
	}, test)
}

// run starts a server until the end of the test.
func run(tb testing.TB, config Config) string {
	tb.Helper()
	_, url := runServer(tb, config)
	return url
}

// runServer is run, and returns the server.
func runServer(tb testing.TB, config Config) (s *Server, url string) {
	tb.Helper()
	s, err := New(tb.Context(), config, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Error(err)
		}
	})
	return s, s.URL()
}

func connect(tb testing.TB, config threeport.Config) *threeport.Client {
	tb.Helper()
	config.Timeout = threeport.DefaultTimeout
	client, err := threeport.New(config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(client.Close)
	return client
}

// create posts an object and returns its ID.
func create(t *testing.T, url, body string) int64 {
	t.Helper()
	code, answer := call(t, exchange{method: "POST", path: url, body: body})
	var envelope threeport.Response[struct{ ID int64 }]
	if err := json.Unmarshal([]byte(answer), &envelope); err != nil || code != http.StatusCreated {
		t.Fatalf("the answer is %d %s, want %d", code, answer, http.StatusCreated)
	}
	return envelope.Data[0].ID
}

func TestV0_Client_RoundTrip(t *testing.T) {
	url := run(t, onFile(t))
	client := connect(t, threeport.Config{Server: url})
	ctx := t.Context()
	wi := create(t, url+"/v0/workload-instances", `{"Name":"web"}`)
	hwi := create(t, url+"/v0/helm-workload-instances", `{"Name":"chart"}`)
	wri := create(t, url+"/v0/workload-resource-instances", fmt.Sprintf(`{"JSONDefinition":{},"WorkloadInstanceID":%d}`, wi))
	if wi < 1<<53 {
		t.Fatalf("the ID is %d, want more than 2^53", wi)
	}
	for _, err := range []error{
		client.UpdateWorkloadInstanceStatus(ctx, wi, "Healthy"),
		client.UpdateHelmWorkloadInstanceStatus(ctx, hwi, "Down\x00"),
		client.UpdateWorkloadResourceInstance(ctx, wri, threeport.WorkloadResourceInstance{
			LastOperation:     new(threeport.OperationModified),
			RuntimeDefinition: json.RawMessage(`{"z":"\u0000","a":` + fmt.Sprint(wi) + `}`),
		}),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	got, err := client.GetWorkloadResourceInstance(ctx, wri)
	if err != nil || *got.WorkloadInstanceID != wi || *got.LastOperation != threeport.OperationModified ||
		string(got.RuntimeDefinition) != `{"a":`+fmt.Sprint(wi)+",\"z\":\"\uFFFD\"}" {
		t.Errorf("the resource row is %+v, error %v", got, err)
	}

	event := threeport.WorkloadEvent{
		RuntimeEventUID: new("uid"), Message: new("a\x00\xff"), WorkloadInstanceID: &wi, WorkloadResourceInstanceID: &wri,
		Timestamp: new(time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC)),
	}
	if _, found, err := client.FindWorkloadEvent(ctx, "uid"); found || err != nil {
		t.Errorf("FindWorkloadEvent before the creation: found %t, error %v; want none", found, err)
	}
	id, _, err := client.CreateWorkloadEvent(ctx, event)
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := client.CreateWorkloadEvent(ctx, event)
	if err != nil || again != id {
		t.Errorf("the second creation returned ID %d, error %v; want %d", again, err, id)
	}
	found, ok, err := client.FindWorkloadEvent(ctx, "uid")
	if err != nil || !ok || found != id {
		t.Errorf("found %d, %v, %v, want %d", found, ok, err, id)
	}
	if err := client.UpdateWorkloadEvent(ctx, id, threeport.WorkloadEvent{Reason: new("Pulled")}); err != nil {
		t.Error(err)
	}
	_, answer := call(t, exchange{method: "GET", path: fmt.Sprintf("%s/v0/workload-events/%d", url, id)})
	for _, want := range []string{`"Timestamp":"2026-01-02T03:04:05.123456Z"`, `"Reason":"Pulled"`, "\"Message\":\"a\uFFFD\uFFFD\"", fmt.Sprintf(`"WorkloadResourceInstanceID":%d`, wri)} {
		if !strings.Contains(answer, want) {
			t.Errorf("the answer is %s, want %s in it", answer, want)
		}
	}

	event.WorkloadInstanceID, event.RuntimeEventUID = new(int64(1)), new("orphan")
	if _, _, err := client.CreateWorkloadEvent(ctx, event); threeport.KindOf(err) != threeport.KindRetryable {
		t.Errorf("creating an Event without its workload returned %v, want a retryable error", err)
	}
	if err := client.UpdateWorkloadInstanceStatus(ctx, 1, "Down"); threeport.KindOf(err) != threeport.KindNotFound {
		t.Errorf("updating an unknown row returned %v, want not found", err)
	}
	if err := client.UpdateWorkloadEvent(ctx, id, threeport.WorkloadEvent{}); threeport.KindOf(err) != threeport.KindPermanent {
		t.Errorf("an empty update returned %v, want a permanent error", err)
	}
}

func TestServer_MutualTLS(t *testing.T) {
	ca := certs.ForTest(t)
	files := ca.IssueFiles("server")
	config := plain()
	config.AuthEnabled, config.CertFile, config.KeyFile, config.CAFile = true, files.Cert, files.Key, files.CA
	config.Access.CertificateRole = auth.RoleAdmin // as an installation of v0
	url := run(t, config)

	own := ca.IssueFiles("agent")
	client := connect(t, threeport.Config{Server: url, AuthEnabled: true, CertFile: own.Cert, KeyFile: own.Key, CAFile: own.CA})
	if _, found, err := client.FindWorkloadEvent(t.Context(), "uid"); found || err != nil {
		t.Errorf("FindWorkloadEvent with a certificate: found %t, error %v; want none", found, err)
	}

	none := connect(t, threeport.Config{Server: url, CAFile: own.CA})
	if _, _, err := none.FindWorkloadEvent(t.Context(), "uid"); err == nil {
		t.Error("the server answered a client without a certificate")
	}
	stranger := certs.ForTest(t).IssueFiles("agent")
	foreign := connect(t, threeport.Config{Server: url, AuthEnabled: true, CertFile: stranger.Cert, KeyFile: stranger.Key, CAFile: own.CA})
	if _, _, err := foreign.FindWorkloadEvent(t.Context(), "uid"); err == nil {
		t.Error("the server answered a client with another authority's certificate")
	}
	old := &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11, InsecureSkipVerify: true}
	dialer := &tls.Dialer{Config: old}
	if conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "https://")); err == nil {
		t.Error("the server accepted TLS 1.1")
		_ = conn.Close()
	}
}

func TestServer_Stop_FinishesRequests(t *testing.T) {
	s, err := New(t.Context(), plain(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()

	body, send := io.Pipe()
	answered := make(chan int, 1)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/v0/workload-instances", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	// The transport reads the body when the server asks for it, so the request is under way by then.
	req.Header.Set("Expect", "100-continue")
	transport := &http.Transport{ExpectContinueTimeout: time.Minute}
	defer transport.CloseIdleConnections()
	go func() {
		defer close(answered)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Error(err)
			return
		}
		_ = resp.Body.Close()
		answered <- resp.StatusCode
	}()
	if _, err := io.WriteString(send, `{"Name":`); err != nil {
		t.Fatal(err)
	}
	if code, _ := call(t, exchange{method: "GET", path: s.URL() + "/healthz"}); code != http.StatusOK {
		t.Errorf("health: the answer is %d, want %d", code, http.StatusOK)
	}
	cancel()
	if _, err := io.WriteString(send, `"late"}`); err != nil {
		t.Fatal(err)
	}
	if err := send.Close(); err != nil {
		t.Fatal(err)
	}
	if code := <-answered; code != http.StatusCreated {
		t.Errorf("answered %d, want %d", code, http.StatusCreated)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// listenerAt is a listener that reports another address.
type listenerAt struct {
	net.Listener
	address net.IP
}

func (e listenerAt) Addr() net.Addr { return &net.TCPAddr{IP: e.address, Port: 1323} }

// An API without authentication logs a warning, except on loopback.
func TestServer_OpenAddress_LogsWarning(t *testing.T) {
	for address, warns := range map[string]bool{"127.0.0.1": false, "::1": false, "0.0.0.0": true, "::": true, "192.0.2.7": true} {
		var log bytes.Buffer
		s, err := New(t.Context(), plain(), slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		s.listener = listenerAt{s.listener, net.ParseIP(address)}
		ended, end := context.WithCancel(t.Context())
		end()
		if err := s.Run(ended); err != nil {
			t.Error(err)
		}
		if warned := strings.Contains(log.String(), "authentication is disabled"); warned != warns {
			t.Errorf("%s: the log is %s", address, log.String())
		}
	}
}

// Earlier versions created files that all users could read.
func TestNew_ReadableDatabase_LogsWarning(t *testing.T) {
	for mode, warns := range map[os.FileMode]bool{0o600: false, 0o660: false, 0o644: true} {
		config := onFile(t)
		file := strings.TrimPrefix(config.Database, "sqlite:")
		if err := os.WriteFile(file, nil, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil { // the umask may have removed bits
			t.Fatal(err)
		}
		var log bytes.Buffer
		s, err := New(t.Context(), config, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.close(context.Background()); err != nil {
			t.Error(err)
		}
		if warned := strings.Contains(log.String(), "may read the database"); warned != warns {
			t.Errorf("%v: the log is %q; warns: %t, want %t", mode, log.String(), warned, warns)
		}
	}
}

// A page at the configured host name is the API's own. Any other name may be an attacker's.
func TestServer_WithoutAuthentication_ChecksHost(t *testing.T) {
	config := plain()
	config.BindAddress = "localhost:0"
	url := run(t, config)
	body := []byte(`{"name":"t","role":"admin"}`)
	for host, code := range map[string]int{"localhost": 201, "evil.example": 421} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v0/tokens", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header = asJSON("Origin", "http://"+host)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != code {
			t.Errorf("%s: the answer is %d, want %d", host, resp.StatusCode, code)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestNew_InvalidConfig(t *testing.T) {
	valid := plain()
	for reason, change := range map[string]func(*Config){
		"bind address": func(c *Config) { c.BindAddress = "1323" },
		"port":         func(c *Config) { c.BindAddress = "127.0.0.1:99999" },
		"listen":       func(c *Config) { c.BindAddress = "192.0.2.1:0" }, // a reserved address
		"database":     func(c *Config) { c.Database = "mysql:x" },
		"certificate":  func(c *Config) { c.AuthEnabled = true; c.CertFile = filepath.Join(t.TempDir(), "none") },
		"key file":     func(c *Config) { c.AuthEnabled = true; c.KeyFile = "" },
		"CA file":      func(c *Config) { c.AuthEnabled = true; c.StrictV0 = true; c.CAFile = "" },
		"reports":      func(c *Config) { c.Limits.Reports = 0 },
		"compression":  func(c *Config) { c.Limits.DecodedBytes = 1 },
		"agent rate":   func(c *Config) { c.Access.AgentRate.PerSecond = -1 },
	} {
		config := valid
		change(&config)
		if _, err := New(t.Context(), config, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: New returned the error %v", reason, err)
		}
	}
}

// BenchmarkCreateEvents measures creation through the client, one at a time and
// concurrently, on a database file.
func BenchmarkCreateEvents(b *testing.B) {
	for _, parallel := range []bool{false, true} {
		b.Run(fmt.Sprintf("parallel=%v", parallel), func(b *testing.B) {
			url := run(b, onFile(b))
			client := connect(b, threeport.Config{Server: url})
			var count atomic.Int64
			post := func() {
				_, _, err := client.CreateWorkloadEvent(b.Context(), threeport.WorkloadEvent{
					RuntimeEventUID: new(fmt.Sprint(count.Add(1))), Type: new("Normal"), Reason: new("Created"),
					Message: new("Created container web in pod web-7887448d46-2tsj5"), Timestamp: new(time.Now()),
				})
				if err != nil {
					b.Error(err)
				}
			}
			if !parallel {
				for b.Loop() {
					post()
				}
				return
			}
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					post()
				}
			})
		})
	}
}
