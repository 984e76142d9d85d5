package auth

import (
	"net/http"
	"net/url"
	"testing"
)

func TestCheckOrigin_RequestsOfOtherSites(t *testing.T) {
	w := start(t, defaultSetting())
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
		if got := w.do(t, tc.client, tc.method, "/v0/tokens", tc.parts...); got.code != tc.code {
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

// Any page that a user opens can reach an API on their loopback interface.
func TestCheckOrigin_WithoutAuthentication(t *testing.T) {
	s := defaultSetting()
	s.config.Enabled, s.plain = false, true
	w := start(t, s)
	got := w.do(t, w.plain, http.MethodPost, "/v0/workload-instances", header("Sec-Fetch-Site", "cross-site"))
	if got.code != http.StatusForbidden {
		t.Errorf("%d", got.code)
	}
}

// The owner of a name can point it at loopback; their page is then same-origin with the API.
func TestCheckHost_WithoutAuthentication(t *testing.T) {
	s := defaultSetting()
	s.config.Enabled, s.plain, s.config.Hosts = false, true, []string{"devbox"}
	w := start(t, s)
	rebound := []func(*http.Request){host("evil.example:18001"), header("Origin", "http://evil.example:18001")}
	for _, tc := range []struct {
		reason string
		method string
		parts  []func(*http.Request)
		code   int
	}{
		{"a write", "POST", rebound, 421},
		{"with a header that a script adds", "POST", append(rebound, bearer("x")), 421},
		{"a read, which has no origin", "GET", []func(*http.Request){host("evil.example"), header("User-Agent", "Mozilla/5.0")}, 421},
		{"a read with a language", "GET", []func(*http.Request){host("evil.example"), header("Accept-Language", "")}, 421},
		{"a name that begins alike", "GET", []func(*http.Request){host("localhost.evil.example"), header("Accept-Language", "en")}, 421},
		{"no name", "GET", []func(*http.Request){host(":80"), header("Accept-Language", "en")}, 421},
		{"a client that is no browser", "POST", []func(*http.Request){host("controlplane.svc:1323")}, 200},
		{"localhost", "POST", []func(*http.Request){host("localhost:1323"), header("Origin", "http://localhost:1323")}, 200},
		{"localhost, in full", "GET", []func(*http.Request){host("LocalHost."), header("Accept-Language", "en")}, 200},
		{"below localhost", "GET", []func(*http.Request){host("api.localhost:1"), header("Accept-Language", "en")}, 200},
		{"an address", "POST", []func(*http.Request){host("192.0.2.7:1323"), header("Origin", "http://192.0.2.7:1323")}, 200},
		{"an address of IPv6", "GET", []func(*http.Request){host("[::1]:1323"), header("Accept-Language", "en")}, 200},
		{"an address without a port", "GET", []func(*http.Request){host("[2001:db8::1]"), header("Accept-Language", "en")}, 200},
		{"a configured name", "POST", []func(*http.Request){host("Devbox:1323"), header("Origin", "http://Devbox:1323")}, 200},
		{"an address, from another site", "POST", []func(*http.Request){host("192.0.2.7"), header("Origin", "http://evil.example")}, 403},
	} {
		if got := w.do(t, w.plain, tc.method, "/v0/tokens", tc.parts...); got.code != tc.code {
			t.Errorf("%s: %d %s, want %d", tc.reason, got.code, got.body, tc.code)
		}
	}
	secured := start(t, defaultSetting())
	_, secret := secured.token(t, RoleAdmin)
	if got := secured.do(t, secured.plain, http.MethodGet, "/v0/tokens", bearer(secret), host("devbox"), header("Origin", "https://devbox")); got.code != http.StatusOK {
		t.Errorf("with authentication: %d", got.code)
	}
}

func host(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
