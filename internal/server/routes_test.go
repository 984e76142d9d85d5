package server

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/testing/certs"
)

// reply is a complete answer.
type reply struct {
	code     int
	header   http.Header
	body     string
	protocol string
	tls      *tls.ConnectionState
}

// send sends a request and returns the answer.
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

// Every path outside v0 is unknown to the router.
func TestStrictV0_ServesV0Only(t *testing.T) {
	config := plain()
	config.StrictV0 = true
	url := run(t, config)
	for _, path := range []string{
		"/workload-report-sets/versions", "/v0/workload-report-sets", "/v0/workloads", "/v0/workloads/watch", "/v0/clusters",
		"/v0/tokens", "/v0/audit-records", "/openapi.json", "/metrics", "/login", "/", "/workloads/WorkloadInstance/1", "/unknown",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if code, answer := call(t, exchange{method: method, path: url + path}); code != http.StatusNotFound || answer != "{\"message\":\"Not Found\"}\n" {
				t.Errorf("%s %s: %d %s, want %d and %s", method, path, code, answer, http.StatusNotFound, "{\"message\":\"Not Found\"}\n")
			}
		}
	}
	for _, path := range []string{"/healthz", "/v0/workload-instances", "/workload-events/versions"} {
		if code, _ := call(t, exchange{method: http.MethodGet, path: url + path}); code != http.StatusOK {
			t.Errorf("%s: the answer is %d, want %d", path, code, http.StatusOK)
		}
	}
}

// A browser shows a page, and a client of the API gets the answer of v0's router. Strict v0 has no pages.
func TestRoutes_UnknownPath_BrowserGetsPage(t *testing.T) {
	strict := plain()
	strict.StrictV0 = true
	url, strictURL := run(t, plain()), run(t, strict)
	browser := http.Header{"Accept": {"text/html,application/xhtml+xml,*/*;q=0.8"}}
	for _, tc := range []struct {
		url    string
		header http.Header
		want   string
	}{
		{url, browser, `<a href="/">`},
		{url, http.Header{"Accept": {"application/json"}}, `{"message":"Not Found"}`},
		{url, http.Header{}, `{"message":"Not Found"}`},
		{strictURL, browser, `{"message":"Not Found"}`},
	} {
		got := send(t, &http.Client{}, http.MethodGet, tc.url+"/unknown", tc.header, nil)
		if got.code != http.StatusNotFound || !strings.Contains(got.body, tc.want) {
			t.Errorf("Accept %q: the answer is %d %s, want 404 and %s", tc.header.Get("Accept"), got.code, got.body, tc.want)
		}
	}
}

func TestRoutes_Answers(t *testing.T) {
	url := run(t, plain())
	for _, tc := range []struct {
		method, path string
		code         int
		has          string
	}{
		{method: "GET", path: "/healthz", code: 200},
		{method: "GET", path: "/readyz", code: 200},
		{method: "GET", path: "/", code: 200, has: "<!doctype html>"},
		{method: "GET", path: "/workloads/WorkloadInstance/1", code: 200, has: "<!doctype html>"},
		{method: "GET", path: "/unknown", code: 404, has: "{\"message\":\"Not Found\"}\n"},
		{method: "PUT", path: "/v0/workload-instances", code: 405, has: "{\"message\":\"Method Not Allowed\"}\n"},
		{method: "DELETE", path: "/v0/workloads", code: 405, has: `"detail":"accepted here: GET, HEAD"`},
		{method: "PUT", path: "/v0/tokens", code: 405, has: `"detail":"accepted here: GET, HEAD, POST"`},
		{method: "HEAD", path: "/v0/workload-report-sets", code: 405},
		{method: "HEAD", path: "/v0/workload-instances", code: 405},
		{
			method: "GET", path: "/metrics", code: 200,
			has: `controlplane_request_duration_seconds_count{code="405",method="other",route="/v0/tokens"} 1`,
		},
		{
			method: "GET", path: "/metrics", code: 200,
			has: `controlplane_request_duration_seconds_count{code="200",method="GET",route="GET /workloads/{type}/{id}"} 1`,
		},
		{method: "GET", path: "/metrics", code: 200, has: `go_sql_open_connections{db_name="write"}`},
		{method: "GET", path: "/metrics", code: 200, has: `controlplane_clusters{state="silent"} 0`},
	} {
		if code, answer := call(t, exchange{method: tc.method, path: url + tc.path}); code != tc.code || !strings.Contains(strings.ToLower(answer), strings.ToLower(tc.has)) {
			t.Errorf("%s %s: %d %.2000s, want %d", tc.method, tc.path, code, answer, tc.code)
		}
	}
}

func TestProbes_WithoutDatabase(t *testing.T) {
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
		t.Errorf("v0 reveals the database: %d %s, want %d", answer.Code, answer.Body, http.StatusInternalServerError)
	}
	answer = httptest.NewRecorder()
	s.http.Handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	if text := answer.Body.String(); answer.Code != http.StatusOK || !strings.Contains(text, `route="/readyz"`) || strings.Contains(text, "controlplane_clusters{") {
		t.Errorf("/metrics: %d %.2000s, want %d", answer.Code, text, http.StatusOK)
	}
	if err := s.close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The stream must end after its headers: on one connection, the next request would wait for it.
func TestRoutes_Head_IsGetWithoutBody(t *testing.T) {
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
		hasType, isProbe := resp.Header.Get("Content-Type") != "", path == "/healthz" || path == "/readyz"
		if resp.StatusCode != http.StatusOK || hasType == isProbe { // a probe is answered without a body
			t.Errorf("%s: the answer is %d %v, want %d", path, resp.StatusCode, resp.Header, http.StatusOK)
		}
	}
}

// openServer is a server that does not run.
func openServer(t *testing.T, change func(*Config)) *Server {
	t.Helper()
	config := plain()
	change(&config)
	s, err := New(t.Context(), config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// grants are the routes and who may use them besides administrators, written down a second time.
var grants = map[string]string{
	"GET /healthz":      "anyone",
	"GET /readyz":       "anyone",
	"GET /metrics":      "viewer",
	"GET /openapi.json": "viewer agent",

	"GET /workload-report-sets/versions":          "viewer agent",
	"GET /workload-instances/versions":            "viewer agent",
	"GET /helm-workload-instances/versions":       "viewer agent",
	"GET /workload-resource-instances/versions":   "viewer agent",
	"GET /workload-events/versions":               "viewer agent",
	"GET /{objects}/versions":                     "viewer agent",
	"POST /v0/workload-report-sets":               "agent, report set",
	"GET /v0/workload-instances":                  "viewer",
	"POST /v0/workload-instances":                 "",
	"GET /v0/workload-instances/{id}":             "viewer agent",
	"PATCH /v0/workload-instances/{id}":           "agent, v0 write",
	"DELETE /v0/workload-instances/{id}":          "",
	"GET /v0/helm-workload-instances":             "viewer",
	"POST /v0/helm-workload-instances":            "",
	"GET /v0/helm-workload-instances/{id}":        "viewer agent",
	"PATCH /v0/helm-workload-instances/{id}":      "agent, v0 write",
	"DELETE /v0/helm-workload-instances/{id}":     "",
	"GET /v0/workload-resource-instances":         "viewer",
	"POST /v0/workload-resource-instances":        "",
	"GET /v0/workload-resource-instances/{id}":    "viewer agent",
	"PATCH /v0/workload-resource-instances/{id}":  "agent, v0 write",
	"DELETE /v0/workload-resource-instances/{id}": "",
	"GET /v0/workload-events":                     "viewer agent",
	"POST /v0/workload-events":                    "agent, v0 write",
	"GET /v0/workload-events/{id}":                "viewer agent",
	"PATCH /v0/workload-events/{id}":              "agent, v0 write",
	"DELETE /v0/workload-events/{id}":             "",

	"GET /v0/workloads":                             "viewer",
	"GET /v0/workloads/watch":                       "viewer, stream",
	"GET /v0/workloads/{type}/{id}":                 "viewer",
	"GET /v0/workloads/{type}/{id}/events":          "viewer",
	"GET /v0/workloads/{type}/{id}/event-retention": "viewer agent",
	"PUT /v0/workloads/{type}/{id}/cluster":         "",
	"DELETE /v0/workloads/{type}/{id}/cluster":      "",
	"GET /v0/clusters":                              "viewer",
	"GET /v0/clusters/{uid}/objects/{objectUID}":    "viewer",

	"DELETE /v0/clusters/{uid}":    "",
	"GET /v0/tokens":               "",
	"POST /v0/tokens":              ", token change",
	"DELETE /v0/tokens/{id}":       ", token change",
	"GET /v0/tokens/own":           "agent",
	"POST /v0/tokens/own/renewals": "agent, renewal",
	"GET /v0/audit-records":        "",

	"GET /{$}":                   "viewer",
	"GET /workloads/{type}/{id}": "viewer",
	"GET /page/{version}/{name}": "anyone",
	"GET /page/":                 "anyone",
	"GET /login":                 "anyone",
	"POST /login":                "anyone",
	"GET /login/style.css":       "anyone",
	"POST /logout":               "anyone",
	"GET /login/sso":             "anyone",
	"GET /login/sso/callback":    "anyone",
}

// granted describes an access in the form of grants.
func granted(a access) string {
	if a.public {
		return "anyone"
	}
	text := make([]string, len(a.roles))
	for i, role := range a.roles {
		text[i] = string(role)
	}
	class := map[auth.RuleKind]string{auth.KindV0Report: ", v0 write", auth.KindReportSet: ", report set", auth.KindTokens: ", token change", auth.KindRenewal: ", renewal", auth.KindStream: ", stream"}
	return strings.Join(text, " ") + class[a.kind]
}

func TestRoutes_Access(t *testing.T) {
	s := openServer(t, func(*Config) {})
	h, err := s.newHandlers(newV0API(s.store, s.log, DefaultLimits().V0BodyBytes))
	if err != nil {
		t.Fatal(err)
	}
	h.login.SignOn, h.login.Callback = http.NotFound, http.NotFound // as with an identity provider
	rows := h.routes()
	for _, row := range rows {
		pattern := row.method + " " + row.path
		want, known := grants[pattern]
		if got := granted(row.access); !known || got != want {
			t.Errorf("%s: access %q, want %q (in the list: %t)", pattern, got, want, known)
		}
	}
	if len(rows) != len(grants) {
		t.Errorf("the server has %d routes, this test knows %d", len(rows), len(grants))
	}
}

// A route's body has a limit and a timeout exactly if its method sends one.
func TestRoutes_BodyLimits(t *testing.T) {
	s := openServer(t, func(*Config) {})
	h, err := s.newHandlers(newV0API(s.store, s.log, DefaultLimits().V0BodyBytes))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range h.routes() {
		sends := row.method == http.MethodPost || row.method == http.MethodPatch || row.method == http.MethodPut
		if sends != (row.body.bytes > 0) || sends != (row.body.timeout > 0) {
			t.Errorf("%s %s: the limits of the body are %d bytes and %v, want both only for methods with a body", row.method, row.path, row.body.bytes, row.body.timeout)
		}
	}
}

func TestRoutes_WithoutCredential(t *testing.T) {
	url, client, _ := secured(t)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	fill := strings.NewReplacer("{$}", "", "{type}", "WorkloadInstance", "{id}", "1", "{uid}", "c", "{objectUID}", "o", "{objects}", "things",
		"{version}", "1", "{name}", "main.js")
	for pattern, access := range grants {
		method, path, _ := strings.Cut(pattern, " ")
		got := send(t, client, method, url+fill.Replace(path), http.Header{}, nil)
		// The log-in form answers 401 with a page.
		refused := got.code == http.StatusUnauthorized && got.header.Get("Content-Type") == "application/problem+json"
		if refused == (access == "anyone") {
			t.Errorf("%s without a credential: the answer is %d, the access %q", pattern, got.code, access)
		}
	}
}

// secured is an API with TLS, a client that trusts it, and a function that creates tokens.
func secured(t *testing.T, change ...func(*Config)) (url string, client *http.Client, token func(role, cluster string) string) {
	t.Helper()
	ca := certs.ForTest(t)
	config := securedConfig(t, ca)
	for _, one := range change {
		one(&config)
	}
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

// securedConfig is the configuration of an API with authentication on a database file.
func securedConfig(t *testing.T, ca *certs.TestAuthority) Config {
	t.Helper()
	files := ca.IssueFiles("server")
	config := onFile(t)
	config.AuthEnabled, config.CertFile, config.KeyFile, config.CAFile = true, files.Cert, files.Key, files.CA
	return config
}

func TestServer_Roles(t *testing.T) {
	url, client, token := secured(t)
	agent, viewer, admin := token("agent", "c"), token("viewer", ""), token("admin", "")
	set := []byte(`{` + someAgent + `,"reports":[]}`)
	foreign := bytes.Replace(set, []byte(`"c"`), []byte(`"other"`), 1)
	for _, tc := range []struct {
		reason, method, path, bearer string
		body                         []byte
		code                         int
	}{
		{reason: "an agent's own cluster", method: "POST", path: "/v0/workload-report-sets", bearer: agent, body: set, code: 200},
		{reason: "another cluster", method: "POST", path: "/v0/workload-report-sets", bearer: agent, body: foreign, code: 403},
		{reason: "a viewer reports", method: "POST", path: "/v0/workload-report-sets", bearer: viewer, body: set, code: 403},
		{reason: "an administrator reports", method: "POST", path: "/v0/workload-report-sets", bearer: admin, body: foreign, code: 200},
		{reason: "no credential", method: "POST", path: "/v0/workload-report-sets", body: set, code: 401},
		{reason: "a wrong token", method: "GET", path: "/v0/workloads", bearer: viewer + "x", code: 401},
		{reason: "a viewer reads", method: "GET", path: "/v0/workloads", bearer: viewer, code: 200},
		{reason: "an agent lists workloads", method: "GET", path: "/v0/workloads", bearer: agent, code: 403},
		{reason: "a viewer reads metrics", method: "GET", path: "/metrics", bearer: viewer, code: 200},
		{reason: "a viewer lists tokens", method: "GET", path: "/v0/tokens", bearer: viewer, code: 403},
		{reason: "an administrator lists tokens", method: "GET", path: "/v0/tokens", bearer: admin, code: 200},
		{reason: "health is public", method: "GET", path: "/healthz", code: 200},
		{reason: "readiness is public", method: "GET", path: "/readyz", code: 200},
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
			t.Errorf("%s: %s, TLS %x, want \"HTTP/2.0\" and %x", tc.reason, got.protocol, got.tls.Version, tls.VersionTLS13)
		}
		if tc.code > 400 && got.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: the headers are %s, want a problem document", tc.reason, got.header)
		}
	}
}
