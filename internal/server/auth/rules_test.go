package auth

import (
	"crypto/tls"
	"math"
	"net/http"
	"strings"
	"testing"
)

// grants repeats the expected permissions of agents and viewers independently of the rules.
var grants = []struct {
	pattern, path string
	agent, viewer bool
}{
	{"GET /{objects}/versions", "/workload-report-sets/versions", true, true},
	{"GET /openapi.json", "/openapi.json", true, true},
	{"GET /metrics", "/metrics", false, true},
	{"POST /v0/workload-report-sets", "/v0/workload-report-sets", true, false},
	{"GET /v0/workload-instances", "/v0/workload-instances", false, true},
	{"GET /v0/workload-instances/{id}", "/v0/workload-instances/7", true, true},
	{"PATCH /v0/workload-instances/{id}", "/v0/workload-instances/7", true, false},
	{"GET /v0/helm-workload-instances", "/v0/helm-workload-instances", false, true},
	{"GET /v0/helm-workload-instances/{id}", "/v0/helm-workload-instances/7", true, true},
	{"PATCH /v0/helm-workload-instances/{id}", "/v0/helm-workload-instances/7", true, false},
	{"GET /v0/workload-resource-instances", "/v0/workload-resource-instances", false, true},
	{"GET /v0/workload-resource-instances/{id}", "/v0/workload-resource-instances/7", true, true},
	{"PATCH /v0/workload-resource-instances/{id}", "/v0/workload-resource-instances/7", true, false},
	{"GET /v0/workload-events", "/v0/workload-events", true, true},
	{"POST /v0/workload-events", "/v0/workload-events", true, false},
	{"GET /v0/workload-events/{id}", "/v0/workload-events/7", true, true},
	{"PATCH /v0/workload-events/{id}", "/v0/workload-events/7", true, false},
	{"GET /v0/workloads", "/v0/workloads", false, true},
	{"GET /v0/workloads/watch", "/v0/workloads/watch", false, true},
	{"GET /v0/workloads/{type}/{id}", "/v0/workloads/WorkloadInstance/7", false, true},
	{"GET /v0/workloads/{type}/{id}/events", "/v0/workloads/WorkloadInstance/7/events", false, true},
	{"GET /v0/workloads/{type}/{id}/event-retention", "/v0/workloads/WorkloadInstance/7/event-retention", true, true},
	{"GET /v0/clusters", "/v0/clusters", false, true},
	{"GET /v0/clusters/{uid}/objects/{objectUID}", "/v0/clusters/a/objects/b", false, true},
	{"DELETE /v0/clusters/{uid}", "/v0/clusters/a", false, false},
	{"GET /v0/tokens", "/v0/tokens", false, false},
	{"POST /v0/tokens", "/v0/tokens", false, false},
	{"DELETE /v0/tokens/{id}", "/v0/tokens/7", false, false},
	{"GET /v0/audit-records", "/v0/audit-records", false, false},
	{"GET /{$}", "/", false, true},
	{"GET /workloads/{type}/{id}", "/workloads/WorkloadInstance/7", false, true},
}

// testRules are the rules of grants, with the kinds of the server's routes.
func testRules() (rules []Rule) {
	for _, g := range grants {
		rule := Rule{Pattern: g.pattern}
		if g.agent {
			rule.Roles = append(rule.Roles, RoleAgent)
		}
		if g.viewer {
			rule.Roles = append(rule.Roles, RoleViewer)
		}
		method, path, _ := strings.Cut(g.pattern, " ")
		switch {
		case path == "/v0/workload-report-sets":
			rule.Kind = KindReportSet
		case path == "/v0/workloads/watch":
			rule.Kind = KindStream
		case strings.HasPrefix(path, "/v0/tokens") && method != http.MethodGet:
			rule.Kind = KindTokens
		case g.agent && (method == http.MethodPost || method == http.MethodPatch):
			rule.Kind = KindV0Report
		}
		rules = append(rules, rule)
	}
	return rules
}

// denied are requests without a rule, some of which resemble one.
var denied = []struct{ reason, method, path string }{
	{"creates an instance", "POST", "/v0/workload-instances"},
	{"deletes an instance", "DELETE", "/v0/workload-instances/7"},
	{"creates a resource", "POST", "/v0/workload-resource-instances"},
	{"deletes a resource", "DELETE", "/v0/workload-resource-instances/7"},
	{"deletes an Event", "DELETE", "/v0/workload-events/7"},
	{"replaces an Event", "PUT", "/v0/workload-events/7"},
	// Unknown routes.
	{"an unknown method", "FROB", "/v0/workload-events"},
	{"an unknown path", "GET", "/v0/secrets"},
	{"below a rule", "GET", "/v0/tokens/7"},
	{"beside a rule", "GET", "/v0/workloads/"},
	{"in capitals", "GET", "/v0/Workloads"},
	// Unclean paths.
	{"a rule with a double slash", "POST", "/v0//workload-report-sets"},
	{"a rule after dot segments", "POST", "/x/../v0/workload-report-sets"},
	{"an escaped slash is part of a name", "GET", "/v0%2Fworkloads"},
	// Below public paths.
	{"dot segments after a public path", "GET", "/page/../v0/tokens"},
	{"escaped dot segments after a public path", "GET", "/page/..%2fv0/tokens"},
	// Similar to public paths.
	{"a public path with an escaped slash", "GET", "/page%2fv0"},
	{"a public path with a double slash", "GET", "//login"},
	{"like a public path", "GET", "/healthz/x"},
	{"like a public folder", "GET", "/pages"},
}

// credentials are all kinds of credentials for all roles.
func credentials(t *testing.T, w *world) []struct {
	name    string
	role    Role
	of      Credential
	client  *http.Client
	present func(*http.Request)
} {
	t.Helper()
	none := func(*http.Request) {}
	with := func(name string, groups ...string) *http.Client {
		return w.client(t, certificate(t, w.authority, name, groups...))
	}
	secret := func(role Role) func(*http.Request) {
		_, s := w.token(t, role)
		return bearer(s)
	}
	return []struct {
		name    string
		role    Role
		of      Credential
		client  *http.Client
		present func(*http.Request)
	}{
		{"agent's certificate", RoleAgent, CredentialCertificate, with(clusterUID, "threeport:agents"), none},
		{"viewer's certificate", RoleViewer, CredentialCertificate, with("jane", "threeport:viewers", "people"), none},
		{"admin's certificate", RoleAdmin, CredentialCertificate, with("root", "threeport:admins"), none},
		{"certificate of v0", RoleAdmin, CredentialCertificate, with("workload-agent", "Threeport"), none},
		{"agent's token", RoleAgent, CredentialToken, w.plain, secret(RoleAgent)},
		{"viewer's token", RoleViewer, CredentialToken, w.plain, secret(RoleViewer)},
		{"admin's token", RoleAdmin, CredentialToken, w.plain, secret(RoleAdmin)},
		{"viewer's session", RoleViewer, CredentialSession, w.plain, cookie(w.session(t, RoleViewer))},
		{"admin's session", RoleAdmin, CredentialSession, w.plain, cookie(w.session(t, RoleAdmin))},
	}
}

func TestRules_EveryCredential(t *testing.T) {
	w := start(t, defaultOptions())
	for _, who := range credentials(t, w) {
		t.Run(who.name, func(t *testing.T) {
			for _, g := range grants {
				method, _, _ := strings.Cut(g.pattern, " ")
				want := http.StatusForbidden
				if who.role == RoleAdmin || who.role == RoleAgent && g.agent || who.role == RoleViewer && g.viewer {
					want = http.StatusOK
				}
				got := w.do(t, who.client, method, g.path, who.present)
				if got.code != want {
					t.Errorf("%s %s: %d %s, want %d", method, g.path, got.code, got.body, want)
				}
				if p := w.principal(); want == http.StatusOK && (p.Role != who.role || p.Credential != who.of) {
					t.Errorf("%s %s: the principal is %+v", method, g.path, p)
				}
				if method == http.MethodGet {
					if head := w.do(t, who.client, http.MethodHead, g.path, who.present); head.code != want {
						t.Errorf("HEAD %s: %d, want %d", g.path, head.code, want)
					}
				}
			}
			for _, d := range denied {
				got := w.do(t, who.client, d.method, d.path, who.present)
				if (got.code == http.StatusForbidden) == (who.role == RoleAdmin) {
					t.Errorf("%s, %s %s: the answer is %d, want that only administrators are permitted", d.reason, d.method, d.path, got.code)
				}
			}
		})
	}
}

func TestRules_WithoutCredential_AreUnauthorized(t *testing.T) {
	w := start(t, defaultOptions())
	for _, g := range grants {
		method, _, _ := strings.Cut(g.pattern, " ")
		got := w.do(t, w.plain, method, g.path)
		if got.code != http.StatusUnauthorized || got.header.Get("WWW-Authenticate") != "Bearer" ||
			got.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: the answer is %d %v, want a problem with status 401", method, g.path, got.code, got.header)
		}
	}
	for _, d := range denied {
		if got := w.do(t, w.plain, d.method, d.path); got.code != http.StatusUnauthorized {
			t.Errorf("%s, %s %s: %d, want %d", d.reason, d.method, d.path, got.code, http.StatusUnauthorized)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/login", "/login/style.css", "/page/1/style.css", "/page/"} {
		if got := w.do(t, w.plain, http.MethodGet, path); got.code != http.StatusOK {
			t.Errorf("GET %s: %d, want %d", path, got.code, http.StatusOK)
		}
		if p := w.principal(); p != (Principal{}) {
			t.Errorf("GET %s: the principal is %+v, want %+v", path, p, Principal{})
		}
	}
}

func TestRules_AuthenticationDisabled_AllowEverything(t *testing.T) {
	s := defaultOptions()
	s.config.Enabled, s.plain = false, true
	w := start(t, s)
	for _, g := range grants {
		method, _, _ := strings.Cut(g.pattern, " ")
		if got := w.do(t, w.plain, method, g.path); got.code != http.StatusOK || w.principal().Role != RoleAdmin {
			t.Errorf("%s %s: %d %+v, want %d", method, g.path, got.code, w.principal(), http.StatusOK)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if got := w.do(t, w.plain, method, "/login"); got.code != http.StatusSeeOther || got.header.Get("Location") != "/" {
			t.Errorf("%s /login: %d %v, want %d", method, got.code, got.header, http.StatusSeeOther)
		}
	}
	if got := w.records(); len(got) != 2 { // POST and DELETE of tokens
		t.Errorf("the audit log has %+v, want the POST and the DELETE of tokens", got)
	}
}

func TestAuthenticate_CertificateWithoutGroup_HasDefaultRole(t *testing.T) {
	s := defaultOptions()
	s.config.CertificateRole = RoleViewer
	w := start(t, s)
	client := w.client(t, certificate(t, w.authority, "workload-agent"))
	if got := w.do(t, client, http.MethodGet, "/v0/workloads"); got.code != http.StatusOK || w.principal().Role != RoleViewer {
		t.Errorf("viewer: the answer is %d %+v, want %d", got.code, w.principal(), http.StatusOK)
	}
	if got := w.do(t, client, http.MethodGet, "/v0/tokens"); got.code != http.StatusForbidden {
		t.Errorf("tokens: the answer is %d, want %d", got.code, http.StatusForbidden)
	}
}

func TestAuthenticate_InvalidCertificate_IsUnauthorized(t *testing.T) {
	w := start(t, defaultOptions())
	for _, tc := range []struct {
		reason string
		cert   tls.Certificate
	}{
		{"an agent without a cluster", certificate(t, w.authority, "", "threeport:agents")},
		{"an agent whose cluster is not a UID", certificate(t, w.authority, "a b", "threeport:agents")},
		{"an agent whose cluster is too long", certificate(t, w.authority, strings.Repeat("x", 129), "threeport:agents")},
		{"two groups", certificate(t, w.authority, clusterUID, "threeport:agents", "threeport:admins")},
		{"a misspelled group", certificate(t, w.authority, clusterUID, "threeport:agent")},
		{"a group in capitals", certificate(t, w.authority, "root", "Threeport:Admins")},
	} {
		got := w.do(t, w.client(t, tc.cert), http.MethodGet, "/v0/workloads")
		if got.code != http.StatusUnauthorized {
			t.Errorf("%s: the answer is %d %s, want %d", tc.reason, got.code, got.body, http.StatusUnauthorized)
		}
	}
}

func TestAuthenticate_UnverifiedCertificate_IsUnauthorized(t *testing.T) {
	s := defaultOptions()
	s.clientAuth = tls.RequestClientCert
	w := start(t, s)
	got := w.do(t, w.client(t, certificate(t, w.authority, "root", "threeport:admins")), http.MethodGet, "/v0/tokens")
	if got.code != http.StatusUnauthorized {
		t.Errorf("accepted: the answer is %d, want %d", got.code, http.StatusUnauthorized)
	}
}

func TestAuthenticate_CertificateExpiresWhileConnected(t *testing.T) {
	w := start(t, defaultOptions())
	client := w.client(t, certificate(t, w.authority, "root", "threeport:admins"))
	if got := w.do(t, client, http.MethodGet, "/v0/tokens"); got.code != http.StatusOK {
		t.Fatalf("before: the answer is %d, want %d", got.code, http.StatusOK)
	}
	w.clock.advance(366 * 24 * 60 * 60 * 1e9)
	if got := w.do(t, client, http.MethodGet, "/v0/tokens"); got.code != http.StatusUnauthorized {
		t.Errorf("after: the answer is %d, want %d", got.code, http.StatusUnauthorized)
	}
}

func TestConfigValidate(t *testing.T) {
	for _, tc := range []struct {
		reason string
		change func(*Config)
		want   string
	}{
		{"the default", func(*Config) {}, ""},
		{"no bounds", func(c *Config) { c.AgentRate, c.ViewerRate = Rate{}, Rate{} }, ""},
		{"one public file", func(c *Config) { c.PublicPaths = []string{"/robots.txt"} }, ""},
		{"unknown role", func(c *Config) { c.CertificateRole = "root" }, "certificate role"},
		{"no role", func(c *Config) { c.CertificateRole = "" }, "certificate role"},
		{"an agent of no cluster", func(c *Config) { c.CertificateRole = RoleAgent }, "certificate role"},
		{"all public", func(c *Config) { c.PublicPaths = []string{"/"} }, "public path"},
		{"a path that is not clean", func(c *Config) { c.PublicPaths = []string{"/a/../"} }, "public path"},
		{"no path", func(c *Config) { c.PublicPaths = []string{""} }, "public path"},
		{"a relative path", func(c *Config) { c.PublicPaths = []string{"assets/"} }, "public path"},
		{"negative rate", func(c *Config) { c.AgentRate.PerSecond = -1 }, "agent rate"},
		{"infinite rate", func(c *Config) { c.AgentRate.PerSecond = math.Inf(1) }, "agent rate"},
		{"rate is not a number", func(c *Config) { c.ViewerRate.PerSecond = math.NaN() }, "viewer rate"},
		{"no burst", func(c *Config) { c.ViewerRate.Burst = 0 }, "viewer rate"},
	} {
		config := DefaultConfig()
		tc.change(&config)
		switch err := config.Validate(); {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", tc.reason, err)
		case tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)):
			t.Errorf("%s: %v, want an error for the %s", tc.reason, err, tc.want)
		}
	}
}
