package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/testing/certs"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// lockedBuffer collects the log of a running server.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(line)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// tlsServer is a running API with TLS, and a second handle of its database.
type tlsServer struct {
	url       string
	authority *certs.TestAuthority
	store     *store.Store
	client    *http.Client // without a certificate
	log       *lockedBuffer
	stop      func()
}

// onTLS runs a test with a server on an empty database of each kind.
func onTLS(t *testing.T, change func(*Config), test func(t *testing.T, s *tlsServer)) {
	t.Helper()
	forEachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		test(t, startTLS(t, address, change))
	})
}

// startTLS runs a server until the end of the test, or its stop.
func startTLS(t *testing.T, address string, change func(*Config)) *tlsServer {
	t.Helper()
	authority := certs.ForTest(t)
	files := authority.IssueFiles("server")
	config := plain()
	config.Database = address
	config.AuthEnabled, config.CertFile, config.KeyFile, config.CAFile = true, files.Cert, files.Key, files.CA
	if change != nil {
		change(&config)
	}
	w := &tlsServer{authority: authority, log: &lockedBuffer{}}
	s, err := New(t.Context(), config, slog.New(slog.NewJSONHandler(w.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(w.stop)
	w.url = s.URL()
	w.client = w.newClient(t)
	if w.store, err = store.Open(t.Context(), store.Config{Address: address}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.store.Close() })
	return w
}

// newClient returns a client with certificates.
func (s *tlsServer) newClient(t *testing.T, certificates ...tls.Certificate) *http.Client {
	t.Helper()
	config := trust(s.authority.PEM())
	config.Certificates = certificates
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// token creates a token with the command, and returns its secret.
func (s *tlsServer) token(t *testing.T, args ...string) string {
	t.Helper()
	var secret, said bytes.Buffer
	if code := auth.RunTokenCommand(t.Context(), append([]string{"create"}, args...), s.store, &secret, &said); code != 0 {
		t.Fatal(said.String())
	}
	return strings.TrimSpace(secret.String())
}

// send sends a request with the token, unless that is empty.
func (s *tlsServer) send(t *testing.T, token, method, path, body string) reply {
	t.Helper()
	header := asJSON()
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return send(t, s.client, method, s.url+path, header, []byte(body))
}

func TestServer_CertificateWithoutRole(t *testing.T) {
	for _, tc := range []struct {
		reason string
		role   auth.Role
		code   int
		logs   bool
	}{
		{reason: "no role is configured", code: http.StatusUnauthorized, logs: true},
		{reason: "an installation of v0", role: auth.RoleAdmin, code: http.StatusOK},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := startTLS(t, "sqlite:"+filepath.Join(t.TempDir(), "rows.db"), func(c *Config) { c.Access.CertificateRole = tc.role })
			pair, err := tls.X509KeyPair(s.authority.Issue("workload-agent"))
			if err != nil {
				t.Fatal(err)
			}
			got := send(t, s.newClient(t, pair), http.MethodGet, s.url+"/v0/tokens", asJSON(), nil)
			if got.code != tc.code {
				t.Errorf("the answer is %d %s, want %d", got.code, got.body, tc.code)
			}
			if refused := strings.Contains(got.body, "--certificate-role=admin"); refused != tc.logs {
				t.Errorf("the answer is %s; names the flag: %t, want %t", got.body, refused, tc.logs)
			}
			if logged := strings.Contains(s.log.String(), "Client certificates that name no role are refused"); logged != tc.logs {
				t.Errorf("the log is %s; names the refusal: %t, want %t", s.log, logged, tc.logs)
			}
		})
	}
}

// auditRecords stops the server, which writes the waiting records, and returns all of them, oldest first.
func (s *tlsServer) auditRecords(t *testing.T) (lines []string) {
	t.Helper()
	s.stop()
	list, err := s.store.AuditRecords(t.Context(), "", 500)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list.Items {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %d %s", r.Principal, r.Method, r.Path, r.Code,
			strings.Join([]string{r.Object.Type, r.Object.ID, r.Object.Name, r.Object.Role}, " "))))
	}
	slices.Reverse(lines)
	return lines
}

func TestAudit_ObjectsReadsAndRefusals(t *testing.T) {
	onTLS(t, nil, func(t *testing.T, s *tlsServer) {
		t.Helper()
		admin := s.token(t, "--role=admin", "--name=root")
		viewer := s.token(t, "--role=viewer", "--name=jane")
		agent := s.token(t, "--role=agent", "--name=edge", "--cluster=c")
		idOf := func(body string) (id string) {
			t.Helper()
			if found := regexp.MustCompile(`"(?:ID|id)":"?([0-9]+)`).FindStringSubmatch(body); found != nil {
				return found[1]
			}
			t.Fatalf("the answer %s has no ID", body)
			return ""
		}
		header := asJSON("Authorization", "Bearer "+admin, threeport.ClusterHeader, "c")
		instance := idOf(send(t, s.client, "POST", s.url+"/v0/workload-instances", header, []byte(`{"Name":"web"}`)).body)
		resource := idOf(s.send(t, admin, "POST", "/v0/workload-resource-instances", `{"JSONDefinition":{},"WorkloadInstanceID":`+instance+`}`).body)
		token := idOf(s.send(t, admin, "POST", "/v0/tokens", `{"name":"bob","role":"viewer"}`).body)
		s.send(t, admin, "DELETE", "/v0/tokens/"+token, "")
		for _, reader := range []string{viewer, agent} {
			s.send(t, reader, "GET", "/v0/workload-resource-instances/"+resource, "")
		}
		s.send(t, viewer, "GET", "/v0/workload-resource-instances?size=1", "")
		s.send(t, viewer, "GET", "/v0/workloads", "")
		for range 60 {
			s.send(t, viewer, "DELETE", "/v0/workload-instances/"+instance, "")
		}
		s.send(t, agent, "GET", "/v0/workloads", "")
		unknown := "tp_d" + strings.Repeat("x", 43)
		s.send(t, unknown, "GET", "/v0/workloads", "")
		s.send(t, unknown, "POST", "/logout", "")
		want := []string{
			"token:root POST /v0/workload-instances 201 WorkloadInstance " + instance + " c",
			"token:root POST /v0/workload-resource-instances 201 WorkloadResourceInstance " + resource,
			"token:root POST /v0/tokens 201 Token " + token + " bob viewer",
			"token:root DELETE /v0/tokens/" + token + " 200 Token " + token + " bob viewer",
			"token:jane GET /v0/workload-resource-instances/" + resource + " 200 WorkloadResourceInstance " + resource,
			"token:jane GET /v0/workload-resource-instances 200 WorkloadResourceInstance",
		}
		refused := "token:jane DELETE /v0/workload-instances/" + instance + " 403"
		got := s.auditRecords(t)
		refusals := 0
		got = slices.DeleteFunc(got, func(line string) bool {
			if line == refused {
				refusals++
			}
			return line == refused || strings.HasPrefix(line, "command:controlplane POST /v0/tokens 201 Token ")
		})
		if want = append(want, "token:edge GET /v0/workloads 403"); !slices.Equal(got, want) {
			t.Errorf("the audit log is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if refusals == 0 || refusals > 30 {
			t.Errorf("60 refused requests made %d records, want 1 to 30", refusals)
		}
	})
}

// A viewer can send reads of objects that do not exist as fast as the network allows.
func TestAudit_FloodOfFailedReads_HidesNothing(t *testing.T) {
	s := startTLS(t, "sqlite:"+filepath.Join(t.TempDir(), "rows.db"), func(c *Config) {
		c.Access.ViewerRate = auth.Rate{PerSecond: 1, Burst: 50}
	})
	admin := s.token(t, "--role=admin", "--name=root")
	viewer := s.token(t, "--role=viewer", "--name=jane")
	var flood sync.WaitGroup
	for i := range 8 {
		flood.Go(func() {
			for j := range 50 {
				s.send(t, viewer, "GET", fmt.Sprintf("/v0/clusters/x/objects/%d-%d", i, j), "")
			}
		})
	}
	const tokens = 10
	for i := range tokens {
		s.send(t, admin, "POST", "/v0/tokens", fmt.Sprintf(`{"name":"bob-%d","role":"viewer"}`, i))
	}
	flood.Wait()
	created := 0
	for _, line := range s.auditRecords(t) {
		switch {
		case strings.HasPrefix(line, "token:root POST /v0/tokens 201"):
			created++
		case strings.HasPrefix(line, "token:jane"):
			t.Errorf("the audit log has the record %s, want none of failed reads", line)
		}
	}
	if created != tokens {
		t.Errorf("the audit log has %d records of %d created tokens", created, tokens)
	}
}

// Requests of callers without a valid credential are free of charge for them, so they must cost the database no write.
func TestServer_UnknownCallers_WriteNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rows.db")
	s := startTLS(t, "sqlite:"+file, func(c *Config) { c.Maintenance.GrowthInterval = time.Hour })
	reader, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	reader.SetMaxOpenConns(1)
	s.client.Timeout = 10 * time.Second
	// While this connection may write, no other does: a request that tries waits, even if it would change nothing.
	if _, err := reader.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	for _, cookie := range []string{"", "__Host-threeport-session=" + strings.Repeat("x", 43)} {
		for _, token := range []string{"", "Bearer tp_d" + strings.Repeat("x", 43)} {
			for _, path := range []string{"GET /v0/workloads", "POST /logout", "POST /v0/workload-report-sets"} {
				method, path, _ := strings.Cut(path, " ")
				header := asJSON("Cookie", cookie)
				if token != "" {
					header.Set("Authorization", token)
				}
				if got := send(t, s.client, method, s.url+path, header, []byte("{}")); got.code != http.StatusUnauthorized && got.code != http.StatusSeeOther {
					t.Errorf("%s %s: %d %s, want 401, or a redirect", method, path, got.code, got.body)
				}
			}
		}
	}
	s.stop() // writes the waiting records
	if log := s.log.String(); strings.Contains(log, `"level":"ERROR"`) {
		t.Errorf("the server tried to write:\n%s", log)
	}
}

// openWatch opens a stream, and returns a function that ends it.
func (s *tlsServer) openWatch(t *testing.T, token string) (got reply, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v0/workloads/watch", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := s.client.Do(req) //nolint:bodyclose // end closes it
	if err != nil {
		t.Fatal(err)
	}
	got = reply{code: resp.StatusCode, header: resp.Header}
	if resp.StatusCode != http.StatusOK {
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		got.body = string(body)
	}
	return got, func() { cancel(); _ = resp.Body.Close() }
}

func TestWatch_PerPrincipal(t *testing.T) {
	onTLS(t, func(c *Config) { c.Limits.Watches = 3 }, func(t *testing.T, s *tlsServer) {
		t.Helper()
		jane, again, joe := s.token(t, "--role=viewer", "--name=jane"), s.token(t, "--role=viewer", "--name=jane"), s.token(t, "--role=viewer", "--name=joe")
		var ends []func()
		for _, token := range []string{jane, again, jane} {
			got, end := s.openWatch(t, token)
			if got.code != http.StatusOK {
				t.Fatalf("a watch within the limit is answered %d %s", got.code, got.body)
			}
			ends = append(ends, end)
		}
		for _, token := range []string{jane, again} {
			got, _ := s.openWatch(t, token)
			if got.code != http.StatusTooManyRequests || got.header.Get("Retry-After") != "10" ||
				got.header.Get("Content-Type") != "application/problem+json" || !strings.Contains(got.body, "raise --max-watches") {
				t.Errorf("a watch beyond the limit is answered %d %v %s, want 429 with Retry-After and what to do", got.code, got.header, got.body)
			}
		}
		if got, _ := s.openWatch(t, joe); got.code != http.StatusOK {
			t.Errorf("the watch of another viewer is answered %d %s", got.code, got.body)
		}
		ends[0]()
		for { // the server sees the end of the stream some time after the client
			got, _ := s.openWatch(t, jane)
			if got.code == http.StatusOK {
				break
			}
			if t.Context().Err() != nil {
				t.Fatal("an ended watch keeps its place")
			}
		}
	})
}

func TestWatchSlots_RolesHaveShares(t *testing.T) {
	slots := newWatchSlots(1)
	var releases []func()
	for i := range maxWatchesPerRole {
		slot, err := slots.acquire(auth.Principal{Name: fmt.Sprint(i), Role: auth.RoleViewer, Credential: auth.CredentialToken})
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, slot.release)
	}
	if _, err := slots.acquire(auth.Principal{Name: "last", Role: auth.RoleViewer, Credential: auth.CredentialToken}); err == nil {
		t.Error("viewers have more than their share of the watches")
	}
	slot, err := slots.acquire(auth.Principal{Name: "root", Role: auth.RoleAdmin, Credential: auth.CredentialToken})
	if err != nil {
		t.Errorf("viewers keep an administrator out: %v", err)
	}
	for _, release := range append(releases, slot.release, slot.release) {
		release()
	}
	if n := slots.count(); n != 0 || len(slots.byPrincipal) != 0 {
		t.Errorf("%d watches of %d principals are counted, want 0", n, len(slots.byPrincipal))
	}
}

// An agent must not show its workloads under the name of another cluster.
func TestReportSets_ClusterNames(t *testing.T) {
	onTLS(t, nil, func(t *testing.T, s *tlsServer) {
		t.Helper()
		tokens := map[string]string{}
		for _, cluster := range []string{"a", "b", "c"} {
			tokens[cluster] = s.token(t, "--role=agent", "--name="+cluster, "--cluster="+cluster)
		}
		for _, tc := range []struct {
			reason, cluster, name string
			fixed                 string // the name in a new token of the cluster
			want                  string
		}{
			{reason: "a new name", cluster: "a", name: "prod", want: "a=prod"},
			{reason: "the name of another cluster", cluster: "b", name: "Prod", want: "a=prod b=Prod (b)"},
			{reason: "the first cluster again", cluster: "a", name: "prod", want: "a=prod b=Prod (b)"},
			{reason: "no name", cluster: "b", want: "a=prod b=Prod (b)"},
			{reason: "another name", cluster: "b", name: "test", want: "a=prod b=test"},
			{reason: "a token that fixes the name", cluster: "c", name: "test", fixed: "PROD", want: "a=prod b=test c=PROD"},
			{reason: "a token that fixes the name, without a reported one", cluster: "c", want: "a=prod b=test c=PROD"},
			{reason: "the cluster that had the name first", cluster: "a", name: "prod", want: "a=prod (a) b=test c=PROD"},
			// Names that look like another one.
			{reason: "spaces around the name of another cluster", cluster: "b", name: " prod\u00a0", want: "a=prod (a) b=prod (b) c=PROD"},
			{reason: "invisible characters in the name of another cluster", cluster: "b", name: "\u202epro\u200b\u009bd", want: "a=prod (a) b=prod (b) c=PROD"},
			{reason: "words", cluster: "b", name: "two \t words", want: "a=prod (a) b=two words c=PROD"},
			{reason: "a letter that looks the same", cluster: "b", name: "pr\u043ed", want: "a=prod (a) b=pr\u043ed (b) c=PROD"},
			{reason: "a letter of K in another case", cluster: "b", name: "\u212aind", want: "a=prod (a) b=\u212aind (b) c=PROD"},
			{reason: "the end of a name with UID", cluster: "b", name: "k (c)", want: "a=prod (a) b=k (c) (b) c=PROD"},
			{reason: "no visible character", cluster: "b", name: "\u200b ", want: "a=prod (a) b=k (c) (b) c=PROD"},
		} {
			if tc.fixed != "" {
				tokens[tc.cluster] = s.token(t, "--role=agent", "--name=fixed", "--cluster="+tc.cluster, "--cluster-name="+tc.fixed)
			}
			set := fmt.Sprintf(`{"agent":{"clusterUID":%q,"clusterName":%q,"time":"2026-01-02T03:04:05Z","delaySeconds":0,"pending":0,`+
				`"deadLetters":0,"dropped":0},"reports":[]}`, tc.cluster, tc.name)
			if got := s.send(t, tokens[tc.cluster], "POST", "/v0/workload-report-sets", set); got.code != http.StatusOK {
				t.Fatalf("%s: the report is answered %d %s", tc.reason, got.code, got.body)
			}
			clusters, err := s.store.Clusters(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range clusters {
				got = append(got, c.ClusterUID+"="+c.ClusterName)
			}
			slices.Sort(got)
			if text := strings.Join(got, " "); text != tc.want {
				t.Errorf("%s: the clusters are %q, want %q", tc.reason, text, tc.want)
			}
		}
	})
}
