package server

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
)

// A connection whose requests are refused is answered at the permitted rate.
func TestServer_RefusedRequests_PauseTheirConnection(t *testing.T) {
	const beyond = 5 // the permitted burst
	s := startTLS(t, "sqlite:"+filepath.Join(t.TempDir(), "rows.db"), nil)
	agent := s.token(t, "--role=agent", "--name=agent", "--cluster=cluster")
	for _, tc := range []struct {
		reason, path, bearer string
		code                 int
	}{
		{reason: "unknown credential", path: "/v0/workloads", bearer: "none", code: http.StatusUnauthorized},
		{reason: "wrong role", path: "/v0/audit-records", bearer: agent, code: http.StatusForbidden},
		{reason: "no principal", path: "/healthz", code: http.StatusOK},
	} {
		for _, protocol := range []string{"HTTP/2.0", "HTTP/1.1"} {
			t.Run(tc.reason+" "+protocol, func(t *testing.T) {
				client := s.newClient(t)
				if transport, ok := client.Transport.(*http.Transport); ok {
					transport.ForceAttemptHTTP2 = protocol == "HTTP/2.0"
				}
				begin := time.Now()
				for i := range refusedBurst + beyond + 1 { // the last request waits for the pause after the one before
					req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+tc.path, http.NoBody)
					if err != nil {
						t.Fatal(err)
					}
					req.Header.Set("Authorization", "Bearer "+tc.bearer)
					resp, err := client.Do(req)
					if err != nil {
						t.Fatal(err)
					}
					_, err = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
					if err != nil || resp.StatusCode != tc.code || resp.Proto != protocol {
						t.Fatalf("request %d: %s %d, %v, want %s %d", i, resp.Proto, resp.StatusCode, err, protocol, tc.code)
					}
				}
				if took, least := time.Since(begin), beyond*time.Second/refusedPerSecond; took < least {
					t.Errorf("the requests took %v, want at least %v", took, least)
				}
			})
		}
	}
}

func TestPauseRefused(t *testing.T) {
	proxy := []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}
	for _, tc := range []struct {
		reason  string
		proxies []netip.Prefix
		role    auth.Role
		pauses  bool
	}{
		{reason: "a principal", role: auth.RoleViewer},
		{reason: "a client behind a trusted proxy", proxies: proxy},
		{reason: "a client", pauses: true},
	} {
		c := newConnections(10, tc.proxies)
		opened := c.add(&connectionFrom{address: firstAddress})
		serve := instrument(pauseRefused(c.handler(http.NotFoundHandler())), newMetrics(), nil)
		ctx := auth.WithPrincipal(context.WithValue(t.Context(), connectionKey{}, opened), auth.Principal{Role: tc.role, Credential: auth.CredentialToken})
		for range 2 * refusedBurst {
			serve.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody))
		}
		if pauses := opened.refused != nil && opened.refused.pause(time.Now()) > 0; pauses != tc.pauses {
			t.Errorf("%s: the connection pauses: %t, want %t", tc.reason, pauses, tc.pauses)
		}
	}
}

func TestRefused_PauseIsBounded(t *testing.T) {
	now, r := time.Unix(1000, 0), newRefused()
	for range refusedBurst {
		r.add(now)
	}
	if got := r.pause(now); got > 0 {
		t.Errorf("the pause within the burst is %v, want none", got)
	}
	for range 100 {
		r.add(now)
	}
	if got := r.pause(now); got != maxRefusedPause {
		t.Errorf("the pause is %v, want %v", got, maxRefusedPause)
	}
	if got := r.pause(now.Add(maxRefusedPause)); got > 0 {
		t.Errorf("the pause after it ended is %v, want none", got)
	}
}
