package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/testing/tlstest"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// reply is an answer that was read to its end.
type reply struct {
	code     int
	header   http.Header
	body     string
	protocol string
	tls      *tls.ConnectionState
}

// send makes a request with headers, and returns what it is answered.
func send(t *testing.T, client *http.Client, method, url string, header http.Header, body []byte) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header.Clone()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close(); client.CloseIdleConnections() }()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, answer.String(), resp.Proto, resp.TLS}
}

func asJSON(more ...string) http.Header {
	header := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i < len(more); i += 2 {
		header.Set(more[i], more[i+1])
	}
	return header
}

// Under strict v0 there is nothing beside v0: every other path is what the router says of any that it does not know.
func TestStrictV0IsPlain(t *testing.T) {
	config := plain()
	config.StrictV0 = true
	url := run(t, config)
	for _, path := range []string{
		"/workload-report-sets/versions", "/v0/workload-report-sets", "/v0/workloads", "/v0/workloads/watch", "/v0/clusters",
		"/v0/tokens", "/v0/audit-records", "/openapi.json", "/metrics", "/login", "/", "/workloads/WorkloadInstance/1", "/unknown",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if code, answer := call(t, exchange{method: method, path: url + path}); code != http.StatusNotFound || answer != "{\"message\":\"Not Found\"}\n" {
				t.Errorf("%s %s: %d %s", method, path, code, answer)
			}
		}
	}
	for _, path := range []string{"/healthz", "/v0/workload-instances", "/workload-events/versions"} {
		if code, _ := call(t, exchange{method: http.MethodGet, path: url + path}); code != http.StatusOK {
			t.Errorf("%s: %d", path, code)
		}
	}
}

func TestRoutes(t *testing.T) {
	url := run(t, plain())
	for _, tc := range []struct {
		method, path string
		code         int
		has          string
	}{
		{"GET", "/healthz", 200, "ok\n"},
		{"GET", "/readyz", 200, "ok\n"},
		{"GET", "/", 200, "<!doctype html>"},
		{"GET", "/workloads/WorkloadInstance/1", 200, "<!doctype html>"},
		{"GET", "/unknown", 404, "{\"message\":\"Not Found\"}\n"},
		{"PUT", "/v0/workload-instances", 405, "{\"message\":\"Method Not Allowed\"}\n"},
		{"DELETE", "/v0/workloads", 405, `"detail":"accepted here: GET, HEAD"`},
		{"PUT", "/v0/tokens", 405, `"detail":"accepted here: GET, HEAD, POST"`},
		{"HEAD", "/v0/workload-report-sets", 405, ""},
		{"HEAD", "/v0/workload-instances", 405, ""},
		{"GET", "/metrics", 200, `controlplane_request_duration_seconds_count{code="405",method="other",route="/v0/tokens"} 1`},
		{"GET", "/metrics", 200, `controlplane_request_duration_seconds_count{code="200",method="GET",route="GET /workloads/{type}/{id}"} 1`},
		{"GET", "/metrics", 200, `go_sql_open_connections{db_name="write"}`},
		{"GET", "/metrics", 200, `controlplane_clusters{state="silent"} 0`},
	} {
		if code, answer := call(t, exchange{method: tc.method, path: url + tc.path}); code != tc.code || !strings.Contains(strings.ToLower(answer), strings.ToLower(tc.has)) {
			t.Errorf("%s %s: %d %.2000s", tc.method, tc.path, code, answer)
		}
	}
}

func TestAliveAndReadyWithoutDatabase(t *testing.T) {
	s, err := New(t.Context(), plain(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
		answer := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		if answer.Code != want {
			t.Errorf("%s: %d, want %d: %s", path, answer.Code, want, answer.Body)
		}
	}
	answer := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v0/workload-instances", http.NoBody))
	if answer.Code != http.StatusInternalServerError || !strings.Contains(answer.Body.String(), "its log says why") || strings.Contains(answer.Body.String(), "sql") {
		t.Errorf("v0 tells strangers of the database: %d %s", answer.Code, answer.Body)
	}
	answer = httptest.NewRecorder()
	s.http.Handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	if text := answer.Body.String(); answer.Code != http.StatusOK || !strings.Contains(text, `route="/readyz"`) || strings.Contains(text, "controlplane_clusters{") {
		t.Errorf("/metrics: %d %.2000s", answer.Code, text)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

// HEAD is answered as GET is, without the body. A stream ends with its headers: on one connection, the next request would
// wait for it.
func TestHeadIsGetWithoutBody(t *testing.T) {
	url := run(t, onFile(t))
	transport := &http.Transport{MaxConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	for _, path := range []string{
		"/v0/workloads/watch", "/healthz", "/readyz", "/openapi.json", "/metrics", "/v0/workloads", "/v0/clusters", "/v0/tokens",
		"/v0/audit-records", "/workload-report-sets/versions", "/",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodHead, url+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") == "" {
			t.Errorf("%s: %d %v", path, resp.StatusCode, resp.Header)
		}
	}
}

// Without a rule a route is for administrators only, which none of these is meant to be.
func TestRoutesHaveRules(t *testing.T) {
	r := routes{}
	s := &Server{config: plain(), log: slog.New(slog.DiscardHandler)}
	opened, err := store.Open(t.Context(), store.Config{Address: "sqlite::memory:"})
	if err != nil {
		t.Fatal(err)
	}
	s.store = opened
	if s.access, err = auth.New(opened, auth.DefaultConfig(), s.log); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := s.operations(newAPI(r, "test", true), newMetrics(), nil); err != nil {
		t.Fatal(err)
	}
	for path, methods := range r {
		for method := range methods {
			pattern := method + " " + path
			if !auth.HasRule(pattern) && pattern != "GET /workload-report-sets/versions" { // which the rule of versions covers
				t.Errorf("%s has no rule", pattern)
			}
		}
	}
}

func TestReportSetBodies(t *testing.T) {
	config := onFile(t)
	config.Limits = Limits{Reports: 5, BodyBytes: leastBytes, DecodedBytes: 4 * leastBytes}
	url := run(t, config) + "/v0/workload-report-sets"
	set := func(padding int) string {
		return `{` + someAgent + strings.Repeat(" ", padding) + `,"reports":[]}`
	}
	for _, tc := range []struct {
		reason string
		header http.Header
		body   []byte
		code   int
		has    string
	}{
		{"plain", asJSON(), []byte(set(0)), 200, `{"items":[]}`},
		{"gzip", asJSON("Content-Encoding", "gzip"), encoded(t, "gzip", set(3*leastBytes)), 200, `{"items":[]}`},
		{"zstd", asJSON("Content-Encoding", "zstd"), encoded(t, "zstd", set(3*leastBytes)), 200, `{"items":[]}`},
		{"gzip bomb", asJSON("Content-Encoding", "gzip"), encoded(t, "gzip", set(64*leastBytes)), 413, "accepted are 262144 bytes before compression"},
		{"zstd bomb", asJSON("Content-Encoding", "zstd"), encoded(t, "zstd", set(64*leastBytes)), 413, "accepted are 262144 bytes before compression"},
		{"large", asJSON(), []byte(set(leastBytes)), 413, "accepted are 65536 bytes as sent"},
		{"too many reports", asJSON(), []byte(`{` + someAgent + `,"reports":[{},{},{},{},{},{}]}`), 413, "accepted are at most 5 items"},
		{"unknown coding", asJSON("Content-Encoding", "br"), []byte(set(0)), 415, "accepted are identity, gzip and zstd"},
		{"not gzip", asJSON("Content-Encoding", "gzip"), []byte(set(0)), 400, "not gzip"},
		{"another type", http.Header{"Content-Type": {"text/plain"}}, []byte(set(0)), 415, "accepted is application/json"},
		{"no type", http.Header{}, []byte(set(0)), 415, "accepted is application/json"},
		{"nothing", asJSON(), nil, 400, "ends before"},
	} {
		got := send(t, http.DefaultClient, http.MethodPost, url, tc.header, tc.body)
		if got.code != tc.code || !strings.Contains(got.body, tc.has) {
			t.Errorf("%s: %d %s", tc.reason, got.code, got.body)
		}
	}
}

// failing is a store whose database is away.
type failing struct{ err error }

func (f failing) Apply(context.Context, threeport.ReportSet) (threeport.ReportSetAnswer, error) {
	return threeport.ReportSetAnswer{}, f.err
}

// reportsAlone serves report sets of an administrator.
func reportsAlone(t *testing.T, s reportStore, memory *memory, log *slog.Logger) string {
	t.Helper()
	counted := newMetrics()
	r := routes{}
	(&reports{store: s, limits: DefaultLimits(), memory: memory, metrics: counted}).register(newAPI(r, "test", false))
	mux := http.NewServeMux()
	r.mount(mux)
	asAdmin := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		routed(mux).ServeHTTP(w, req.WithContext(auth.WithPrincipal(req.Context(), auth.Principal{Role: auth.RoleAdmin})))
	})
	server := httptest.NewServer(observe(asAdmin, counted, log))
	t.Cleanup(server.Close)
	return server.URL + "/v0/workload-report-sets"
}

func TestReportSetFailures(t *testing.T) {
	body := []byte(`{` + someAgent + `,"reports":[]}`)
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	url := reportsAlone(t, failing{errors.New("connection refused")}, newMemory(DefaultLimits()), logger)
	got := send(t, http.DefaultClient, http.MethodPost, url, asJSON(), body)
	if got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "1" || strings.Contains(got.body, "refused") {
		t.Errorf("the database is away: %d %v %s", got.code, got.header, got.body)
	}
	if !strings.Contains(log.String(), "connection refused") || strings.Contains(log.String(), "clusterUID") {
		t.Errorf("logged %s", log.String())
	}

	full := newMemory(DefaultLimits())
	full.wait = time.Millisecond
	if !full.decoded.TryAcquire(largestDecoded * largestRoom(DefaultLimits())) {
		t.Fatal("not free")
	}
	url = reportsAlone(t, failing{}, full, slog.New(slog.DiscardHandler))
	got = send(t, http.DefaultClient, http.MethodPost, url, asJSON(), body)
	if got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "1" {
		t.Errorf("no memory: %d %s", got.code, got.body)
	}
	full.decoded.Release(largestDecoded * largestRoom(DefaultLimits()))
	for _, body := range []string{string(body), "hunter2", `{"x":1}`} {
		send(t, http.DefaultClient, http.MethodPost, url, asJSON(), []byte(body))
	}
	if !full.decoded.TryAcquire(largestDecoded*largestRoom(DefaultLimits())) || !full.received.TryAcquire(largestReceived*DefaultLimits().BodyBytes) {
		t.Error("memory was not given back")
	}
}

// secured is an API with TLS, a client that trusts it, and a maker of tokens.
func secured(t *testing.T) (url string, client *http.Client, token func(role, cluster string) string) {
	t.Helper()
	ca := tlstest.NewAuthority(t)
	files := ca.IssueFiles("server")
	config := onFile(t)
	config.AuthEnabled, config.CertFile, config.KeyFile, config.CAFile = true, files.Cert, files.Key, files.CA
	url = run(t, config)
	transport := &http.Transport{TLSClientConfig: trust(ca.PEM()), ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return url, &http.Client{Transport: transport}, func(role, cluster string) string {
		t.Helper()
		opened, err := store.Open(t.Context(), store.Config{Address: config.Database})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = opened.Close() }()
		var secret, said bytes.Buffer
		args := []string{"create", "--role", role, "--name", "test", "--cluster", cluster}
		if code := auth.RunTokenCommand(t.Context(), args, opened, &secret, &said); code != 0 {
			t.Fatal(said.String())
		}
		return "Bearer " + strings.TrimSpace(secret.String())
	}
}

func TestRoles(t *testing.T) {
	url, client, token := secured(t)
	agent, viewer, admin := token("agent", "c"), token("viewer", ""), token("admin", "")
	set := []byte(`{` + someAgent + `,"reports":[]}`)
	foreign := bytes.Replace(set, []byte(`"c"`), []byte(`"other"`), 1)
	for _, tc := range []struct {
		reason, method, path, bearer string
		body                         []byte
		code                         int
	}{
		{"an agent's own cluster", "POST", "/v0/workload-report-sets", agent, set, 200},
		{"another cluster", "POST", "/v0/workload-report-sets", agent, foreign, 403},
		{"a viewer reports", "POST", "/v0/workload-report-sets", viewer, set, 403},
		{"an administrator reports", "POST", "/v0/workload-report-sets", admin, foreign, 200},
		{"nobody reports", "POST", "/v0/workload-report-sets", "", set, 401},
		{"a wrong token", "GET", "/v0/workloads", viewer + "x", nil, 401},
		{"a viewer reads", "GET", "/v0/workloads", viewer, nil, 200},
		{"an agent reads the board", "GET", "/v0/workloads", agent, nil, 403},
		{"a viewer reads metrics", "GET", "/metrics", viewer, nil, 200},
		{"a viewer lists tokens", "GET", "/v0/tokens", viewer, nil, 403},
		{"an administrator does", "GET", "/v0/tokens", admin, nil, 200},
		{"health is for all", "GET", "/healthz", "", nil, 200},
		{"so is readiness", "GET", "/readyz", "", nil, 200},
	} {
		header := asJSON()
		if tc.bearer != "" {
			header.Set("Authorization", tc.bearer)
		}
		got := send(t, client, tc.method, url+tc.path, header, tc.body)
		if got.code != tc.code {
			t.Errorf("%s: %d, want %d: %s", tc.reason, got.code, tc.code, got.body)
		}
		if got.protocol != "HTTP/2.0" || got.tls.Version != tls.VersionTLS13 {
			t.Errorf("%s: %s, TLS %x", tc.reason, got.protocol, got.tls.Version)
		}
		if tc.code > 400 && got.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %s", tc.reason, got.header)
		}
	}
}

// A watcher who is cut off before the first event misses nothing: the opening says where to go on from. The other watcher keeps
// the feed at work, which looks back ten seconds for the first.
func TestWatchThatHeardNothingGoesOn(t *testing.T) {
	url := run(t, onFile(t))
	steady := open(t, url+"/v0/workloads/watch", http.Header{})
	steady.next(t)
	cut := open(t, url+"/v0/workloads/watch", http.Header{})
	_, last, ok := strings.Cut(cut.next(t), "\nid: ")
	if !ok {
		t.Fatal("the opening has no ID")
	}
	cut.close()
	create(t, url+"/v0/workload-instances", `{"Name":"meanwhile"}`)
	if event := steady.next(t); !strings.Contains(event, `"name":"meanwhile"`) {
		t.Fatalf("got %s", event)
	}
	again := open(t, url+"/v0/workloads/watch", http.Header{"Last-Event-Id": {last}})
	again.next(t)
	if event := again.next(t); !strings.Contains(event, `"name":"meanwhile"`) {
		t.Errorf("got %s", event)
	}
}

// A change comes to a watcher, one who was away gets it later, and a server that stops keeps nobody waiting.
func TestWatchGoesOn(t *testing.T) {
	s, err := New(t.Context(), onFile(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	url := s.URL()
	stream := open(t, url+"/v0/workloads/watch", http.Header{})
	stream.next(t)
	first := create(t, url+"/v0/workload-instances", `{"Name":"first"}`)
	event := stream.next(t)
	if !strings.Contains(event, `"name":"first"`) {
		t.Errorf("got %s", event)
	}
	stream.close()
	second := create(t, url+"/v0/workload-instances", `{"Name":"second"}`)

	last, _, _ := strings.Cut(strings.TrimPrefix(event, "id: "), "\n")
	again := open(t, url+"/v0/workloads/watch", http.Header{"Last-Event-Id": {last}})
	again.next(t)
	for event := ""; !strings.Contains(event, fmt.Sprintf(`"id":"%d"`, second)); {
		event = again.next(t)
	}
	only := open(t, fmt.Sprintf("%s/v0/workloads/watch?type=WorkloadInstance&id=%d", url, first), http.Header{})
	only.next(t)
	call(t, exchange{method: http.MethodPatch, path: fmt.Sprintf("%s/v0/workload-instances/%d", url, second), body: `{"Status":"Down"}`})
	call(t, exchange{method: http.MethodDelete, path: fmt.Sprintf("%s/v0/workload-instances/%d", url, first)})
	for event := ""; !strings.Contains(event, `"gone":true`); {
		if event = only.next(t); !strings.Contains(event, `"name":"first"`) {
			t.Errorf("another workload's: %s", event)
		}
	}
	for _, id := range []string{"0", "1"} {
		forgotten := open(t, url+"/v0/workloads/watch?lastEventID="+id, http.Header{})
		forgotten.next(t)
		if event := forgotten.next(t); !strings.Contains(event, "event: reset") {
			t.Errorf("after %s: got %s", id, event)
		}
	}

	begin := time.Now()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > drainTimeout/2 {
		t.Errorf("took %v to stop", took)
	}
}
