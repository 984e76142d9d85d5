package auth

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/testing/certs"
)

// tlsCookie is the name of the session cookie over TLS.
const tlsCookie = hostPrefix + sessionCookie

const clusterUID = "0c6a9a4e-9d5c-4d0a-8f0e-2f6c7f1f0b11"

// clock is the time of the tested code.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// logBuffer collects log lines.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *logBuffer) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// String returns all lines.
func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// world is a replica of an API with certificates, tokens and clients.
type world struct {
	*Authenticator
	store     *fakeStore
	clock     *clock
	log       *logBuffer
	server    *httptest.Server
	authority *certs.Authority
	plain     *http.Client // without a certificate
	// last is the principal of the last request.
	mu   sync.Mutex
	last Principal
}

// worldOptions configures a world.
type worldOptions struct {
	config Config
	store  *fakeStore
	clock  *clock
	plain  bool // without TLS
	// handler is the next handler; nil for one that answers 200.
	handler http.Handler
}

func defaultOptions() worldOptions {
	config := DefaultConfig()
	config.AgentRate, config.ViewerRate, config.AdminRate = Rate{}, Rate{}, Rate{}
	config.CertificateRole = RoleAdmin // as an installation of v0
	config.VerifyCertificate = func(*tls.ConnectionState) error { return nil }
	return worldOptions{
		config: config, store: newFakeStore(),
		clock: &clock{now: time.Now()},
	}
}

// start starts a server for the test.
func start(t *testing.T, s worldOptions) *world {
	t.Helper()
	w := &world{store: s.store, clock: s.clock, log: &logBuffer{}}
	var err error
	w.Authenticator, err = newAuthenticator(s.store, s.config, slog.New(slog.NewJSONHandler(w.log, nil)), s.clock.read)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	if w.authority, err = certs.NewAuthority("clients"); err != nil {
		t.Fatal(err)
	}
	pages := http.NewServeMux()
	login := w.LoginHandlers()
	pages.HandleFunc("GET "+loginPath, login.Form)
	pages.HandleFunc("POST "+loginPath, login.Login)
	pages.HandleFunc("GET "+stylePath, login.Style)
	pages.HandleFunc("POST "+logoutPath, login.Logout)
	if login.SignOn != nil {
		pages.HandleFunc("GET "+signOnPath, login.SignOn)
		pages.HandleFunc("GET "+CallbackPath, login.Callback)
	}
	pages.Handle("/", w.recordPrincipal(s.handler))
	w.server = httptest.NewUnstartedServer(w.Middleware(testRules(), pages))
	t.Cleanup(w.server.Close)
	if s.plain {
		w.server.Start()
		w.plain = w.client(t)
		return w
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(w.authority.CertPEM())
	w.server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, ClientCAs: clients, MinVersion: tls.VersionTLS12}
	w.server.StartTLS()
	w.plain = w.client(t)
	return w
}

// recordPrincipal records the principal of a request.
func (w *world) recordPrincipal(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.last = PrincipalFrom(r.Context())
		w.mu.Unlock()
		if next != nil {
			next.ServeHTTP(rw, r)
		}
	})
}

// principal returns the principal of the last request.
func (w *world) principal() Principal {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// client returns a client with certificates.
func (w *world) client(t *testing.T, certificates ...tls.Certificate) *http.Client {
	t.Helper()
	servers := x509.NewCertPool()
	if cert := w.server.Certificate(); cert != nil {
		servers.AddCert(cert)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: servers, Certificates: certificates, MinVersion: tls.VersionTLS12,
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// certificate issues a certificate with a subject.
func certificate(t *testing.T, authority *certs.Authority, name string, groups ...string) tls.Certificate {
	t.Helper()
	issued, err := authority.Client(name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(issued.Cert, issued.Key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// token creates a token, and returns its row and its secret.
func (w *world) token(t *testing.T, role Role, change ...func(*NewToken)) (store.Token, string) {
	t.Helper()
	wanted := NewToken{Name: "a-" + string(role), Role: role}
	if role == RoleAgent {
		wanted.ClusterUID = clusterUID
	}
	for _, c := range change {
		c(&wanted)
	}
	token, secret, err := issue(t.Context(), w.store, wanted, w.now())
	if err != nil {
		t.Fatal(err)
	}
	return token, secret
}

// session logs in and returns the cookie.
func (w *world) session(t *testing.T, role Role, change ...func(*NewToken)) *http.Cookie {
	t.Helper()
	_, secret := w.token(t, role, change...)
	got := w.post(t, "/login", url.Values{"token": {secret}})
	if got.code != http.StatusSeeOther || len(got.cookies) != 1 {
		t.Fatalf("log-in: the answer is %d %s, want %d", got.code, got.body, http.StatusSeeOther)
	}
	return got.cookies[0]
}

// reply is a response with its body.
type reply struct {
	code    int
	header  http.Header
	cookies []*http.Cookie
	body    string
}

// do sends a request after the changes of parts.
func (w *world) do(t *testing.T, client *http.Client, method, path string, parts ...func(*http.Request)) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, w.server.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		part(req)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, resp.Cookies(), string(body)}
}

// post sends a form.
func (w *world) post(t *testing.T, path string, form url.Values, parts ...func(*http.Request)) reply {
	t.Helper()
	return w.do(t, w.plain, http.MethodPost, path, append([]func(*http.Request){
		header("Content-Type", "application/x-www-form-urlencoded"),
		func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(form.Encode()))
			r.ContentLength = int64(len(form.Encode()))
		},
	}, parts...)...)
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Add(name, value) }
}

func bearer(secret string) func(*http.Request) { return header("Authorization", "Bearer "+secret) }

func cookie(c *http.Cookie) func(*http.Request) {
	return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value}) }
}

// flush waits until all queued writes are done.
func (w *world) flush() {
	settled := make(chan struct{})
	w.writes.add(func(context.Context) { close(settled) })
	<-settled
}

// records closes the world and returns all audit records.
func (w *world) records() []store.AuditRecord {
	w.Close()
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	return w.store.audit
}
