package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
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
		fields               int // of the header, besides others
		code                 int
	}{
		{reason: "too many header fields", path: "/v0/workloads", fields: maxHeaderFields + 1, code: http.StatusRequestHeaderFieldsTooLarge},
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
					req.Header["A"] = slices.Repeat([]string{""}, tc.fields)
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

// net/http would answer it itself, without authentication and without a limit.
func TestServer_OptionsOfServer_NeedCredential(t *testing.T) {
	s := startTLS(t, "sqlite:"+filepath.Join(t.TempDir(), "rows.db"), nil)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, s.url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Path, req.URL.Opaque = "", "*"
	resp, err := s.newClient(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("OPTIONS * is answered %d, want %d", resp.StatusCode, http.StatusUnauthorized)
	}
}

func TestPauseRefused(t *testing.T) {
	const refused, public, file = "refused", "public", "file"
	proxy := []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}
	for _, tc := range []struct {
		reason   string
		proxies  []netip.Prefix
		before   []string // the senders of requests before
		requests string   // refused, public, file, or those of a sender
		pauses   bool
	}{
		{reason: "principal", requests: "a"},
		{reason: "trusted proxy", proxies: proxy, requests: refused},
		{reason: "client", requests: refused, pauses: true},
		{reason: "health probes", requests: public, pauses: true},
		{reason: "health probes of a client with a credential", before: []string{"a"}, requests: public, pauses: true},
		{reason: "files of the web UI", before: []string{"a"}, requests: file},
		{reason: "files of the web UI before a log-in", requests: file, pauses: true},
		{reason: "client with a credential", before: []string{"a", "a"}, requests: refused, pauses: true},
		{reason: "client with two credentials", before: []string{"a", "b"}, requests: refused, pauses: true},
	} {
		c := newConnections(10, tc.proxies)
		opened := c.add(&connectionFrom{address: firstAddress})
		inner := c.handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		request := func(by string) {
			serve, path := inner, "/"
			ctx := context.WithValue(t.Context(), connectionKey{}, opened)
			switch by {
			case refused:
				serve = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
			case public:
			case file:
				path = "/page/1/main.js"
			default:
				ctx = auth.WithPrincipal(ctx, auth.Principal{Name: by, Role: auth.RoleViewer, Credential: auth.CredentialToken})
			}
			instrument(pauseRefused(serve), newMetrics(), slog.New(slog.DiscardHandler)).
				ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody))
		}
		for _, by := range tc.before {
			request(by)
		}
		for range 2 * refusedBurst {
			request(tc.requests)
		}
		if pauses := opened.refused != nil && opened.refused.pause(time.Now()) > 0; pauses != tc.pauses {
			t.Errorf("%s: the connection pauses: %t, want %t", tc.reason, pauses, tc.pauses)
		}
	}
}

// The connections of one person share the rate of files. Those of agents have none: they do not use the web UI.
func TestConnections_Files_ArePerPerson(t *testing.T) {
	c := newConnections(100, nil)
	open := func(by sender) *connection {
		opened := c.add(&connectionFrom{address: firstAddress})
		c.authenticate(opened, by)
		return opened
	}
	agent := open(sender{"cluster", auth.RoleAgent})
	person := open(sender{"viewer", auth.RoleViewer})
	for range 9 {
		open(sender{"viewer", auth.RoleViewer})
	}
	open(sender{"other", auth.RoleViewer})
	if ofPerson := c.ofPerson(agent); ofPerson != 0 {
		t.Errorf("an agent has %d connections for files, want none", ofPerson)
	}
	crowd, ofPerson := c.crowd(refusedCrowd), c.ofPerson(person)
	if crowd != 1 || ofPerson != 10 {
		t.Fatalf("the crowd is %d, and the person has %d connections; want 1 and 10", crowd, ofPerson)
	}
	now, r := time.Unix(1000, 0), newRefused()
	for range refusedBurst { // a file counts a tenth, for each of ten connections
		r.add(now, true, crowd, ofPerson)
	}
	if got := r.pause(now); got > 0 {
		t.Errorf("the pause within the burst is %v, want none", got)
	}
	r.add(now, true, crowd, ofPerson)
	if got := r.pause(now); got <= 0 {
		t.Error("there is no pause after the burst")
	}
}

func TestRefused_PauseIsBounded(t *testing.T) {
	for _, tt := range []struct {
		crowd, burst int
		pause        time.Duration
	}{
		{1, refusedBurst, maxRefusedPause},
		{16, refusedBurst / 16, 16 * maxRefusedPause},
		{100, 1, 100 * maxRefusedPause},
	} {
		now, r := time.Unix(1000, 0), newRefused()
		for range tt.burst {
			r.add(now, false, tt.crowd, 0)
		}
		if got := r.pause(now); got > 0 {
			t.Errorf("crowd %d: the pause within the burst is %v, want none", tt.crowd, got)
		}
		for range 100 {
			r.add(now, false, tt.crowd, 0)
		}
		if got := r.pause(now); got != tt.pause {
			t.Errorf("crowd %d: the pause is %v, want %v", tt.crowd, got, tt.pause)
		}
		if got := r.pause(now.Add(tt.pause)); got > 0 {
			t.Errorf("crowd %d: the pause after it ended is %v, want none", tt.crowd, got)
		}
	}
}
