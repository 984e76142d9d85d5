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
		{
			reason: "same origin", client: plain, method: "POST",
			parts: []func(*http.Request){cookie(opened), header("Sec-Fetch-Site", "same-origin")},
			code:  200,
		},
		{
			reason: "cross-site", client: plain, method: "POST",
			parts: []func(*http.Request){cookie(opened), header("Sec-Fetch-Site", "cross-site")},
			code:  403,
		},
		{
			reason: "another host of the same site", client: plain, method: "DELETE",
			parts: []func(*http.Request){cookie(opened), header("Sec-Fetch-Site", "same-site")},
			code:  403,
		},
		{
			reason: "older browser, same origin", client: plain, method: "POST",
			parts: []func(*http.Request){cookie(opened), header("Origin", w.server.URL)},
			code:  200,
		},
		{
			reason: "older browser, cross-site", client: plain, method: "PATCH",
			parts: []func(*http.Request){cookie(opened), header("Origin", "https://evil.example")},
			code:  403,
		},
		{
			reason: "sandboxed page", client: plain, method: "POST", parts: []func(*http.Request){cookie(opened), header("Origin", "null")},
			code: 403,
		},
		{
			reason: "with a certificate", client: certified, method: "POST",
			parts: []func(*http.Request){header("Sec-Fetch-Site", "cross-site")}, code: 403,
		},
		{
			reason: "bearer token", client: plain, method: "POST",
			parts: []func(*http.Request){bearer(secret), header("Sec-Fetch-Site", "cross-site")},
			code:  200,
		},
		{
			reason: "invalid bearer token with a cookie", client: plain, method: "POST",
			parts: []func(*http.Request){bearer("x"), cookie(opened), header("Sec-Fetch-Site", "cross-site")},
			code:  401,
		},
		{reason: "not a browser", client: certified, method: "POST", code: 200},
		{
			reason: "read", client: plain, method: "GET",
			parts: []func(*http.Request){cookie(opened), header("Sec-Fetch-Site", "cross-site")},
			code:  200,
		},
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
		{reason: "write", method: "POST", parts: rebound, code: 421},
		{reason: "with a header that a script adds", method: "POST", parts: append(rebound, bearer("x")), code: 421},
		{
			reason: "a read, which has no origin", method: "GET",
			parts: []func(*http.Request){host("evil.example"), header("User-Agent", "Mozilla/5.0")},
			code:  421,
		},
		{
			reason: "a read with a language", method: "GET",
			parts: []func(*http.Request){host("evil.example"), header("Accept-Language", "")},
			code:  421,
		},
		{
			reason: "name with the same prefix", method: "GET",
			parts: []func(*http.Request){host("localhost.evil.example"), header("Accept-Language", "en")},
			code:  421,
		},
		{reason: "no name", method: "GET", parts: []func(*http.Request){host(":80"), header("Accept-Language", "en")}, code: 421},
		{reason: "client that is not a browser", method: "POST", parts: []func(*http.Request){host("controlplane.svc:1323")}, code: 200},
		{
			reason: "localhost", method: "POST",
			parts: []func(*http.Request){host("localhost:1323"), header("Origin", "http://localhost:1323")},
			code:  200,
		},
		{
			reason: "localhost with a trailing dot", method: "GET",
			parts: []func(*http.Request){host("LocalHost."), header("Accept-Language", "en")},
			code:  200,
		},
		{
			reason: "subdomain of localhost", method: "GET",
			parts: []func(*http.Request){host("api.localhost:1"), header("Accept-Language", "en")},
			code:  200,
		},
		{
			reason: "IPv4 address", method: "POST",
			parts: []func(*http.Request){host("192.0.2.7:1323"), header("Origin", "http://192.0.2.7:1323")},
			code:  200,
		},
		{reason: "IPv6 address", method: "GET", parts: []func(*http.Request){host("[::1]:1323"), header("Accept-Language", "en")}, code: 200},
		{
			reason: "an address without a port", method: "GET",
			parts: []func(*http.Request){host("[2001:db8::1]"), header("Accept-Language", "en")},
			code:  200,
		},
		{
			reason: "a configured name", method: "POST",
			parts: []func(*http.Request){host("Devbox:1323"), header("Origin", "http://Devbox:1323")},
			code:  200,
		},
		{
			reason: "IP address, cross-site", method: "POST",
			parts: []func(*http.Request){host("192.0.2.7"), header("Origin", "http://evil.example")},
			code:  403,
		},
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
