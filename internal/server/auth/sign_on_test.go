package auth

import (
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/threeport/threeport-agent/internal/server/store"
)

const deepLink = "/workloads/WorkloadInstance/7?tab=tree"

func TestSignOn(t *testing.T) {
	provider, s := startIssuer(t)
	w := start(t, s)
	asked := w.do(t, w.plain, http.MethodGet, deepLink, browser)
	form := w.do(t, w.plain, http.MethodGet, asked.header.Get("Location"), browser)
	if !strings.Contains(form.body, `href="/login/sso?next=%2fworkloads%2fWorkloadInstance%2f7%3ftab%3dtree"`) {
		t.Fatalf("page is %s", form.body)
	}
	sent, flow := w.startSignOn(t, deepLink)
	if flow.Name != hostPrefix+flowCookie || !flow.Secure || !flow.HttpOnly || flow.SameSite != http.SameSiteLaxMode || flow.Path != "/" || flow.MaxAge != 600 {
		t.Errorf("flow cookie %v", flow)
	}
	if secret, _, _ := strings.Cut(flow.Value, "."); strings.Contains(sent, secret) {
		t.Error("the provider sees the flow's secret")
	}
	got := w.returnToCallback(t, provider.login(t, sent), flow)
	if got.code != http.StatusOK || !strings.Contains(got.body, `content="0; url=`+deepLink+`"`) {
		t.Fatalf("%d %s", got.code, got.body)
	}
	opened := sessionOf(got)
	if opened == nil || !opened.Secure || !opened.HttpOnly || opened.SameSite != http.SameSiteStrictMode || opened.MaxAge != 12*60*60 {
		t.Fatalf("session cookie %v", opened)
	}
	if !slices.ContainsFunc(got.cookies, func(c *http.Cookie) bool { return c.Name == flow.Name && c.MaxAge < 0 }) {
		t.Errorf("the flow cookie is not deleted: %v", got.cookies)
	}
	if got := w.do(t, w.plain, http.MethodGet, "/v0/workloads", cookie(opened)); got.code != http.StatusOK {
		t.Errorf("with the session: %d", got.code)
	}
	want := Principal{Name: subject + " jane@example.com", Role: RoleViewer, Credential: CredentialSignOn}
	if w.principal() != want {
		t.Errorf("principal %+v, want %+v", w.principal(), want)
	}
	w.clock.advance(sessionLifetime)
	if got := w.do(t, w.plain, http.MethodGet, "/v0/workloads", cookie(opened)); got.code != http.StatusUnauthorized {
		t.Errorf("after %v: %d", sessionLifetime, got.code)
	}
	records := w.records()
	if len(records) != 1 || records[0].Principal != "sso:"+want.Name || records[0].Role != "viewer" || records[0].Path != CallbackPath || records[0].Code != http.StatusOK {
		t.Errorf("recorded %+v", records)
	}
}

func TestSignOn_Groups_DefineRole(t *testing.T) {
	provider, s := startIssuer(t)
	w := start(t, s)
	for _, tc := range []struct {
		reason string
		groups any
		role   Role // empty if they may not log in
	}{
		{"a viewer", []string{"staff", "ops"}, RoleViewer},
		{"an administrator", []string{"cn=root,ou=groups"}, RoleAdmin},
		{"both", []string{"ops", "cn=root,ou=groups"}, RoleAdmin},
		{"one group as a text", "ops", RoleViewer},
		{"others", []string{"staff"}, ""},
		{"another case", []string{"OPS"}, ""},
		{"a part of a name", []string{"op", "ops2", ""}, ""},
		{"a text that is a list", "staff,ops", ""},
		{"no groups", []string{}, ""},
		{"no claim", nil, ""},
		{"no texts", []any{1, true, nil, []string{"ops"}, map[string]any{"ops": "ops"}}, ""},
		{"an object", map[string]any{"ops": true}, ""},
	} {
		provider.change(func() { provider.claims["groups"] = tc.groups })
		got := w.signOn(t, provider)
		opened := sessionOf(got)
		if tc.role == "" {
			if got.code != http.StatusForbidden || opened != nil || !strings.Contains(got.body, "248289761001 jane@example.com") ||
				!strings.Contains(got.body, "ops, cn=root,ou=groups") {
				t.Errorf("%s: %d %s", tc.reason, got.code, got.body)
			}
			continue
		}
		if got.code != http.StatusOK || opened == nil {
			t.Errorf("%s: %d %s", tc.reason, got.code, got.body)
			continue
		}
		w.do(t, w.plain, http.MethodGet, "/v0/workloads", cookie(opened))
		if w.principal().Role != tc.role {
			t.Errorf("%s: %+v, want %s", tc.reason, w.principal(), tc.role)
		}
	}
	if len(w.store.tokens) != 4 || len(w.store.sessions) != 4 {
		t.Errorf("%d tokens and %d sessions for four people", len(w.store.tokens), len(w.store.sessions))
	}
	refused := slices.DeleteFunc(w.records(), func(r store.AuditRecord) bool { return r.Code != http.StatusForbidden })
	if len(refused) != 8 || refused[0].Principal != "sso:248289761001 jane@example.com" || refused[0].Role != "" {
		t.Errorf("recorded %+v", refused)
	}
}

// The callback does not match the flow of the browser.
func TestSignOn_InvalidCallback_IsRefused(t *testing.T) {
	for _, tc := range []struct {
		reason string
		code   int
		change func(w *world, back url.Values, flow *http.Cookie)
	}{
		{"another state", http.StatusBadRequest, func(_ *world, back url.Values, _ *http.Cookie) { back.Set("state", newSession()) }},
		{"no state", http.StatusBadRequest, func(_ *world, back url.Values, _ *http.Cookie) { back.Del("state") }},
		{"another browser", http.StatusBadRequest, func(_ *world, _ url.Values, flow *http.Cookie) { flow.Name = "other" }},
		{"the cookie for loopback", http.StatusBadRequest, func(_ *world, _ url.Values, flow *http.Cookie) { flow.Name = flowCookie }},
		{"no flow", http.StatusBadRequest, func(_ *world, _ url.Values, flow *http.Cookie) { flow.Value = "x" }},
		{"another flow", http.StatusBadRequest, func(_ *world, _ url.Values, flow *http.Cookie) { flow.Value = newSession() + flow.Value[43:] }},
		{"a flow that is no number long", http.StatusBadRequest, func(_ *world, _ url.Values, flow *http.Cookie) { flow.Value = newSession() + ".x." }},
		{"too late", http.StatusBadRequest, func(w *world, _ url.Values, _ *http.Cookie) { w.clock.advance(flowLifetime) }},
		{"the provider refuses", http.StatusUnauthorized, func(_ *world, back url.Values, _ *http.Cookie) {
			back.Del("code")
			back.Set("error", "access_denied")
			back.Set("error_description", "hunter2")
		}},
		{"another code", http.StatusUnauthorized, func(_ *world, back url.Values, _ *http.Cookie) { back.Set("code", "hunter2") }},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			provider, s := startIssuer(t)
			w := start(t, s)
			sent, flow := w.startSignOn(t, "/")
			path, query, _ := strings.Cut(provider.login(t, sent), "?")
			back, err := url.ParseQuery(query)
			if err != nil {
				t.Fatal(err)
			}
			tc.change(w, back, flow)
			got := w.returnToCallback(t, path+"?"+back.Encode(), flow)
			expectRefusal(t, w, got, tc.code, back.Get("code"))
		})
	}
}

// expectRefusal checks the answer to a failed log-in. Only an attempt is recorded.
func expectRefusal(t *testing.T, w *world, got reply, code int, secret string) {
	t.Helper()
	if got.code != code || sessionOf(got) != nil || !strings.Contains(got.body, `role="alert"`) || !strings.Contains(got.body, `id="sso"`) {
		t.Errorf("%d %s", got.code, got.body)
	}
	if len(w.store.tokens)+len(w.store.sessions) != 0 {
		t.Error("a person was logged in")
	}
	for _, kept := range []string{"hunter2", secret, clientSecret} {
		if kept != "" && strings.Contains(got.body+w.log.String(), kept) {
			t.Errorf("quotes %s: %s\n%s", kept, got.body, w.log)
		}
	}
	records := w.records()
	if code != http.StatusUnauthorized {
		if len(records) != 0 {
			t.Errorf("recorded %+v", records)
		}
		return
	}
	if len(records) != 1 || records[0].Principal != "anonymous:127.0.0.1" || records[0].Code != code {
		t.Errorf("recorded %+v", records)
	}
}

// Each is signed with the provider's key unless it says otherwise.
func TestSignOn_InvalidIDToken_IsRefused(t *testing.T) {
	const minutes = 60
	another := newKey(t)
	for _, tc := range []struct {
		reason string
		change func(i *fakeIssuer, now int64)
	}{
		{"another nonce", func(i *fakeIssuer, _ int64) { i.claims["nonce"] = newSession() }},
		{"no nonce", func(i *fakeIssuer, _ int64) { i.claims["nonce"] = nil }},
		{"another audience", func(i *fakeIssuer, _ int64) { i.claims["aud"] = "other" }},
		{"no audience", func(i *fakeIssuer, _ int64) { i.claims["aud"] = nil }},
		{"several audiences, for nobody", func(i *fakeIssuer, _ int64) { i.claims["aud"] = []string{clientID, "other"} }},
		{"for another client", func(i *fakeIssuer, _ int64) { i.claims["azp"] = "other" }},
		{"another issuer", func(i *fakeIssuer, _ int64) { i.claims["iss"] = "https://evil.example" }},
		{"expired", func(i *fakeIssuer, now int64) { i.claims["exp"] = now - 2*minutes }},
		{"no expiry", func(i *fakeIssuer, _ int64) { i.claims["exp"] = nil }},
		{"not yet", func(i *fakeIssuer, now int64) { i.claims["nbf"] = now + 10*minutes }},
		{"no subject", func(i *fakeIssuer, _ int64) { i.claims["sub"] = nil }},
		{"a subject of two words", func(i *fakeIssuer, _ int64) { i.claims["sub"] = "root jane" }},
		{"a long subject", func(i *fakeIssuer, _ int64) { i.claims["sub"] = strings.Repeat("x", 256) }},
		{"another key", func(i *fakeIssuer, _ int64) {
			i.sign = func(claims string) string { return oidctest.SignIDToken(another, "key", oidc.ES256, claims) }
		}},
		{"a key that is no secret", func(i *fakeIssuer, _ int64) {
			i.sign = func(claims string) string {
				return oidctest.SignIDToken([]byte(strings.Repeat(clientID, 8)), "key", "HS256", claims)
			}
		}},
		{"no signature", func(i *fakeIssuer, _ int64) {
			i.sign = func(claims string) string {
				return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"key"}`)) + "." +
					base64.RawURLEncoding.EncodeToString([]byte(claims)) + "."
			}
		}},
		{"no token", func(i *fakeIssuer, _ int64) { i.sign = func(string) string { return "hunter2" } }},
		{"none", func(i *fakeIssuer, _ int64) {
			i.answer = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"access_token": "hunter2", "token_type": "Bearer"}`))
			}
		}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			provider, s := startIssuer(t)
			w := start(t, s)
			provider.change(func() { tc.change(provider, w.clock.read().Unix()) })
			expectRefusal(t, w, w.signOn(t, provider), http.StatusUnauthorized, "")
		})
	}
}

func TestSignOn_ValidIDTokens(t *testing.T) {
	provider, s := startIssuer(t)
	w := start(t, s)
	now := w.clock.read().Unix()
	for _, tc := range []struct {
		reason string
		claims map[string]any
		name   string
	}{
		{"a clock behind ours", map[string]any{"exp": now - 30}, "248289761001 jane@example.com"},
		{"a clock before ours", map[string]any{"nbf": now + 120, "iat": now + 120}, "248289761001 jane@example.com"},
		{"one audience of several", map[string]any{"aud": []string{"other", clientID}, "azp": clientID}, "248289761001 jane@example.com"},
		{"no name", map[string]any{"email": nil}, "248289761001"},
		{"a name that is no text", map[string]any{"email": 7}, "248289761001"},
		{"a strange name", map[string]any{"email": "Jané\r\n<b> Doe"}, "248289761001 Jan???<b>_Doe"},
	} {
		provider.change(func() {
			provider.claims = map[string]any{"groups": "ops"}
			maps.Copy(provider.claims, tc.claims)
		})
		got := w.signOn(t, provider)
		opened := sessionOf(got)
		if opened == nil {
			t.Errorf("%s: %d %s", tc.reason, got.code, got.body)
			continue
		}
		w.do(t, w.plain, http.MethodGet, "/v0/workloads", cookie(opened))
		if w.principal().Name != tc.name {
			t.Errorf("%s: %+v, want %s", tc.reason, w.principal(), tc.name)
		}
	}
}

func TestSignOn_Callback_WorksOnce(t *testing.T) {
	provider, s := startIssuer(t)
	w := start(t, s)
	sent, flow := w.startSignOn(t, "/")
	back := provider.login(t, sent)
	if got := w.returnToCallback(t, back, flow); sessionOf(got) == nil {
		t.Fatalf("%d %s", got.code, got.body)
	}
	for code, kept := range map[int][]*http.Cookie{http.StatusBadRequest: nil, http.StatusUnauthorized: {flow}} {
		if got := w.returnToCallback(t, back, kept...); got.code != code || sessionOf(got) != nil {
			t.Errorf("with %v: %d %s, want %d", kept, got.code, got.body, code)
		}
	}
	if len(w.store.sessions) != 1 {
		t.Errorf("%d sessions", len(w.store.sessions))
	}
}

func TestSignOn_CallbackAtOtherReplica(t *testing.T) {
	provider, s := startIssuer(t)
	here, there := start(t, s), start(t, s)
	sent, flow := here.startSignOn(t, deepLink)
	got := there.returnToCallback(t, provider.login(t, sent), flow)
	opened := sessionOf(got)
	if opened == nil || !strings.Contains(got.body, "url="+deepLink) {
		t.Fatalf("%d %s", got.code, got.body)
	}
	if got := here.do(t, here.plain, http.MethodGet, "/v0/workloads", cookie(opened)); got.code != http.StatusOK {
		t.Errorf("%d", got.code)
	}
}

func TestSignOn_Session_CanBeEnded(t *testing.T) {
	for reason, end := range map[string]func(t *testing.T, w *world, opened *http.Cookie){
		"by themselves": func(t *testing.T, w *world, opened *http.Cookie) {
			t.Helper()
			w.post(t, "/logout", nil, cookie(opened))
		},
		"by an administrator": func(t *testing.T, w *world, _ *http.Cookie) {
			t.Helper()
			list, err := w.Tokens().List(t.Context(), nil)
			if err != nil || len(list.Body.Items) != 1 {
				t.Fatalf("%+v, %v", list, err)
			}
			token := list.Body.Items[0]
			if token.Subject != subject || token.Name != "jane@example.com" || token.ExpiresAt == nil || !token.ExpiresAt.Equal(w.now().Add(sessionLifetime)) {
				t.Errorf("token is %+v", token)
			}
			revoke(t, w, int64(token.ID))
		},
	} {
		t.Run(reason, func(t *testing.T) {
			provider, s := startIssuer(t)
			w := start(t, s)
			opened := sessionOf(w.signOn(t, provider))
			asked := func() int { return w.do(t, w.plain, http.MethodGet, "/v0/workloads", cookie(opened)).code }
			if got := asked(); got != http.StatusOK {
				t.Fatalf("before: %d", got)
			}
			end(t, w, opened)
			if got := asked(); got != http.StatusUnauthorized {
				t.Errorf("after: %d", got)
			}
		})
	}
}

func TestSignOn_ProviderUnavailableAtStart(t *testing.T) {
	provider, s := startIssuer(t)
	provider.change(func() { provider.unavailable = true })
	w := start(t, s)
	if err := w.Authenticator.signOn.Discover(t.Context()); err == nil { // done by the discovery goroutine, or soon
		t.Fatal("the provider is available")
	}
	if got := w.do(t, w.plain, http.MethodGet, "/login", browser); got.code != http.StatusOK || !strings.Contains(got.body, "did not answer") {
		t.Errorf("%d %s", got.code, got.body)
	}
	w.session(t, RoleViewer) // with a token
	refused := func() {
		t.Helper()
		got := w.do(t, w.plain, http.MethodGet, signOnPath, browser)
		if got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "5" || !strings.Contains(got.body, `role="alert"`) || len(got.cookies) != 0 {
			t.Errorf("%d %v %s", got.code, got.header, got.body)
		}
	}
	refused()
	if !strings.Contains(w.log.String(), "502 Bad Gateway: maintenance") || strings.Count(w.log.String(), "level") != 1 {
		t.Errorf("logged %s", w.log)
	}
	provider.change(func() { provider.unavailable = false })
	refused() // no further request within retryInterval
	w.clock.advance(5 * time.Second)
	if got := w.signOn(t, provider); sessionOf(got) == nil {
		t.Errorf("%d %s", got.code, got.body)
	}
	if got := w.do(t, w.plain, http.MethodGet, "/login", browser); strings.Contains(got.body, "did not answer") {
		t.Errorf("still: %s", got.body)
	}
}

// For each failure of the provider, the person sees an error, and the log has the cause.
func TestSignOn_ProviderFailsAtCallback(t *testing.T) {
	answers := func(answer http.HandlerFunc) func(*fakeIssuer) { return func(i *fakeIssuer) { i.answer = answer } }
	for _, tc := range []struct {
		reason string
		change func(*fakeIssuer)
		logged string
	}{
		{"away", answers(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "hunter2", http.StatusBadGateway) }), "502 Bad Gateway"},
		{"away, and blames the code", answers(refusal(http.StatusServiceUnavailable, "invalid_grant")), "503 Service Unavailable"},
		{"another secret", answers(refusal(http.StatusUnauthorized, "invalid_client")), "invalid_client"},
		{"elsewhere", answers(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://evil.example/", http.StatusTemporaryRedirect)
		}), "307 Temporary Redirect"},
		{"endless", answers(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"id_token": "` + strings.Repeat("hunter2", 1<<19) + `"}`))
		}), "redeem code"},
		{"away before it tells its keys", func(i *fakeIssuer) {
			sign := i.sign
			i.sign = func(claims string) string {
				i.unavailable = true
				return sign(claims)
			}
		}, "get keys failed: 502 Bad Gateway"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			provider, s := startIssuer(t)
			w := start(t, s)
			provider.change(func() { tc.change(provider) })
			got := w.signOn(t, provider)
			if got.code != http.StatusServiceUnavailable || sessionOf(got) != nil || !strings.Contains(got.body, "identity provider is not available") {
				t.Errorf("%d %s", got.code, got.body)
			}
			if log := w.log.String(); !strings.Contains(log, tc.logged) || strings.Contains(log+got.body, "hunter2") {
				t.Errorf("logged %s", log)
			}
			if records := w.records(); len(records) != 0 {
				t.Errorf("recorded %+v", records)
			}
		})
	}
}

func TestSignOn_Next_StaysOnSite(t *testing.T) {
	provider, s := startIssuer(t)
	w := start(t, s)
	for _, hostile := range []string{"//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)", "/x\r\nX-Evil: 1", signOnPath, CallbackPath} {
		sent, flow := w.startSignOn(t, hostile)
		if strings.Contains(sent, "evil") {
			t.Errorf("%q: sent to %s", hostile, sent)
		}
		kept, err := base64.RawURLEncoding.DecodeString(flow.Value[strings.LastIndex(flow.Value, ".")+1:])
		if err != nil || string(kept) != "/" {
			t.Errorf("%q: flow has next %q, %v", hostile, kept, err)
		}
		flow.Value = flow.Value[:strings.LastIndex(flow.Value, ".")+1] + base64.RawURLEncoding.EncodeToString([]byte(hostile))
		got := w.returnToCallback(t, provider.login(t, sent), flow)
		if got.code != http.StatusOK || !strings.Contains(got.body, `content="0; url=/"`) || got.header.Get("X-Evil") != "" {
			t.Errorf("%q: %d %v %s", hostile, got.code, got.header, got.body)
		}
	}
}

func TestSignOn_Failures_AreRateLimited(t *testing.T) {
	provider, s := startIssuer(t)
	w := start(t, s)
	sent, flow := w.startSignOn(t, "/")
	back := provider.login(t, sent)
	for i := range loginRate.Burst {
		// Any site can cause such requests: they must not block log-ins.
		if got := w.returnToCallback(t, CallbackPath+"?code=x&state=y"); got.code != http.StatusBadRequest {
			t.Fatalf("callback %d without a flow: %d", i, got.code)
		}
	}
	for i := range loginRate.Burst {
		if got := w.returnToCallback(t, strings.Replace(back, "code=", "code=x", 1), flow); got.code != http.StatusUnauthorized {
			t.Fatalf("attempt %d: %d", i, got.code)
		}
	}
	got := w.returnToCallback(t, back, flow)
	if got.code != http.StatusTooManyRequests || got.header.Get("Retry-After") != "6" {
		t.Fatalf("%d %v", got.code, got.header)
	}
	w.clock.advance(6 * time.Second)
	if got := w.returnToCallback(t, back, flow); sessionOf(got) == nil {
		t.Errorf("later: %d %s", got.code, got.body)
	}
}

func TestLoginPage_WithoutSingleSignOn(t *testing.T) {
	w := start(t, defaultSetting())
	if got := w.do(t, w.plain, http.MethodGet, "/login", browser); strings.Contains(got.body, "sso") || !strings.Contains(got.body, "autofocus") {
		t.Errorf("page is %s", got.body)
	}
}
