package server

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestClientOf(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}
	for _, tc := range []struct {
		reason, peer string
		forwarded    []string
		want         string
		malformed    bool
	}{
		{reason: "a client without a proxy", peer: "192.0.2.1:5", forwarded: []string{"198.51.100.1"}},
		{reason: "a proxy without the header", peer: "10.0.0.1:5"},
		{reason: "an empty header", peer: "10.0.0.1:5", forwarded: []string{" "}},
		{reason: "a client", peer: "10.0.0.1:5", forwarded: []string{"198.51.100.1"}, want: "198.51.100.1:0"},
		{reason: "a client that wrote the header", peer: "10.0.0.1:5", forwarded: []string{"10.0.0.9, ***, 198.51.100.1"}, want: "198.51.100.1:0"},
		{reason: "two headers", peer: "10.0.0.1:5", forwarded: []string{"203.0.113.1", "198.51.100.1"}, want: "198.51.100.1:0"},
		{reason: "two proxies", peer: "10.0.0.1:5", forwarded: []string{"203.0.113.1, 198.51.100.1, 10.0.0.2"}, want: "198.51.100.1:0"},
		{reason: "proxies only", peer: "10.0.0.1:5", forwarded: []string{"10.0.0.3, 10.0.0.2"}, want: "10.0.0.3:0"},
		{reason: "a port", peer: "10.0.0.1:5", forwarded: []string{"198.51.100.1:4711"}, want: "198.51.100.1:0"},
		{reason: "IPv6", peer: "[2001:db8::1]:5", forwarded: []string{"2001:db9::7"}, want: "[2001:db9::7]:0"},
		{reason: "IPv6 with a port", peer: "[2001:db8::1]:5", forwarded: []string{"[2001:db9::7]:80"}, want: "[2001:db9::7]:0"},
		{reason: "a proxy at a mapped address", peer: "[::ffff:10.0.0.1]:5", forwarded: []string{"198.51.100.1"}, want: "198.51.100.1:0"},
		{reason: "no address", peer: "10.0.0.1:5", forwarded: []string{"unknown"}, malformed: true},
		{reason: "an empty hop", peer: "10.0.0.1:5", forwarded: []string{"198.51.100.1,"}, malformed: true},
		{reason: "a proxy that adds no address", peer: "10.0.0.1:5", forwarded: []string{"198.51.100.1, _hidden, 10.0.0.2"}, malformed: true},
	} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		req.RemoteAddr = tc.peer
		req.Header[forwardedFor] = tc.forwarded
		got, err := clientOf(req, proxies)
		if got != tc.want || (err != nil) != tc.malformed {
			t.Errorf("%s: %q, error %v; want %q, malformed %t", tc.reason, got, err, tc.want, tc.malformed)
		}
	}
}

// The failed log-ins of one client must not keep the other clients of a proxy out.
func TestLogin_BehindProxy_LimitsClients(t *testing.T) {
	for reason, trusted := range map[string]bool{"trusted": true, "not trusted": false} {
		t.Run(reason, func(t *testing.T) {
			onTLS(t, func(c *Config) {
				if trusted {
					c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
				}
			}, func(t *testing.T, s *tlsServer) {
				t.Helper()
				login := func(from string) int {
					t.Helper()
					header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, forwardedFor: {from}}
					return send(t, s.client, http.MethodPost, s.url+"/login", header, []byte(url.Values{"token": {"wrong"}}.Encode())).code
				}
				for range 12 {
					login("198.51.100.1")
				}
				if got := login("198.51.100.1"); got != http.StatusTooManyRequests {
					t.Errorf("the client that failed often is answered %d, want %d", got, http.StatusTooManyRequests)
				}
				want := http.StatusUnauthorized
				if !trusted {
					want = http.StatusTooManyRequests
				}
				if got := login("198.51.100.2"); got != want {
					t.Errorf("another client is answered %d, want %d", got, want)
				}
				if got := login("somebody"); trusted && got != http.StatusBadRequest {
					t.Errorf("a malformed address is answered %d, want %d", got, http.StatusBadRequest)
				}
				for _, line := range s.auditRecords(t) {
					if strings.HasPrefix(line, "anonymous:198.51.100.") != trusted {
						t.Errorf("the audit record is %q, want the address of the client only if the proxy is trusted", line)
					}
				}
			})
		})
	}
}
