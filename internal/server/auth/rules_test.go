package auth

import (
	"crypto/tls"
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"
)

// grants repeats the expected permissions of agents and viewers independently of the rules.
var grants = []struct {
	pattern, path string
	agent, viewer bool
}{
	{pattern: "GET /{objects}/versions", path: "/workload-report-sets/versions", agent: true, viewer: true},
	{pattern: "GET /openapi.json", path: "/openapi.json", agent: true, viewer: true},
	{pattern: "GET /metrics", path: "/metrics", viewer: true},
	{pattern: "POST /v0/workload-report-sets", path: "/v0/workload-report-sets", agent: true},
	{pattern: "GET /v0/workload-instances", path: "/v0/workload-instances", viewer: true},
	{pattern: "GET /v0/workload-instances/{id}", path: "/v0/workload-instances/7", agent: true, viewer: true},
	{pattern: "PATCH /v0/workload-instances/{id}", path: "/v0/workload-instances/7", agent: true},
	{pattern: "GET /v0/helm-workload-instances", path: "/v0/helm-workload-instances", viewer: true},
	{pattern: "GET /v0/helm-workload-instances/{id}", path: "/v0/helm-workload-instances/7", agent: true, viewer: true},
	{pattern: "PATCH /v0/helm-workload-instances/{id}", path: "/v0/helm-workload-instances/7", agent: true},
	{pattern: "GET /v0/workload-resource-instances", path: "/v0/workload-resource-instances", viewer: true},
	{pattern: "GET /v0/workload-resource-instances/{id}", path: "/v0/workload-resource-instances/7", agent: true, viewer: true},
	{pattern: "PATCH /v0/workload-resource-instances/{id}", path: "/v0/workload-resource-instances/7", agent: true},
	{pattern: "GET /v0/workload-events", path: "/v0/workload-events", agent: true, viewer: true},
	{pattern: "POST /v0/workload-events", path: "/v0/workload-events", agent: true},
	{pattern: "GET /v0/workload-events/{id}", path: "/v0/workload-events/7", agent: true, viewer: true},
	{pattern: "PATCH /v0/workload-events/{id}", path: "/v0/workload-events/7", agent: true},
	{pattern: "GET /v0/workloads", path: "/v0/workloads", viewer: true},
	{pattern: "GET /v0/workloads/watch", path: "/v0/workloads/watch", viewer: true},
	{pattern: "GET /v0/workloads/{type}/{id}", path: "/v0/workloads/WorkloadInstance/7", viewer: true},
	{pattern: "GET /v0/workloads/{type}/{id}/events", path: "/v0/workloads/WorkloadInstance/7/events", viewer: true},
	{
		pattern: "GET /v0/workloads/{type}/{id}/event-retention", path: "/v0/workloads/WorkloadInstance/7/event-retention",
		agent: true, viewer: true,
	},
	{pattern: "GET /v0/clusters", path: "/v0/clusters", viewer: true},
	{pattern: "GET /v0/clusters/{uid}/objects/{objectUID}", path: "/v0/clusters/a/objects/b", viewer: true},
	{pattern: "DELETE /v0/clusters/{uid}", path: "/v0/clusters/a"},
	{pattern: "GET /v0/tokens", path: "/v0/tokens"},
	{pattern: "POST /v0/tokens", path: "/v0/tokens"},
	{pattern: "DELETE /v0/tokens/{id}", path: "/v0/tokens/7"},
	{pattern: "GET /v0/tokens/own", path: "/v0/tokens/own", agent: true},
	{pattern: "POST /v0/tokens/own/renewals", path: "/v0/tokens/own/renewals", agent: true},
	{pattern: "GET /v0/audit-records", path: "/v0/audit-records"},
	{pattern: "GET /{$}", path: "/", viewer: true},
	{pattern: "GET /workloads/{type}/{id}", path: "/workloads/WorkloadInstance/7", viewer: true},
}

// testRules are the rules of grants, with the kinds of the server's routes, and the public ones.
func testRules() (rules []Rule) {
	for _, pattern := range []string{
		"GET /healthz", "GET /readyz", "GET /login", "POST /login", "GET /login/style.css", "POST /logout", "GET /login/sso",
		"GET " + CallbackPath, "GET /page/",
	} {
		rules = append(rules, Rule{Pattern: pattern, Public: true})
	}
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
		case path == "/v0/tokens/own/renewals":
			rule.Kind = KindRenewal
		case strings.HasPrefix(path, "/v0/tokens") && method != http.MethodGet:
			rule.Kind = KindTokens
		case strings.HasPrefix(path, "/v0/workload-resource-instances") && method == http.MethodGet:
			rule.Kind = KindDefinition
		case g.agent && (method == http.MethodPost || method == http.MethodPatch):
			rule.Kind = KindV0Report
		}
		rules = append(rules, rule)
	}
	return rules
}

// denied are requests without a rule, some of which resemble one.
var denied = []struct{ reason, method, path string }{
	{reason: "creates an instance", method: "POST", path: "/v0/workload-instances"},
	{reason: "deletes an instance", method: "DELETE", path: "/v0/workload-instances/7"},
	{reason: "creates a resource", method: "POST", path: "/v0/workload-resource-instances"},
	{reason: "deletes a resource", method: "DELETE", path: "/v0/workload-resource-instances/7"},
	{reason: "deletes an Event", method: "DELETE", path: "/v0/workload-events/7"},
	{reason: "replaces an Event", method: "PUT", path: "/v0/workload-events/7"},
	// Unknown routes.
	{reason: "an unknown method", method: "FROB", path: "/v0/workload-events"},
	{reason: "an unknown path", method: "GET", path: "/v0/secrets"},
	{reason: "below a rule", method: "GET", path: "/v0/tokens/7"},
	{reason: "beside a rule", method: "GET", path: "/v0/workloads/"},
	{reason: "in capitals", method: "GET", path: "/v0/Workloads"},
	// Unclean paths.
	{reason: "a rule with a double slash", method: "POST", path: "/v0//workload-report-sets"},
	{reason: "a rule after dot segments", method: "POST", path: "/x/../v0/workload-report-sets"},
	{reason: "an escaped slash is part of a name", method: "GET", path: "/v0%2Fworkloads"},
	// Below public paths.
	{reason: "dot segments after a public path", method: "GET", path: "/page/../v0/tokens"},
	{reason: "escaped dot segments after a public path", method: "GET", path: "/page/..%2fv0/tokens"},
	// Similar to public paths.
	{reason: "a public path with an escaped slash", method: "GET", path: "/page%2fv0"},
	{reason: "a public path with a double slash", method: "GET", path: "//login"},
	{reason: "like a public path", method: "GET", path: "/healthz/x"},
	{reason: "like a public folder", method: "GET", path: "/pages"},
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
		{name: "agent's certificate", role: RoleAgent, of: CredentialCertificate, client: with(clusterUID, "threeport:agents"), present: none},
		{
			name: "viewer's certificate", role: RoleViewer, of: CredentialCertificate,
			client: with("jane", "threeport:viewers", "people"), present: none,
		},
		{name: "admin's certificate", role: RoleAdmin, of: CredentialCertificate, client: with("root", "threeport:admins"), present: none},
		{name: "certificate of v0", role: RoleAdmin, of: CredentialCertificate, client: with("workload-agent", "Threeport"), present: none},
		{name: "agent's token", role: RoleAgent, of: CredentialToken, client: w.plain, present: secret(RoleAgent)},
		{name: "viewer's token", role: RoleViewer, of: CredentialToken, client: w.plain, present: secret(RoleViewer)},
		{name: "admin's token", role: RoleAdmin, of: CredentialToken, client: w.plain, present: secret(RoleAdmin)},
		{name: "viewer's session", role: RoleViewer, of: CredentialSession, client: w.plain, present: cookie(w.session(t, RoleViewer))},
		{name: "admin's session", role: RoleAdmin, of: CredentialSession, client: w.plain, present: cookie(w.session(t, RoleAdmin))},
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
	if got := w.records(); len(got) != 3 { // POST and DELETE of tokens, and a renewal
		t.Errorf("the audit log has %+v, want the POST, the DELETE and the renewal of tokens", got)
	}
}

func TestAuthenticate_CertificateWithoutGroup_IsUnauthorized(t *testing.T) {
	s := defaultOptions()
	s.config.CertificateRole = DefaultConfig().CertificateRole
	w := start(t, s)
	client := w.client(t, certificate(t, w.authority, "workload-agent"))
	got := w.do(t, client, http.MethodGet, "/v0/workloads")
	if got.code != http.StatusUnauthorized || !strings.Contains(got.body, "--certificate-role=admin") || !strings.Contains(got.body, "threeport:agents") {
		t.Errorf("the answer is %d %s, want %d with the flag and the organization of agents", got.code, got.body, http.StatusUnauthorized)
	}
}

func TestAuthenticate_CertificateWithoutGroup_HasConfiguredRole(t *testing.T) {
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
		{"a group after a space", certificate(t, w.authority, "root", " threeport:admins")},
		{"an unknown organization", certificate(t, w.authority, "root", "people")},
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
	for reason, verify := range map[string]func(*tls.ConnectionState) error{
		"its authority is unknown":     func(*tls.ConnectionState) error { return errors.New("unknown authority") },
		"certificates are not enabled": nil,
	} {
		s := defaultOptions()
		s.config.VerifyCertificate = verify
		w := start(t, s)
		got := w.do(t, w.client(t, certificate(t, w.authority, "root", "threeport:admins")), http.MethodGet, "/v0/tokens")
		if got.code != http.StatusUnauthorized || verify != nil && !strings.Contains(got.body, "unknown authority") {
			t.Errorf("%s: the answer is %d %s, want %d", reason, got.code, got.body, http.StatusUnauthorized)
		}
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
		{reason: "the default", change: func(*Config) {}},
		{reason: "no bounds", change: func(c *Config) { c.AgentRate, c.ViewerRate = Rate{}, Rate{} }},
		{reason: "unknown role", change: func(c *Config) { c.CertificateRole = "root" }, want: "certificate role"},
		{reason: "no role of certificates", change: func(c *Config) { c.CertificateRole = "" }},
		{reason: "certificates of viewers", change: func(c *Config) { c.CertificateRole = RoleViewer }},
		{reason: "an agent of no cluster", change: func(c *Config) { c.CertificateRole = RoleAgent }, want: "certificate role"},
		{reason: "negative rate", change: func(c *Config) { c.AgentRate.PerSecond = -1 }, want: "agent rate"},
		{reason: "infinite rate", change: func(c *Config) { c.AgentRate.PerSecond = math.Inf(1) }, want: "agent rate"},
		{reason: "rate is not a number", change: func(c *Config) { c.ViewerRate.PerSecond = math.NaN() }, want: "viewer rate"},
		{reason: "session of a second", change: func(c *Config) { c.SessionLifetime = time.Second }, want: "session lifetime"},
		{reason: "session without end", change: func(c *Config) { c.SessionLifetime = math.MaxInt64 }, want: "session lifetime"},
		{reason: "no burst", change: func(c *Config) { c.ViewerRate.Burst = 0 }, want: "viewer rate"},
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
