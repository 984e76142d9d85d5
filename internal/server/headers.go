package server

import (
	"net"
	"net/http"
	"strings"
)

// maxHeaderFields bounds the header fields of a request, because a short field takes many times its size in memory. Browsers and
// proxies send less than half as many.
const maxHeaderFields = 100

// limitHeaderFields refuses requests with more header fields, and releases them before the answer is sent. The answer has no body,
// which the client need not read.
func limitHeaderFields(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		fields := 0
		for _, values := range req.Header {
			fields += len(values)
		}
		if fields > maxHeaderFields {
			req.Header = nil
			w.WriteHeader(http.StatusRequestHeaderFieldsTooLarge)
			return
		}
		next.ServeHTTP(w, req)
	})
}

// strictTransport makes browsers use HTTPS for a year (RFC 6797).
const strictTransport = "max-age=31536000"

// withSecurityHeaders sets the headers that every answer has: caches do not keep it, and browsers neither guess its type nor
// use plain HTTP. The page sets another Cache-Control for its files.
func withSecurityHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("X-Content-Type-Options", "nosniff")
		if req.TLS != nil && !isLocalhost(req.Host) {
			header.Set("Strict-Transport-Security", strictTransport)
		}
		next.ServeHTTP(w, req)
	})
}

// isLocalhost reports whether a Host header names this machine. Browsers would apply the header to all ports of that name, and
// so to the other servers of a developer.
func isLocalhost(given string) bool {
	host, _, err := net.SplitHostPort(given)
	if err != nil { // without a port
		host = given
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
