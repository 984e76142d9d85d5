package openid

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startFakeProvider starts a provider over TLS with additional metadata. It sends the requests to its token endpoint to
// the channel.
func startFakeProvider(t *testing.T, more string) (config Config, sent chan *http.Request) {
	t.Helper()
	sent = make(chan *http.Request, 1)
	mux := http.NewServeMux()
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, strings.ReplaceAll(`{"issuer": "URL", "authorization_endpoint": "URL/auth?tenant=1",
			"token_endpoint": "URL/token", "jwks_uri": "URL/keys"`+more+`}`, "URL", server.URL))
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		sent <- r
		w.WriteHeader(http.StatusBadGateway)
	})
	dir := t.TempDir()
	config = DefaultConfig()
	config.Issuer, config.ClientID, config.RedirectURL = server.URL, "threeport", "https://threeport.example/callback"
	config.Timeout = 5 * time.Minute // longer than any test
	config.CAFile, config.ClientSecretFile = filepath.Join(dir, "ca.crt"), filepath.Join(dir, "secret")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for file, content := range map[string][]byte{config.CAFile: ca, config.ClientSecretFile: []byte("first\n")} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return config, sent
}

func startProvider(t *testing.T, config Config) *Provider {
	t.Helper()
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	p, err := New(config, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestPerson_ClientAuthentication(t *testing.T) {
	for _, tc := range []struct {
		reason, metadata string
		public           bool
		header, form     string // where the secret is sent
	}{
		{reason: "in a header by default", header: "second"},
		{
			reason:   "in a header, if that is one of several ways",
			metadata: `, "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"]`,
			header:   "second",
		},
		{
			reason:   "in the form, if that is the only way",
			metadata: `, "token_endpoint_auth_methods_supported": ["client_secret_post"]`,
			form:     "second",
		},
		{reason: "by PKCE alone", public: true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			config, sent := startFakeProvider(t, tc.metadata)
			secretFile := config.ClientSecretFile
			if tc.public {
				config.ClientSecretFile = ""
			}
			p := startProvider(t, config)
			if err := os.WriteFile(secretFile, []byte("second\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := p.Person(t.Context(), NewFlow("/", time.Now()), "code"); err == nil {
				t.Fatal("Person succeeded, want an error of the provider")
			}
			r := <-sent
			_, header, _ := r.BasicAuth()
			if header != tc.header || r.PostForm.Get("client_secret") != tc.form || tc.header == "" && r.PostForm.Get("client_id") != "threeport" {
				t.Errorf("the client sent %q in the header and the form %v", header, r.PostForm)
			}
		})
	}
}

func TestAuthURL_KeepsQueryOfEndpoint(t *testing.T) {
	config, _ := startFakeProvider(t, "")
	p := startProvider(t, config)
	flow := NewFlow("/", time.Now())
	sent, err := p.AuthURL(t.Context(), flow)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(sent)
	if err != nil || at.Query().Get("tenant") != "1" || !flow.MatchesState(at.Query().Get("state")) {
		t.Errorf("the authorization URL is %s, error %v; want tenant and state", sent, err)
	}
}

func TestDiscover_InvalidMetadata_IsRefused(t *testing.T) {
	for _, tc := range []struct{ reason, metadata, want string }{
		{reason: "another issuer", metadata: `, "issuer": "https://evil.example"`, want: "did not match"},
		{reason: "endpoint in the clear", metadata: `, "token_endpoint": "http://id.example/token"`, want: `endpoint "http://id.example/token"`},
		{reason: "keys in the clear", metadata: `, "jwks_uri": "http://id.example/keys"`, want: `endpoint "http://id.example/keys"`},
		{reason: "a script", metadata: `, "authorization_endpoint": "javascript:alert(1)"`, want: "endpoint"},
		{reason: "no endpoint", metadata: `, "token_endpoint": ""`, want: `endpoint ""`},
		{reason: "too much", metadata: `, "more": "` + strings.Repeat("x", maxResponseBytes) + `"`, want: "too large"},
		{reason: "no JSON", metadata: `, `, want: "decode"},
	} {
		config, _ := startFakeProvider(t, tc.metadata)
		err := startProvider(t, config).Discover(t.Context())
		if err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 1000 {
			t.Errorf("%s: Discover returned the error %v, want one about %s", tc.reason, err, tc.want)
		}
	}
}

// A caller waits for a provider that does not answer as long as its own request may take.
func TestDiscover_ProviderDoesNotAnswer_CallersEndWithTheirContexts(t *testing.T) {
	asked := make(chan struct{}, 10)
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	config, _ := startFakeProvider(t, "")
	config.Issuer = server.URL
	config.CAFile = filepath.Join(t.TempDir(), "ca.crt")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(config.CAFile, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	p := startProvider(t, config)
	<-asked
	patient, leave := context.WithCancel(t.Context())
	waits := make(chan error)
	go func() { waits <- p.Discover(patient) }()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Discover(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("Discover returned the error %v, want that of its context", err)
	}
	leave()
	if err := <-waits; !errors.Is(err, context.Canceled) {
		t.Errorf("Discover returned the error %v, want that of its context", err)
	}
	if more := len(asked); more != 0 {
		t.Errorf("the provider got %d more requests, want none", more)
	}
}

func TestDiscover_UnknownAuthority_IsRefused(t *testing.T) {
	config, _ := startFakeProvider(t, "")
	config.CAFile = ""
	if err := startProvider(t, config).Discover(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("Discover returned the error %v, want one about the certificate", err)
	}
}

func TestFlow(t *testing.T) {
	now := time.Now()
	flow := NewFlow("/x?a=b;c", now.Add(time.Minute))
	read, ok := ParseFlow(flow.String(), now)
	if !ok || read.Next != flow.Next || !read.MatchesState(flow.state()) || read.nonce() != flow.nonce() || read.verifier() != flow.verifier() {
		t.Errorf("the flow %+v was parsed as %+v", flow, read)
	}
	derived := []string{flow.secret, flow.state(), flow.nonce(), flow.verifier()}
	slices.Sort(derived)
	if len(slices.Compact(derived)) != 4 {
		t.Errorf("two of the values %v that a flow derives are equal", derived)
	}
	if long := NewFlow(strings.Repeat("x", 2048), now).String(); len(long) > 3000 {
		t.Errorf("the cookie of a flow with a long path has %d bytes, want at most 3000", len(long))
	}
	if _, ok := ParseFlow(flow.String(), now.Add(time.Minute)); ok {
		t.Error("ParseFlow accepted an expired flow")
	}
	if flow.MatchesState("") || flow.MatchesState(NewFlow("/", now).state()) {
		t.Error("the flow matches an empty or another flow's state")
	}
	for _, text := range []string{"", "..", flow.secret, flow.String() + ".", flow.String()[1:], flow.secret + ".x.", flow.secret + ".99999999999.!"} {
		if _, ok := ParseFlow(text, now); ok {
			t.Errorf("ParseFlow accepted %q", text)
		}
	}
}
