package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
)

const (
	clientID     = "threeport"
	clientSecret = "the-clients-secret"
	redirectURL  = "https://threeport.example" + CallbackPath
	subject      = "248289761001"
)

// fakeIssuer is an OpenID Connect provider with configurable answers. The tests in internal/e2e/browser use a real one.
type fakeIssuer struct {
	url   string
	clock *clock
	key   *ecdsa.PrivateKey

	mu          sync.Mutex
	unavailable bool
	codes       map[string]url.Values // codes that were issued and not redeemed, with the parameters of the browser's request
	claims      map[string]any        // claims that replace those of the ID token; nil omits a claim
	sign        func(claims string) string
	// answer replaces the token response; nil for an ID token.
	answer http.HandlerFunc
}

// startIssuer starts a provider for the test and returns the setting for it.
func startIssuer(t *testing.T) (*fakeIssuer, worldOptions) {
	t.Helper()
	key := newKey(t)
	s := defaultOptions()
	i := &fakeIssuer{clock: s.clock, key: key, codes: map[string]url.Values{}, claims: map[string]any{"groups": []string{"staff", "ops"}}}
	i.sign = func(claims string) string { return oidctest.SignIDToken(key, "key", oidc.ES256, claims) }
	known := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "key", Algorithm: oidc.ES256}}, Algorithms: []string{oidc.ES256}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", i.redeem)
	mux.Handle("/", known)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i.isUnavailable() {
			http.Error(w, "maintenance", http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	known.SetIssuer(server.URL)
	i.url = server.URL

	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(clientSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sso := &s.config.SingleSignOn
	sso.Issuer, sso.ClientID, sso.ClientSecretFile, sso.RedirectURL = i.url, clientID, secret, redirectURL
	sso.Timeout = 5 * time.Minute // longer than any test
	sso.ViewerGroups, sso.AdminGroups = []string{"ops"}, []string{"cn=root,ou=groups"}
	return i, s
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// change changes the answers from now on.
func (i *fakeIssuer) change(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

func (i *fakeIssuer) isUnavailable() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.unavailable
}

// login logs a person in at the URL of a redirect. It returns the URL of the callback.
func (i *fakeIssuer) login(t *testing.T, sent string) (back string) {
	t.Helper()
	at, err := url.Parse(sent)
	if err != nil || !strings.HasPrefix(sent, i.url+"/auth?") {
		t.Fatalf("the client was redirected to %s, error %v; want the provider", sent, err)
	}
	asked := at.Query()
	for name, want := range map[string]string{
		"response_type": "code", "client_id": clientID, "redirect_uri": redirectURL, "scope": "openid profile email", "code_challenge_method": "S256",
	} {
		if asked.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, asked.Get(name), want)
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	code := "code-" + newSession()
	i.codes[code] = asked
	return CallbackPath + "?" + url.Values{"code": {code}, "state": {asked.Get("state")}}.Encode()
}

// redeem implements the token endpoint of RFC 6749 and RFC 7636.
func (i *fakeIssuer) redeem(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.answer != nil {
		i.answer(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	id, secret, _ := r.BasicAuth()
	if id != clientID || secret != clientSecret {
		refusal(http.StatusUnauthorized, "invalid_client")(w, r)
		return
	}
	asked, ok := i.codes[r.PostFormValue("code")]
	delete(i.codes, r.PostFormValue("code"))
	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !ok || r.PostFormValue("redirect_uri") != redirectURL || base64.RawURLEncoding.EncodeToString(challenge[:]) != asked.Get("code_challenge") {
		refusal(http.StatusBadRequest, "invalid_grant")(w, r)
		return
	}
	now := i.clock.read()
	claims := map[string]any{
		"iss": i.url, "sub": subject, "aud": clientID, "nonce": asked.Get("nonce"), "email": "jane@example.com",
		"iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
	}
	maps.Copy(claims, i.claims)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	text, _ := json.Marshal(claims)
	_ = json.NewEncoder(w).Encode(map[string]string{"access_token": "access", "token_type": "Bearer", "id_token": i.sign(string(text))})
}

// refusal is the error response of a token endpoint (RFC 6749, section 5.2).
func refusal(code int, why string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(`{"error": "` + why + `", "error_description": "hunter2"}`))
	}
}

// startSignOn redirects a browser to the identity provider. It returns the URL and the flow cookie.
func (w *world) startSignOn(t *testing.T, next string) (sent string, flow *http.Cookie) {
	t.Helper()
	got := w.do(t, w.plain, http.MethodGet, signOnPath+"?next="+url.QueryEscape(next), browser)
	if got.code != http.StatusSeeOther || len(got.cookies) != 1 {
		t.Fatalf("the answer is %d %v %s, want %d", got.code, got.header, got.body, http.StatusSeeOther)
	}
	return got.header.Get("Location"), got.cookies[0]
}

// returnToCallback is the browser's request to the callback.
func (w *world) returnToCallback(t *testing.T, back string, kept ...*http.Cookie) reply {
	t.Helper()
	parts := []func(*http.Request){browser, header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Mode", "navigate")}
	for _, c := range kept {
		parts = append(parts, cookie(c))
	}
	return w.do(t, w.plain, http.MethodGet, back, parts...)
}

// signOn is a complete log-in.
func (w *world) signOn(t *testing.T, i *fakeIssuer) reply {
	t.Helper()
	sent, flow := w.startSignOn(t, "/")
	return w.returnToCallback(t, i.login(t, sent), flow)
}

// sessionOf returns the session cookie of an answer; nil if there is none.
func sessionOf(got reply) *http.Cookie {
	for _, c := range got.cookies {
		if c.Name == tlsCookie && c.MaxAge > 0 {
			return c
		}
	}
	return nil
}
