package access

import (
	"net/http"
	"net/url"
	"testing"
)

func TestRequestsOfOtherSites(t *testing.T) {
	w := start(t, usual())
	opened := w.session(t, RoleAdmin)
	_, secret := w.token(t, RoleAdmin)
	plain, certified := w.plain, w.client(t, certificate(t, w.authority, "root", "threeport:admins"))
	for _, tc := range []struct {
		reason string
		client *http.Client
		method string
		parts  []func(*http.Request)
		code   int
	}{
		{"the page's own", plain, "POST", []func(*http.Request){cookie(opened), header("Sec-Fetch-Site", "same-origin")}, 200},
		{"another site's", plain, "POST", []func(*http.Request){cookie(opened), header("Sec-Fetch-Site", "cross-site")}, 403},
		{"another host's of this site", plain, "DELETE", []func(*http.Request){cookie(opened), header("Sec-Fetch-Site", "same-site")}, 403},
		{"an older browser's, own", plain, "POST", []func(*http.Request){cookie(opened), header("Origin", w.server.URL)}, 200},
		{"an older browser's, another site's", plain, "PATCH", []func(*http.Request){cookie(opened), header("Origin", "https://evil.example")}, 403},
		{"a sandbox's", plain, "POST", []func(*http.Request){cookie(opened), header("Origin", "null")}, 403},
		{"with a certificate", certified, "POST", []func(*http.Request){header("Sec-Fetch-Site", "cross-site")}, 403},
		{"a token, which no browser adds", plain, "POST", []func(*http.Request){bearer(secret), header("Sec-Fetch-Site", "cross-site")}, 200},
		{"a token that does not count, with a cookie", plain, "POST", []func(*http.Request){bearer("x"), cookie(opened), header("Sec-Fetch-Site", "cross-site")}, 401},
		{"no browser's", certified, "POST", nil, 200},
		{"one that reads", plain, "GET", []func(*http.Request){cookie(opened), header("Sec-Fetch-Site", "cross-site")}, 200},
	} {
		if got := w.ask(t, tc.client, tc.method, "/v0/tokens", tc.parts...); got.code != tc.code {
			t.Errorf("%s: %d, want %d", tc.reason, got.code, tc.code)
		}
	}
	foreign := header("Sec-Fetch-Site", "cross-site")
	if got := w.post(t, "/login", url.Values{"token": {secret}}, foreign); got.code != http.StatusForbidden || len(got.cookies) != 0 {
		t.Errorf("log-in: %d", got.code)
	}
	if got := w.post(t, "/logout", nil, foreign, cookie(opened)); got.code != http.StatusForbidden || len(w.store.sessions) != 1 {
		t.Errorf("log-out: %d", got.code)
	}
}

// An API on loopback without authentication can be reached by any page that its user looks at.
func TestRequestsOfOtherSitesWhereAuthenticationIsDisabled(t *testing.T) {
	s := usual()
	s.config.Enabled, s.plain = false, true
	w := start(t, s)
	got := w.ask(t, w.plain, http.MethodPost, "/v0/workload-instances", header("Sec-Fetch-Site", "cross-site"))
	if got.code != http.StatusForbidden {
		t.Errorf("%d", got.code)
	}
}
