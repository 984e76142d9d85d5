package auth

import (
	"net/http"
	"net/url"
	"testing"
)

func TestCheckOrigin_RequestsOfOtherSites(t *testing.T) {
	w := start(t, defaultOptions())
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
		{"same origin", plain, "POST", []func(*http.Request){cookie(opened), header("Sec-Fetch-Site", "same-origin")}, 200},
		{"cross-site", plain, "POST", []func(*http.Request){cookie(opened), header("Sec-Fetch-Site", "cross-site")}, 403},
		{"another host of the same site", plain, "DELETE", []func(*http.Request){cookie(opened), header("Sec-Fetch-Site", "same-site")}, 403},
		{"older browser, same origin", plain, "POST", []func(*http.Request){cookie(opened), header("Origin", w.server.URL)}, 200},
		{"older browser, cross-site", plain, "PATCH", []func(*http.Request){cookie(opened), header("Origin", "https://evil.example")}, 403},
		{"sandboxed page", plain, "POST", []func(*http.Request){cookie(opened), header("Origin", "null")}, 403},
		{"with a certificate", certified, "POST", []func(*http.Request){header("Sec-Fetch-Site", "cross-site")}, 403},
		{"bearer token", plain, "POST", []func(*http.Request){bearer(secret), header("Sec-Fetch-Site", "cross-site")}, 200},
		{"invalid bearer token with a cookie", plain, "POST", []func(*http.Request){bearer("x"), cookie(opened), header("Sec-Fetch-Site", "cross-site")}, 401},
		{"not a browser", certified, "POST", nil, 200},
		{"read", plain, "GET", []func(*http.Request){cookie(opened), header("Sec-Fetch-Site", "cross-site")}, 200},
	} {
		if got := w.do(t, tc.client, tc.method, "/v0/tokens", tc.parts...); got.code != tc.code {
			t.Errorf("%s: %d, want %d", tc.reason, got.code, tc.code)
		}
	}
	foreign := header("Sec-Fetch-Site", "cross-site")
	if got := w.post(t, "/login", url.Values{"token": {secret}}, foreign); got.code != http.StatusForbidden || len(got.cookies) != 0 {
		t.Errorf("log-in: the answer is %d, want %d", got.code, http.StatusForbidden)
	}
	if got := w.post(t, "/logout", nil, foreign, cookie(opened)); got.code != http.StatusForbidden || len(w.store.sessions) != 1 {
		t.Errorf("log-out: the answer is %d, want %d", got.code, http.StatusForbidden)
	}
}

// Any page that a user opens can reach an API on their loopback interface.
func TestCheckOrigin_WithoutAuthentication(t *testing.T) {
	s := defaultOptions()
	s.config.Enabled, s.plain = false, true
	w := start(t, s)
	got := w.do(t, w.plain, http.MethodPost, "/v0/workload-instances", header("Sec-Fetch-Site", "cross-site"))
	if got.code != http.StatusForbidden {
		t.Errorf("the answer is %d, want %d", got.code, http.StatusForbidden)
	}
}

// The owner of a name can point it at loopback; their page is then same-origin with the API.
func TestCheckHost_WithoutAuthentication(t *testing.T) {
	s := defaultOptions()
	s.config.Enabled, s.plain, s.config.Hosts = false, true, []string{"devbox"}
	w := start(t, s)
	rebound := []func(*http.Request){host("evil.example:18001"), header("Origin", "http://evil.example:18001")}
	for _, tc := range []struct {
		reason string
		method string
		parts  []func(*http.Request)
		code   int
	}{
		{"write", "POST", rebound, 421},
		{"with a header that a script adds", "POST", append(rebound, bearer("x")), 421},
		{"a read, which has no origin", "GET", []func(*http.Request){host("evil.example"), header("User-Agent", "Mozilla/5.0")}, 421},
		{"a read with a language", "GET", []func(*http.Request){host("evil.example"), header("Accept-Language", "")}, 421},
		{"name with the same prefix", "GET", []func(*http.Request){host("localhost.evil.example"), header("Accept-Language", "en")}, 421},
		{"no name", "GET", []func(*http.Request){host(":80"), header("Accept-Language", "en")}, 421},
		{"client that is not a browser", "POST", []func(*http.Request){host("controlplane.svc:1323")}, 200},
		{"localhost", "POST", []func(*http.Request){host("localhost:1323"), header("Origin", "http://localhost:1323")}, 200},
		{"localhost with a trailing dot", "GET", []func(*http.Request){host("LocalHost."), header("Accept-Language", "en")}, 200},
		{"subdomain of localhost", "GET", []func(*http.Request){host("api.localhost:1"), header("Accept-Language", "en")}, 200},
		{"IPv4 address", "POST", []func(*http.Request){host("192.0.2.7:1323"), header("Origin", "http://192.0.2.7:1323")}, 200},
		{"IPv6 address", "GET", []func(*http.Request){host("[::1]:1323"), header("Accept-Language", "en")}, 200},
		{"an address without a port", "GET", []func(*http.Request){host("[2001:db8::1]"), header("Accept-Language", "en")}, 200},
		{"a configured name", "POST", []func(*http.Request){host("Devbox:1323"), header("Origin", "http://Devbox:1323")}, 200},
		{"IP address, cross-site", "POST", []func(*http.Request){host("192.0.2.7"), header("Origin", "http://evil.example")}, 403},
	} {
		if got := w.do(t, w.plain, tc.method, "/v0/tokens", tc.parts...); got.code != tc.code {
			t.Errorf("%s: %d %s, want %d", tc.reason, got.code, got.body, tc.code)
		}
	}
	secured := start(t, defaultOptions())
	_, secret := secured.token(t, RoleAdmin)
	if got := secured.do(t, secured.plain, http.MethodGet, "/v0/tokens", bearer(secret), host("devbox"), header("Origin", "https://devbox")); got.code != http.StatusOK {
		t.Errorf("with authentication: the answer is %d, want %d", got.code, http.StatusOK)
	}
}

func host(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
