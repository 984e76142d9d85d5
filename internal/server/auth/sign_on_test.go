package auth

import (
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

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
		t.Fatalf("the log-in page is %s, want a link with the next path", form.body)
	}
	sent, flow := w.startSignOn(t, deepLink)
	if flow.Name != hostPrefix+flowCookie || !flow.Secure || !flow.HttpOnly || flow.SameSite != http.SameSiteLaxMode || flow.Path != "/" || flow.MaxAge != 600 {
		t.Errorf("the flow cookie is %v", flow)
	}
	if secret, _, _ := strings.Cut(flow.Value, "."); strings.Contains(sent, secret) {
		t.Error("the redirect to the provider contains the flow's secret")
	}
	got := w.returnToCallback(t, provider.login(t, sent), flow)
	if got.code != http.StatusOK || !strings.Contains(got.body, `content="0; url=`+deepLink+`"`) {
		t.Fatalf("the answer is %d %s, want %d", got.code, got.body, http.StatusOK)
	}
	opened := sessionOf(got)
	if opened == nil || !opened.Secure || !opened.HttpOnly || opened.SameSite != http.SameSiteStrictMode || opened.MaxAge != 12*60*60 {
		t.Fatalf("the session cookie is %v", opened)
	}
	if !slices.ContainsFunc(got.cookies, func(c *http.Cookie) bool { return c.Name == flow.Name && c.MaxAge < 0 }) {
		t.Errorf("the answer does not delete the flow cookie: %v", got.cookies)
	}
	if got := w.do(t, w.plain, http.MethodGet, "/v0/workloads", cookie(opened)); got.code != http.StatusOK {
		t.Errorf("with the session: the answer is %d, want %d", got.code, http.StatusOK)
	}
	want := Principal{Name: subject + " jane@example.com", Subject: subject, Role: RoleViewer, Credential: CredentialSignOn}
	if w.principal() != want {
		t.Errorf("principal %+v, want %+v", w.principal(), want)
	}
	w.clock.advance(DefaultConfig().SessionLifetime)
	if got := w.do(t, w.plain, http.MethodGet, "/v0/workloads", cookie(opened)); got.code != http.StatusUnauthorized {
		t.Errorf("after %v: %d, want %d", DefaultConfig().SessionLifetime, got.code, http.StatusUnauthorized)
	}
	records := w.records()
	if len(records) != 1 || records[0].Principal != "sso:"+want.Name || records[0].Role != "viewer" || records[0].Path != CallbackPath || records[0].Code != http.StatusOK {
		t.Errorf("the audit log has %+v, want one sign-on", records)
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
		{reason: "a viewer", groups: []string{"staff", "ops"}, role: RoleViewer},
		{reason: "an administrator", groups: []string{"cn=root,ou=groups"}, role: RoleAdmin},
		{reason: "both", groups: []string{"ops", "cn=root,ou=groups"}, role: RoleAdmin},
		{reason: "a group as a string", groups: "ops", role: RoleViewer},
		{reason: "others", groups: []string{"staff"}},
		{reason: "another case", groups: []string{"OPS"}},
		{reason: "a part of a name", groups: []string{"op", "ops2", ""}},
		{reason: "a string with several groups", groups: "staff,ops"},
		{reason: "no groups", groups: []string{}},
		{reason: "no claim"},
		{reason: "groups that are not strings", groups: []any{1, true, nil, []string{"ops"}, map[string]any{"ops": "ops"}}},
		{reason: "an object", groups: map[string]any{"ops": true}},
	} {
		provider.change(func() { provider.claims["groups"] = tc.groups })
		got := w.signOn(t, provider)
		opened := sessionOf(got)
		if tc.role == "" {
			if got.code != http.StatusForbidden || opened != nil || !strings.Contains(got.body, "248289761001 jane@example.com") ||
				!strings.Contains(got.body, "ops, cn=root,ou=groups") {
				t.Errorf("%s: the answer is %d %s, want the required groups", tc.reason, got.code, got.body)
			}
			continue
		}
		if got.code != http.StatusOK || opened == nil {
			t.Errorf("%s: the answer is %d %s, want %d", tc.reason, got.code, got.body, http.StatusOK)
			continue
		}
		w.do(t, w.plain, http.MethodGet, "/v0/workloads", cookie(opened))
		if w.principal().Role != tc.role {
			t.Errorf("%s: %+v, want %s", tc.reason, w.principal(), tc.role)
		}
	}
	if len(w.store.tokens) != 4 || len(w.store.sessions) != 4 {
		t.Errorf("%d tokens and %d sessions for four people, want 4 and 4", len(w.store.tokens), len(w.store.sessions))
	}
	refused := slices.DeleteFunc(w.records(), func(r store.AuditRecord) bool { return r.Code != http.StatusForbidden })
	if len(refused) != 8 || refused[0].Principal != "sso:248289761001 jane@example.com" || refused[0].Role != "" {
		t.Errorf("the audit log has %+v, want 8 refusals", refused)
	}
}

// The callback does not match the flow of the browser.
func TestSignOn_InvalidCallback_IsRefused(t *testing.T) {
	for _, tc := range []struct {
		reason string
		code   int
		change func(w *world, back url.Values, flow *http.Cookie)
	}{
		{
			reason: "another state", code: http.StatusBadRequest,
			change: func(_ *world, back url.Values, _ *http.Cookie) { back.Set("state", newSession()) },
		},
		{reason: "no state", code: http.StatusBadRequest, change: func(_ *world, back url.Values, _ *http.Cookie) { back.Del("state") }},
		{reason: "another browser", code: http.StatusBadRequest, change: func(_ *world, _ url.Values, flow *http.Cookie) { flow.Name = "other" }},
		{
			reason: "the cookie for loopback", code: http.StatusBadRequest,
			change: func(_ *world, _ url.Values, flow *http.Cookie) { flow.Name = flowCookie },
		},
		{reason: "no flow", code: http.StatusBadRequest, change: func(_ *world, _ url.Values, flow *http.Cookie) { flow.Value = "x" }},
		{
			reason: "another flow", code: http.StatusBadRequest,
			change: func(_ *world, _ url.Values, flow *http.Cookie) { flow.Value = newSession() + flow.Value[43:] },
		},
		{
			reason: "a flow with an invalid expiry", code: http.StatusBadRequest,
			change: func(_ *world, _ url.Values, flow *http.Cookie) { flow.Value = newSession() + ".x." },
		},
		{reason: "too late", code: http.StatusBadRequest, change: func(w *world, _ url.Values, _ *http.Cookie) { w.clock.advance(flowLifetime) }},
		{reason: "the provider refuses", code: http.StatusUnauthorized, change: func(_ *world, back url.Values, _ *http.Cookie) {
			back.Del("code")
			back.Set("error", "access_denied")
			back.Set("error_description", "hunter2")
		}},
		{
			reason: "another code", code: http.StatusUnauthorized,
			change: func(_ *world, back url.Values, _ *http.Cookie) { back.Set("code", "hunter2") },
		},
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
		t.Errorf("the answer is %d %s, want %d", got.code, got.body, code)
	}
	if len(w.store.tokens)+len(w.store.sessions) != 0 {
		t.Error("the refused callback created a token or a session")
	}
	for _, kept := range []string{"hunter2", secret, clientSecret} {
		if kept != "" && strings.Contains(got.body+w.log.String(), kept) {
			t.Errorf("the answer or the log contains %s: %s\\n%s", kept, got.body, w.log)
		}
	}
	records := w.records()
	if code != http.StatusUnauthorized {
		if len(records) != 0 {
			t.Errorf("the audit log has %+v, want no record", records)
		}
		return
	}
	if len(records) != 1 || records[0].Principal != "anonymous:127.0.0.1" || records[0].Code != code {
		t.Errorf("the audit log has %+v, want one anonymous refusal", records)
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
		{"several audiences without azp", func(i *fakeIssuer, _ int64) { i.claims["aud"] = []string{clientID, "other"} }},
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
		{"signed with the public key", func(i *fakeIssuer, _ int64) {
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
		{reason: "a clock behind ours", claims: map[string]any{"exp": now - 30}, name: "248289761001 jane@example.com"},
		{reason: "a clock before ours", claims: map[string]any{"nbf": now + 120, "iat": now + 120}, name: "248289761001 jane@example.com"},
		{
			reason: "one audience of several",
			claims: map[string]any{"aud": []string{"other", clientID}, "azp": clientID},
			name:   "248289761001 jane@example.com",
		},
		{reason: "no name", claims: map[string]any{"email": nil}, name: "248289761001"},
		{reason: "a name that is not a string", claims: map[string]any{"email": 7}, name: "248289761001"},
		{reason: "a name with control characters", claims: map[string]any{"email": "Jané\r\n<b> Doe"}, name: "248289761001 Jan???<b>_Doe"},
	} {
		provider.change(func() {
			provider.claims = map[string]any{"groups": "ops"}
			maps.Copy(provider.claims, tc.claims)
		})
		got := w.signOn(t, provider)
		opened := sessionOf(got)
		if opened == nil {
			t.Errorf("%s: the answer is %d %s, want a session", tc.reason, got.code, got.body)
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
		t.Fatalf("the callback at another replica: the answer is %d %s, want a session", got.code, got.body)
	}
	for code, kept := range map[int][]*http.Cookie{http.StatusBadRequest: nil, http.StatusUnauthorized: {flow}} {
		if got := w.returnToCallback(t, back, kept...); got.code != code || sessionOf(got) != nil {
			t.Errorf("with %v: %d %s, want %d", kept, got.code, got.body, code)
		}
	}
	if len(w.store.sessions) != 1 {
		t.Errorf("%d sessions, want 1", len(w.store.sessions))
	}
}

func TestSignOn_CallbackAtOtherReplica(t *testing.T) {
	provider, s := startIssuer(t)
	here, there := start(t, s), start(t, s)
	sent, flow := here.startSignOn(t, deepLink)
	got := there.returnToCallback(t, provider.login(t, sent), flow)
	opened := sessionOf(got)
	if opened == nil || !strings.Contains(got.body, "url="+deepLink) {
		t.Fatalf("the answer is %d %s, want a session and a redirect to the requested page", got.code, got.body)
	}
	if got := here.do(t, here.plain, http.MethodGet, "/v0/workloads", cookie(opened)); got.code != http.StatusOK {
		t.Errorf("the answer is %d, want %d", got.code, http.StatusOK)
	}
}

func TestSignOn_Session_CanBeEnded(t *testing.T) {
	for reason, end := range map[string]func(t *testing.T, w *world, opened *http.Cookie){
		"by log-out": func(t *testing.T, w *world, opened *http.Cookie) {
			t.Helper()
			w.post(t, "/logout", nil, cookie(opened))
		},
		"by an administrator": func(t *testing.T, w *world, _ *http.Cookie) {
			t.Helper()
			list, err := w.Tokens().List(t.Context(), nil)
			if err != nil || len(list.Body.Items) != 1 {
				t.Fatalf("the list of tokens is %+v, error %v; want one", list, err)
			}
			token := list.Body.Items[0]
			if token.Subject != subject || token.Name != "jane@example.com" || token.ExpiresAt == nil || !token.ExpiresAt.Equal(w.now().Add(DefaultConfig().SessionLifetime)) {
				t.Errorf("the token of the session is %+v", token)
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
				t.Fatalf("before: %d, want %d", got, http.StatusOK)
			}
			end(t, w, opened)
			if got := asked(); got != http.StatusUnauthorized {
				t.Errorf("after: %d, want %d", got, http.StatusUnauthorized)
			}
		})
	}
}

func TestLoginPage_WithoutSingleSignOn(t *testing.T) {
	w := start(t, defaultOptions())
	if got := w.do(t, w.plain, http.MethodGet, "/login", browser); strings.Contains(got.body, "sso") || !strings.Contains(got.body, "autofocus") {
		t.Errorf("the log-in page is %s, want it without single sign-on", got.body)
	}
}

// A person may change their name at the identity provider, and keeps their limits.
func TestPrincipal_LimitKey_OfPerson(t *testing.T) {
	before, after := personPrincipal("248289761001", "jane@example.com", RoleViewer), personPrincipal("248289761001", "jane", RoleViewer)
	token := Principal{Name: "248289761001", Role: RoleViewer, Credential: CredentialToken}
	if before.LimitKey() != after.LimitKey() || before.LimitKey() == token.LimitKey() {
		t.Errorf("the keys are %q, %q and for a token %q", before.LimitKey(), after.LimitKey(), token.LimitKey())
	}
}
