package auth

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestSignOn_ProviderUnavailableAtStart(t *testing.T) {
	provider, s := startIssuer(t)
	provider.change(func() { provider.unavailable = true })
	w := start(t, s)
	if err := w.Authenticator.signOn.Discover(t.Context()); err == nil { // done by the discovery goroutine, or soon
		t.Fatal("Discover succeeded, want an unavailable provider")
	}
	if got := w.do(t, w.plain, http.MethodGet, "/login", browser); got.code != http.StatusOK || !strings.Contains(got.body, "did not answer") {
		t.Errorf("the answer is %d %s, want %d", got.code, got.body, http.StatusOK)
	}
	w.session(t, RoleViewer) // with a token
	refused := func() {
		t.Helper()
		got := w.do(t, w.plain, http.MethodGet, signOnPath, browser)
		if got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "5" || !strings.Contains(got.body, `role="alert"`) || len(got.cookies) != 0 {
			t.Errorf("the answer is %d %v %s, want %d", got.code, got.header, got.body, http.StatusServiceUnavailable)
		}
	}
	refused()
	if !strings.Contains(w.log.String(), "502 Bad Gateway: maintenance") || strings.Count(w.log.String(), "level") != 1 {
		t.Errorf("the log is %s, want the provider's error once", w.log)
	}
	provider.change(func() { provider.unavailable = false })
	refused() // no further request within retryInterval
	w.clock.advance(5 * time.Second)
	if got := w.signOn(t, provider); sessionOf(got) == nil {
		t.Errorf("sign-on with the recovered provider: the answer is %d %s, want a session", got.code, got.body)
	}
	if got := w.do(t, w.plain, http.MethodGet, "/login", browser); strings.Contains(got.body, "did not answer") {
		t.Errorf("the log-in page still says that the provider did not answer: %s", got.body)
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
		{
			reason: "away",
			change: answers(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "hunter2", http.StatusBadGateway) }),
			logged: "502 Bad Gateway",
		},
		{
			reason: "unavailable with invalid_grant",
			change: answers(refusal(http.StatusServiceUnavailable, "invalid_grant")),
			logged: "503 Service Unavailable",
		},
		{reason: "another secret", change: answers(refusal(http.StatusUnauthorized, "invalid_client")), logged: "invalid_client"},
		{reason: "elsewhere", change: answers(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://evil.example/", http.StatusTemporaryRedirect)
		}), logged: "307 Temporary Redirect"},
		{reason: "endless", change: answers(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"id_token": "` + strings.Repeat("hunter2", 1<<19) + `"}`))
		}), logged: "redeem code"},
		{reason: "keys unavailable", change: func(i *fakeIssuer) {
			sign := i.sign
			i.sign = func(claims string) string {
				i.unavailable = true
				return sign(claims)
			}
		}, logged: "get keys failed: 502 Bad Gateway"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			provider, s := startIssuer(t)
			w := start(t, s)
			provider.change(func() { tc.change(provider) })
			got := w.signOn(t, provider)
			if got.code != http.StatusServiceUnavailable || sessionOf(got) != nil || !strings.Contains(got.body, "identity provider is not available") {
				t.Errorf("the answer is %d %s, want %d", got.code, got.body, http.StatusServiceUnavailable)
			}
			if log := w.log.String(); !strings.Contains(log, tc.logged) || strings.Contains(log+got.body, "hunter2") {
				t.Errorf("the log is %s, want the cause and no secret", log)
			}
			if records := w.records(); len(records) != 0 {
				t.Errorf("the audit log has %+v, want no record", records)
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
			t.Errorf("for the next path %q the browser is sent to %s", hostile, sent)
		}
		kept, err := base64.RawURLEncoding.DecodeString(flow.Value[strings.LastIndex(flow.Value, ".")+1:])
		if err != nil || string(kept) != "/" {
			t.Errorf("the next path %q is stored in the flow as %q, error %v; want /", hostile, kept, err)
		}
		flow.Value = flow.Value[:strings.LastIndex(flow.Value, ".")+1] + base64.RawURLEncoding.EncodeToString([]byte(hostile))
		got := w.returnToCallback(t, provider.login(t, sent), flow)
		if got.code != http.StatusOK || !strings.Contains(got.body, `content="0; url=/"`) || got.header.Get("X-Evil") != "" {
			t.Errorf("%q: the answer is %d %v %s, want %d", hostile, got.code, got.header, got.body, http.StatusOK)
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
			t.Fatalf("callback %d without a flow: the answer is %d, want %d", i, got.code, http.StatusBadRequest)
		}
	}
	for i := range loginRate.Burst {
		if got := w.returnToCallback(t, strings.Replace(back, "code=", "code=x", 1), flow); got.code != http.StatusUnauthorized {
			t.Fatalf("attempt %d: %d, want %d", i, got.code, http.StatusUnauthorized)
		}
	}
	got := w.returnToCallback(t, back, flow)
	if got.code != http.StatusTooManyRequests || got.header.Get("Retry-After") != "6" {
		t.Fatalf("the answer is %d %v, want %d", got.code, got.header, http.StatusTooManyRequests)
	}
	w.clock.advance(6 * time.Second)
	if got := w.returnToCallback(t, back, flow); sessionOf(got) == nil {
		t.Errorf("sign-on after the rate limit: the answer is %d %s, want a session", got.code, got.body)
	}
}
