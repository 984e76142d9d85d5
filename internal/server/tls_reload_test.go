package server

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/testing/certs"
)

// clock is a settable time.
type clock struct{ at time.Time }

func (c *clock) later() { c.at = c.at.Add(reloadInterval) }

// serverName returns the common name of the server's certificate in a handshake.
func serverName(t *testing.T, config, client *tls.Config) (string, error) {
	t.Helper()
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() {
		conn := tls.Server(far, config)
		served <- conn.HandshakeContext(t.Context())
		_ = far.Close()
	}()
	conn := tls.Client(near, client)
	err := conn.HandshakeContext(t.Context())
	if err == nil {
		_, _ = conn.Read(make([]byte, 1)) // under TLS 1.3 the server refuses a certificate only now
	}
	_ = near.Close()
	if refused := <-served; refused != nil || err != nil {
		return "", refused
	}
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func trust(ca []byte) *tls.Config {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: "127.0.0.1"}
}

func TestCertReloader_ChangedFiles(t *testing.T) {
	authority := certs.ForTest(t)
	files := authority.IssueFiles("first")
	var log bytes.Buffer
	r, err := newCertReloader(tlsFiles{files.Cert, files.Key, files.CA}, tls.RequestClientCert, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	now := &clock{time.Now()}
	r.now = func() time.Time { return now.at }
	config, client := r.config(), trust(authority.PEM())
	want := func(reason, name string) {
		t.Helper()
		if got, err := serverName(t, config, client); got != name || err != nil {
			t.Errorf("%s: %q serves, %v, want %q\n%s", reason, got, err, name, log.String())
		}
	}
	want("at the start", "first")

	cert, key := authority.Issue("second")
	write(t, files.Cert, cert)
	want("within a second nothing is read", "first")
	now.later()
	want("a certificate without its key", "first")
	write(t, files.Key, key[:len(key)/2])
	now.later()
	want("a key that is half written", "first")
	write(t, files.Key, key)
	now.later()
	want("both", "second")

	write(t, files.CA, nil)
	now.later()
	want("no authority", "second")
	write(t, files.CA, append(authority.PEM(), authority.PEM()[:60]...))
	now.later()
	before := r.current.Load()
	want("an authority that is half written", "second")
	if r.current.Load() != before {
		t.Error("the reloader loaded a file that has only the first of two authorities")
	}
	if err := os.Remove(files.Cert); err != nil {
		t.Fatal(err)
	}
	now.later()
	want("a file that is gone", "second")
	write(t, files.CA, authority.PEM())
	cert, key = authority.Issue("third")
	write(t, files.Cert, cert)
	write(t, files.Key, key)
	now.later()
	want("all is well again", "third")
}

// A client is verified against the current authorities, not those of its first connection.
func TestCertReloader_ChangedAuthorities(t *testing.T) {
	authority, other := certs.ForTest(t), certs.ForTest(t)
	files := authority.IssueFiles("server")
	r, err := newCertReloader(tlsFiles{files.Cert, files.Key, files.CA}, tls.RequireAnyClientCert, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	now := &clock{time.Now()}
	r.now = func() time.Time { return now.at }
	config, client := r.config(), trust(authority.PEM())
	pair, err := tls.X509KeyPair(other.Issue("agent"))
	if err != nil {
		t.Fatal(err)
	}
	// With Certificates a client would send only certificates of the server's authorities.
	client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	client.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	if _, err := serverName(t, config, client); err == nil {
		t.Error("the server accepted a certificate of an unknown authority")
	}
	write(t, files.CA, append(authority.PEM(), other.PEM()...))
	now.later()
	if _, err := serverName(t, config, client); err != nil {
		t.Errorf("the server rejected a certificate of an added authority: %v", err)
	}
	write(t, files.CA, authority.PEM())
	now.later()
	if _, err := serverName(t, config, client); err == nil {
		t.Error("the server accepted a certificate of a removed authority")
	}
}

// Removing an authority also ends existing connections. An authority with a new certificate for the same key is not removed.
func TestCertReloader_RemovedAuthority_EndsConnections(t *testing.T) {
	authority, other := certs.ForTest(t), certs.ForTest(t)
	own := authority.IssueFiles("server")
	both := append(authority.PEM(), other.PEM()...)
	write(t, own.CA, both)
	config := onFile(t)
	config.AuthEnabled, config.CertFile, config.KeyFile, config.CAFile = true, own.Cert, own.Key, own.CA
	config.Access.CertificateRole = auth.RoleViewer
	s, url := runServer(t, config)
	var later atomic.Int64 // seconds
	s.certificates.mu.Lock()
	s.certificates.now = func() time.Time { return time.Now().Add(time.Duration(later.Load()) * time.Second) }
	s.certificates.mu.Unlock()

	ask := func(client *http.Client) (code int) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v0/workloads", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0
		}
		defer resp.Body.Close() //nolint:errcheck // it was read
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	var made atomic.Int64
	as := func(a *certs.TestAuthority, http2 bool) *http.Client {
		t.Helper()
		pair, err := tls.X509KeyPair(a.Issue("somebody"))
		if err != nil {
			t.Fatal(err)
		}
		trusting := trust(authority.PEM())
		trusting.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			made.Add(1)
			return &pair, nil
		}
		transport := &http.Transport{TLSClientConfig: trusting, ForceAttemptHTTP2: http2, MaxConnsPerHost: 1}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}
	}
	clients := map[string][2]*http.Client{
		"HTTP/1.1": {as(authority, false), as(other, false)}, "HTTP/2": {as(authority, true), as(other, true)},
	}
	for _, step := range []struct {
		reason      string
		authorities []byte
		want        [2]int
		made        int64 // connections
	}{
		{reason: "two authorities", authorities: both, want: [2]int{200, 200}, made: 4},
		{reason: "the same authorities in another order", authorities: append(other.PEM(), authority.PEM()...), want: [2]int{200, 200}, made: 4},
		{reason: "the second has a new certificate", authorities: append(authority.PEM(), other.Renewed()...), want: [2]int{200, 200}, made: 4},
		{reason: "the second is removed", authorities: authority.PEM(), want: [2]int{200, 401}, made: 4},
		{reason: "its connection was closed", authorities: authority.PEM(), want: [2]int{200, 401}, made: 6},
	} {
		write(t, own.CA, step.authorities)
		later.Add(int64(reloadInterval / time.Second))
		for protocol, each := range clients {
			if got := [2]int{ask(each[0]), ask(each[1])}; got != step.want {
				t.Errorf("%s, %s: %d, want %d", step.reason, protocol, got, step.want)
			}
		}
		if n := made.Load(); n != step.made {
			t.Errorf("%s: %d connections were made, want %d", step.reason, n, step.made)
		}
	}
}

// The metric follows a renewed certificate without a handshake.
func TestCertReloader_ExpiryMetric(t *testing.T) {
	authority := certs.ForTest(t)
	files := authority.IssueFiles("server")
	r, err := newCertReloader(tlsFiles{files.Cert, files.Key, files.CA}, tls.RequestClientCert, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	now := &clock{time.Now()}
	r.now = func() time.Time { return now.at }
	end := now.at.Add(time.Hour).Truncate(time.Second)
	cert, key := authority.IssueUntil("server", end)
	write(t, files.Cert, cert)
	write(t, files.Key, key)
	now.later()
	if got := testutil.ToFloat64(r.collector()); got != float64(end.Unix()) {
		t.Errorf("the certificate ends at %f, want %d", got, end.Unix())
	}
}
