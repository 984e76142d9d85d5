package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestServer_SecurityHeaders(t *testing.T) {
	onTLS(t, nil, func(t *testing.T, s *tlsServer) {
		t.Helper()
		admin := s.token(t, "--role=admin", "--name=root")
		for _, path := range []string{
			"/v0/workloads", "/v0/workload-instances", "/v0/workload-instances/1", "/v0/tokens", "/v0/audit-records", "/metrics",
			"/openapi.json", "/healthz", "/readyz", "/unknown", "/workload-report-sets/versions", "/v0/clusters/c/objects/o",
		} {
			for reason, token := range map[string]string{"an administrator": admin, "nobody": ""} {
				got := s.send(t, token, http.MethodGet, path, "")
				for name, want := range map[string]string{
					"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Strict-Transport-Security": "max-age=31536000",
				} {
					if has := got.header.Values(name); len(has) != 1 || has[0] != want {
						t.Errorf("GET %s by %s: %d with %s: %q, want %q", path, reason, got.code, name, has, want)
					}
				}
			}
		}
		if got := s.send(t, admin, http.MethodGet, "/", "").header.Get("Cache-Control"); got != "no-cache" {
			t.Errorf("the page has Cache-Control: %q, want its own", got)
		}
	})
}

// A browser applies Strict-Transport-Security to all ports of a name, so it would change every server at localhost.
func TestServer_WithoutTLSOrAtLocalhost_HasNoTransportSecurity(t *testing.T) {
	url := run(t, plain())
	if got := send(t, http.DefaultClient, http.MethodGet, url+"/healthz", http.Header{}, nil).header; got.Get("Strict-Transport-Security") != "" || got.Get("Cache-Control") != "no-store" {
		t.Errorf("without TLS the headers are %v, want no Strict-Transport-Security", got)
	}
	for host, want := range map[string]bool{
		"localhost": true, "localhost:8443": true, "LOCALHOST.:1": true, "a.localhost": true, "threeport.example": false, "192.0.2.1:80": false, "": false,
	} {
		if got := isLocalhost(host); got != want {
			t.Errorf("isLocalhost(%q) = %t, want %t", host, got, want)
		}
	}
}

// Unfinished headers hold memory before anybody is authenticated. The longest header that a client needs has a cursor of 8 KiB.
func TestServer_LongHeader_IsRefused(t *testing.T) {
	url := run(t, onFile(t))
	for size, code := range map[int]int{12 << 10: http.StatusOK, 24 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		got := send(t, http.DefaultClient, http.MethodGet, url+"/healthz", http.Header{"X-Long": {strings.Repeat("x", size)}}, nil)
		if got.code != code {
			t.Errorf("a header of %d bytes: the answer is %d, want %d", size, got.code, code)
		}
	}
}

// A request with many short header fields is refused before it is authenticated.
func TestServer_ManyHeaderFields_AreRefused(t *testing.T) {
	url := run(t, plain())
	for fields, want := range map[int]int{maxHeaderFields / 2: http.StatusOK, maxHeaderFields + 1: http.StatusRequestHeaderFieldsTooLarge} {
		header := http.Header{"A": slices.Repeat([]string{""}, fields)} // of one name
		if got := send(t, http.DefaultClient, http.MethodGet, url+"/v0/workloads", header, nil); got.code != want {
			t.Errorf("a request with %d header fields of one name: %d, want %d", fields, got.code, want)
		}
		header = http.Header{}
		for i := range fields {
			header.Set(fmt.Sprint("X-", i), "")
		}
		if got := send(t, http.DefaultClient, http.MethodGet, url+"/v0/workloads", header, nil); got.code != want {
			t.Errorf("a request with %d header fields: %d, want %d", fields, got.code, want)
		}
	}
}
