package auth

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

var browser = header("Accept", "text/html,application/xhtml+xml;q=0.9")

func TestLogin(t *testing.T) {
	w := start(t, defaultOptions())
	_, secret := w.token(t, RoleViewer)
	asked := w.do(t, w.plain, http.MethodGet, "/workloads/WorkloadInstance/7?tab=tree", browser)
	form, err := url.Parse(asked.header.Get("Location"))
	if err != nil || asked.code != http.StatusSeeOther || form.Path != "/login" {
		t.Fatalf("the answer is %d %v, want %d", asked.code, asked.header, http.StatusSeeOther)
	}
	page := w.do(t, w.plain, http.MethodGet, form.String(), browser)
	if page.code != http.StatusOK || !strings.Contains(page.body, `name="next" value="/workloads/WorkloadInstance/7?tab=tree"`) {
		t.Fatalf("the answer is %d %s, want %d", page.code, page.body, http.StatusOK)
	}
	got := w.post(t, "/login", url.Values{"token": {" " + secret + "\n"}, "next": {form.Query().Get("next")}}, browser)
	if got.code != http.StatusSeeOther || got.header.Get("Location") != "/workloads/WorkloadInstance/7?tab=tree" || len(got.cookies) != 1 {
		t.Fatalf("the answer is %d %v %s, want %d", got.code, got.header, got.body, http.StatusSeeOther)
	}
	set := got.header.Get("Set-Cookie")
	for _, want := range []string{tlsCookie + "=", "; Path=/;", "; Max-Age=43200;", "; HttpOnly", "; Secure", "; SameSite=Strict"} {
		if !strings.Contains(set, want) || strings.Contains(set, "Domain") {
			t.Errorf("cookie %s, without %s", set, want)
		}
	}
	opened := got.cookies[0]
	if got := w.do(t, w.plain, http.MethodGet, "/", browser, cookie(opened)); got.code != http.StatusOK || w.principal().Credential != CredentialSession {
		t.Errorf("the answer is %d %+v, want %d", got.code, w.principal(), http.StatusOK)
	}
	for hash := range w.store.sessions {
		if strings.Contains(hash, opened.Value) || len(hash) != len(digest{}) {
			t.Error("the store has the session's secret, want only its hash")
		}
	}
	w.clock.advance(DefaultConfig().SessionLifetime)
	if got := w.do(t, w.plain, http.MethodGet, "/", browser, cookie(opened)); got.code != http.StatusSeeOther {
		t.Errorf("after %v: %d, want %d", DefaultConfig().SessionLifetime, got.code, http.StatusSeeOther)
	}
}

func TestLogin_Session_EndsWithToken(t *testing.T) {
	w := start(t, defaultOptions())
	opened := w.session(t, RoleViewer, func(n *NewToken) { n.ExpiresAt = new(w.now().Add(time.Hour)) })
	if opened.MaxAge != 3600 {
		t.Errorf("cookie lifetime %d s, want 3600", opened.MaxAge)
	}
	w.clock.advance(time.Hour)
	if got := w.do(t, w.plain, http.MethodGet, "/v0/workloads", cookie(opened)); got.code != http.StatusUnauthorized {
		t.Errorf("the answer is %d, want %d", got.code, http.StatusUnauthorized)
	}
}

func TestLogin_Again_EndsFirstSession(t *testing.T) {
	w := start(t, defaultOptions())
	first := w.session(t, RoleViewer)
	_, secret := w.token(t, RoleAdmin)
	second := w.post(t, "/login", url.Values{"token": {secret}}, cookie(first))
	if second.code != http.StatusSeeOther || len(w.store.sessions) != 1 {
		t.Fatalf("the answer is %d, %d sessions, want %d and 1", second.code, len(w.store.sessions), http.StatusSeeOther)
	}
	if got := w.do(t, w.plain, http.MethodGet, "/v0/workloads", cookie(first)); got.code != http.StatusUnauthorized {
		t.Errorf("the answer is %d, want %d", got.code, http.StatusUnauthorized)
	}
}

func TestLogout(t *testing.T) {
	w := start(t, defaultOptions())
	opened := w.session(t, RoleViewer)
	w.do(t, w.plain, http.MethodGet, "/v0/workloads", cookie(opened)) // so that the token is cached
	got := w.post(t, "/logout", nil, cookie(opened))
	if got.code != http.StatusSeeOther || got.header.Get("Location") != "/login" || len(got.cookies) != 1 || got.cookies[0].MaxAge >= 0 {
		t.Fatalf("the answer is %d %v, want %d", got.code, got.header, http.StatusSeeOther)
	}
	if got := w.do(t, w.plain, http.MethodGet, "/v0/workloads", cookie(opened)); got.code != http.StatusUnauthorized || len(w.store.sessions) != 0 {
		t.Errorf("a request with the ended session: the answer is %d, want %d", got.code, http.StatusUnauthorized)
	}
	if got := w.post(t, "/logout", nil); got.code != http.StatusSeeOther {
		t.Errorf("a log-out without a session: the answer is %d, want %d", got.code, http.StatusSeeOther)
	}
	if got := w.do(t, w.plain, http.MethodGet, "/logout"); got.code == http.StatusSeeOther {
		t.Error("a GET request ended the session")
	}
}

func TestLogin_Invalid_IsRefused(t *testing.T) {
	w := start(t, defaultOptions())
	_, agent := w.token(t, RoleAgent)
	_, expired := w.token(t, RoleViewer, func(n *NewToken) { n.ExpiresAt = new(w.now().Add(time.Second)) })
	w.clock.advance(time.Second)
	for _, tc := range []struct {
		reason string
		form   url.Values
		code   int
	}{
		{reason: "unknown", form: url.Values{"token": {newToken(RoleViewer)}}, code: http.StatusUnauthorized},
		{reason: "no token", form: url.Values{"token": {"hunter2 <b>"}}, code: http.StatusUnauthorized},
		{reason: "empty", form: url.Values{}, code: http.StatusUnauthorized},
		{reason: "expired", form: url.Values{"token": {expired}}, code: http.StatusUnauthorized},
		{reason: "an agent's", form: url.Values{"token": {agent}}, code: http.StatusForbidden},
		{reason: "too large", form: url.Values{"token": {strings.Repeat("x", MaxForm)}}, code: http.StatusBadRequest},
	} {
		got := w.post(t, "/login", tc.form)
		if got.code != tc.code || len(got.cookies) != 0 || !strings.Contains(got.body, `role="alert"`) {
			t.Errorf("%s: the answer is %d %v, want %d", tc.reason, got.code, got.header, tc.code)
		}
		if secret := tc.form.Get("token"); secret != "" && strings.Contains(got.body+w.log.String(), secret) || strings.Contains(got.body, "hunter2") {
			t.Errorf("%s: the answer or the log contains the token", tc.reason)
		}
	}
	if got := w.post(t, "/login", url.Values{"token": {agent}}, header("Content-Type", "multipart/form-data")); got.code == http.StatusSeeOther {
		t.Errorf("a form that is too large: the answer is %d, want an error", got.code)
	}
}

func TestLogin_UnknownAndMalformedToken_LookAlike(t *testing.T) {
	w := start(t, defaultOptions())
	unknown := w.post(t, "/login", url.Values{"token": {newToken(RoleViewer)}})
	between := w.store.count()
	none := w.post(t, "/login", url.Values{"token": {"x"}})
	if unknown.body != none.body || unknown.code != none.code || w.store.count() != between+1 {
		t.Errorf("the answers to an unknown and to a malformed token differ: %d %s\\n%d %s", unknown.code, unknown.body, none.code, none.body)
	}
}

func TestLogin_Failures_AreRateLimited(t *testing.T) {
	w := start(t, defaultOptions())
	_, secret := w.token(t, RoleViewer)
	wrong := func() reply { return w.post(t, "/login", url.Values{"token": {"x"}}) }
	for i := range loginRate.Burst {
		if got := wrong(); got.code != http.StatusUnauthorized {
			t.Fatalf("attempt %d: %d, want %d", i, got.code, http.StatusUnauthorized)
		}
	}
	got := wrong()
	if got.code != http.StatusTooManyRequests || got.header.Get("Retry-After") != "6" || !strings.Contains(got.body, "in 6 s") {
		t.Fatalf("the answer is %d %v %s, want %d", got.code, got.header, got.body, http.StatusTooManyRequests)
	}
	if got := w.post(t, "/login", url.Values{"token": {secret}}); got.code != http.StatusSeeOther {
		t.Fatalf("a valid token: the answer is %d, want %d: it need not wait for the failures of others at its address", got.code, http.StatusSeeOther)
	}
	if got := wrong(); got.code != http.StatusUnauthorized {
		t.Errorf("a success did not reset the limit: the answer is %d, want %d", got.code, http.StatusUnauthorized)
	}
}

// Each log-in stores a session for hours, so a token has few a minute.
func TestLogin_Successes_AreRateLimited(t *testing.T) {
	w := start(t, defaultOptions())
	_, secret := w.token(t, RoleViewer)
	_, other := w.token(t, RoleViewer)
	login := func(secret string) reply { return w.post(t, "/login", url.Values{"token": {secret}}) }
	for i := range sessionRate.Burst {
		if got := login(secret); got.code != http.StatusSeeOther {
			t.Fatalf("log-in %d: %d, want %d", i, got.code, http.StatusSeeOther)
		}
	}
	if got := login(secret); got.code != http.StatusTooManyRequests || got.header.Get("Retry-After") != "6" {
		t.Errorf("the answer is %d %v, want %d", got.code, got.header, http.StatusTooManyRequests)
	}
	if got := login(other); got.code != http.StatusSeeOther {
		t.Errorf("another token: the answer is %d, want %d", got.code, http.StatusSeeOther)
	}
	w.flush()
	if got := w.store.prunes(); got != 1 {
		t.Errorf("expired sessions were deleted %d times, want once a minute", got)
	}
	w.clock.advance(time.Minute)
	if got := login(secret); got.code != http.StatusSeeOther {
		t.Errorf("a minute later: the answer is %d, want %d", got.code, http.StatusSeeOther)
	}
	w.flush()
	if got := w.store.prunes(); got != 2 {
		t.Errorf("after a minute, expired sessions were deleted %d times, want twice", got)
	}
}

func TestLogin_StoreFails_IsUnavailable(t *testing.T) {
	w := start(t, defaultOptions())
	_, secret := w.token(t, RoleViewer)
	w.store.fail(errors.New("connection refused"))
	got := w.post(t, "/login", url.Values{"token": {secret}})
	if got.code != http.StatusServiceUnavailable || strings.Contains(got.body, "refused") || !strings.Contains(w.log.String(), "connection refused") {
		t.Errorf("the answer is %d %s, logged %s, want %d", got.code, got.body, w.log, http.StatusServiceUnavailable)
	}
	if got := w.post(t, "/logout", nil, cookie(&http.Cookie{Name: tlsCookie, Value: newSession()})); got.code != http.StatusServiceUnavailable {
		t.Errorf("log-out: the answer is %d, want %d", got.code, http.StatusServiceUnavailable)
	}
}

func TestLogin_PlainHTTPNotOnLoopback_IsRefused(t *testing.T) {
	w := start(t, defaultOptions())
	_, secret := w.token(t, RoleViewer)
	// Without the server's address, a request counts as unprotected.
	for _, tc := range []struct{ method, path, body string }{
		{method: http.MethodPost, path: "/login", body: "token=" + secret}, {method: http.MethodGet, path: "/v0/workloads"},
	} {
		req := httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, strings.NewReader(tc.body))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if tc.body == "" {
			req.Header.Set("Authorization", "Bearer "+secret)
		}
		rec := httptest.NewRecorder()
		w.server.Config.Handler.ServeHTTP(rec, req)
		if rec.Code < 400 || !strings.Contains(rec.Body.String(), "oken requires TLS") || rec.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s %s: the answer is %d %s, want that a token requires TLS", tc.method, tc.path, rec.Code, rec.Body)
		}
	}
}

func TestLoginPage_Headers(t *testing.T) {
	w := start(t, defaultOptions())
	hostile := `/"><script>alert(1)</script>`
	for _, path := range []string{"/login", "/login?next=" + url.QueryEscape(hostile)} {
		got := w.do(t, w.plain, http.MethodGet, path)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
			"Content-Type": "text/html; charset=utf-8",
		} {
			if got.header.Get(name) != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got.header.Get(name), want)
			}
		}
		if strings.Contains(got.body, "<script") || strings.Contains(got.body, "style=") {
			t.Errorf("%s: the page has a script or an inline style: %s", path, got.body)
		}
	}
}

func TestLocalPath(t *testing.T) {
	for _, tc := range []struct{ given, want string }{
		{"/", "/"},
		{"/workloads/WorkloadInstance/7", "/workloads/WorkloadInstance/7"},
		{"/?status=Down&text=a%20b", "/?status=Down&text=a%20b"},
		{"/?back=https://evil.example/", "/?back=https://evil.example/"},
		{"", "/"},
		{"workloads", "/"},
		{"//evil.example", "/"},
		{"///evil.example", "/"},
		{"/\\evil.example", "/"},
		{"\\\\evil.example", "/"},
		{"/\t/evil.example", "/"},
		{"/\n/evil.example", "/"},
		{"\t//evil.example", "/"},
		{" /x", "/"},
		{"/.//evil.example", "/"},
		{"/x/..//evil.example", "/"},
		{"/%2e%2e//evil.example", "/"},
		{"/%2f/evil.example", "/"},
		{"https://evil.example/", "/"},
		{"https:evil.example", "/"},
		{"javascript:alert(1)", "/"},
		{"/x\r\nSet-Cookie: a=b", "/"},
		{"/é", "/"},
		{"/%zz", "/"},
		{"/login", "/"},
		{"/login?next=/login", "/"},
		{"/logout", "/"},
		{"/" + strings.Repeat("x", maxNext), "/"},
	} {
		if got := localPath(tc.given); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.given, got, tc.want)
		}
	}
}

func TestLogin_Next_IsValidatedTwice(t *testing.T) {
	w := start(t, defaultOptions())
	_, secret := w.token(t, RoleViewer)
	for _, next := range []string{"//evil.example", "/\\evil.example", "https://evil.example", "/x\r\nX-Evil: 1"} {
		if got := w.do(t, w.plain, http.MethodGet, "/login?next="+url.QueryEscape(next)); !strings.Contains(got.body, `name="next" value="/"`) {
			t.Errorf("the log-in page for the next path %q is %s, want /", next, got.body)
		}
		got := w.post(t, "/login", url.Values{"token": {secret}, "next": {next}})
		if got.header.Get("Location") != "/" || got.header.Get("X-Evil") != "" {
			t.Errorf("after the log-in with the next path %q the headers are %v, want the location /", next, got.header)
		}
	}
	got := w.do(t, w.plain, http.MethodGet, "//evil.example/x", browser)
	if got.header.Get("Location") != "/login?next=%2F" {
		t.Errorf("a path that looks like a host: the headers are %v, want the location of the log-in page", got.header)
	}
}

// A browser that follows a link on another site sends no cookie, and is made to repeat the request.
func TestMiddleware_LinkFromOtherSite_IsRepeated(t *testing.T) {
	w := start(t, defaultOptions())
	got := w.do(t, w.plain, http.MethodGet, "/workloads/WorkloadInstance/7", browser, header("Sec-Fetch-Site", "cross-site"))
	if got.code != http.StatusUnauthorized || !strings.Contains(got.body, `content="0; url=/workloads/WorkloadInstance/7"`) {
		t.Errorf("the answer is %d %s, want %d", got.code, got.body, http.StatusUnauthorized)
	}
	got = w.do(t, w.plain, http.MethodGet, "/workloads/WorkloadInstance/7", browser, header("Sec-Fetch-Site", "same-origin"))
	if got.code != http.StatusSeeOther {
		t.Errorf("repeated: the answer is %d, want %d", got.code, http.StatusSeeOther)
	}
}

func TestMiddleware_OnlyPages_RedirectToLogin(t *testing.T) {
	w := start(t, defaultOptions())
	for _, tc := range []struct {
		reason, method, accept string
		code                   int
	}{
		{reason: "a page", method: "GET", accept: "text/html", code: http.StatusSeeOther},
		{reason: "the head of a page", method: "HEAD", accept: "Text/HTML", code: http.StatusSeeOther},
		{reason: "JSON", method: "GET", accept: "application/json", code: http.StatusUnauthorized},
		{reason: "any type", method: "GET", accept: "*/*", code: http.StatusUnauthorized},
		{reason: "a write", method: "POST", accept: "text/html", code: http.StatusUnauthorized},
	} {
		if got := w.do(t, w.plain, tc.method, "/v0/workloads", header("Accept", tc.accept)); got.code != tc.code {
			t.Errorf("%s: the answer is %d, want %d", tc.reason, got.code, tc.code)
		}
	}
}

func TestLogin_DeletesExpiredSessions(t *testing.T) {
	w := start(t, defaultOptions())
	w.session(t, RoleViewer)
	w.clock.advance(DefaultConfig().SessionLifetime)
	w.session(t, RoleViewer)
	w.Close()
	if got := len(w.store.sessions); got != 1 {
		t.Errorf("%d sessions, want 1", got)
	}
}
