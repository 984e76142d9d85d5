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
		{"unavailable with invalid_grant", answers(refusal(http.StatusServiceUnavailable, "invalid_grant")), "503 Service Unavailable"},
		{"another secret", answers(refusal(http.StatusUnauthorized, "invalid_client")), "invalid_client"},
		{"elsewhere", answers(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://evil.example/", http.StatusTemporaryRedirect)
		}), "307 Temporary Redirect"},
		{"endless", answers(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"id_token": "` + strings.Repeat("hunter2", 1<<19) + `"}`))
		}), "redeem code"},
		{"keys unavailable", func(i *fakeIssuer) {
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
