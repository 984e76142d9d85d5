package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/testing/certs"
	"github.com/threeport/threeport-agent/internal/testing/databases"
)

// lockedBuffer collects the log of a running server.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(line)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// tlsServer is a running API with TLS, and a second handle of its database.
type tlsServer struct {
	url       string
	authority *certs.TestAuthority
	store     *store.Store
	client    *http.Client // without a certificate
	log       *lockedBuffer
	stop      func()
}

// onTLS runs a test with a server on an empty database of each kind.
func onTLS(t *testing.T, change func(*Config), test func(t *testing.T, s *tlsServer)) {
	t.Helper()
	databases.ForEach(t, func(t *testing.T, address string) {
		t.Helper()
		test(t, startTLS(t, address, change))
	})
}

// startTLS runs a server until the end of the test, or its stop.
func startTLS(t *testing.T, address string, change func(*Config)) *tlsServer {
	t.Helper()
	authority := certs.ForTest(t)
	files := authority.IssueFiles("server")
	config := plain()
	config.Database = address
	config.AuthEnabled, config.CertFile, config.KeyFile, config.CAFile = true, files.Cert, files.Key, files.CA
	if change != nil {
		change(&config)
	}
	w := &tlsServer{authority: authority, log: &lockedBuffer{}}
	s, err := New(t.Context(), config, slog.New(slog.NewJSONHandler(w.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(w.stop)
	w.url = s.URL()
	w.client = w.newClient(t)
	if w.store, err = store.Open(t.Context(), store.Config{Address: address}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.store.Close() })
	return w
}

// newClient returns a client with certificates.
func (s *tlsServer) newClient(t *testing.T, certificates ...tls.Certificate) *http.Client {
	t.Helper()
	config := trust(s.authority.PEM())
	config.Certificates = certificates
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// token creates a token with the command, and returns its secret.
func (s *tlsServer) token(t *testing.T, args ...string) string {
	t.Helper()
	var secret, said bytes.Buffer
	if code := auth.RunTokenCommand(t.Context(), append([]string{"create"}, args...), s.store, &secret, &said); code != 0 {
		t.Fatal(said.String())
	}
	return strings.TrimSpace(secret.String())
}

// send sends a request with the token, unless that is empty.
func (s *tlsServer) send(t *testing.T, token, method, path, body string) reply {
	t.Helper()
	header := asJSON()
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return send(t, s.client, method, s.url+path, header, []byte(body))
}

func TestServer_CertificateWithoutRole(t *testing.T) {
	for _, tc := range []struct {
		reason string
		role   auth.Role
		code   int
		logs   bool
	}{
		{reason: "no role is configured", code: http.StatusUnauthorized, logs: true},
		{reason: "an installation of v0", role: auth.RoleAdmin, code: http.StatusOK},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := startTLS(t, "sqlite:"+filepath.Join(t.TempDir(), "rows.db"), func(c *Config) { c.Access.CertificateRole = tc.role })
			pair, err := tls.X509KeyPair(s.authority.Issue("workload-agent"))
			if err != nil {
				t.Fatal(err)
			}
			got := send(t, s.newClient(t, pair), http.MethodGet, s.url+"/v0/tokens", asJSON(), nil)
			if got.code != tc.code {
				t.Errorf("the answer is %d %s, want %d", got.code, got.body, tc.code)
			}
			if refused := strings.Contains(got.body, "--certificate-role=admin"); refused != tc.logs {
				t.Errorf("the answer is %s; names the flag: %t, want %t", got.body, refused, tc.logs)
			}
			if logged := strings.Contains(s.log.String(), "Client certificates that name no role are refused"); logged != tc.logs {
				t.Errorf("the log is %s; names the refusal: %t, want %t", s.log, logged, tc.logs)
			}
		})
	}
}
