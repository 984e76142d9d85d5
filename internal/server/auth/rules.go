package auth

import (
	"net/http"
	"path"
	"slices"
	"strings"
)

// rule grants requests that match a pattern to roles. Administrators are granted everything.
type rule struct {
	pattern string // of [http.ServeMux]
	roles   []Role
	kind    ruleKind
}

// ruleKind classifies requests for the audit log and for timeouts.
type ruleKind int

const (
	kindPlain ruleKind = iota
	// kindV0Report is a write of a v0 agent, and kindReportSet a report set.
	kindV0Report
	kindReportSet
	// kindTokens changes permissions.
	kindTokens
	// kindStream is an answer without an end.
	kindStream
)

var (
	viewersAndAgents = []Role{RoleViewer, RoleAgent}
	viewers          = []Role{RoleViewer}
	agents           = []Role{RoleAgent}
	adminsOnly       []Role // no other role
)

// rules are the permissions for all routes. A route without a rule is for administrators only.
//
// A rule does not depend on rows. Handlers that serve agents also check the rows with [Principal.Authorize], and that
// of report sets the cluster with [Principal.MayReportFor].
var rules = []rule{
	{"GET /{objects}/versions", viewersAndAgents, kindPlain},
	{"GET /openapi.json", viewersAndAgents, kindPlain},
	{"GET /metrics", viewers, kindPlain},

	{"POST /v0/workload-report-sets", agents, kindReportSet},

	{"GET /v0/workload-instances", viewers, kindPlain},
	{"GET /v0/workload-instances/{id}", viewersAndAgents, kindPlain},
	{"PATCH /v0/workload-instances/{id}", agents, kindV0Report},
	{"GET /v0/helm-workload-instances", viewers, kindPlain},
	{"GET /v0/helm-workload-instances/{id}", viewersAndAgents, kindPlain},
	{"PATCH /v0/helm-workload-instances/{id}", agents, kindV0Report},
	{"GET /v0/workload-resource-instances", viewers, kindPlain},
	{"GET /v0/workload-resource-instances/{id}", viewersAndAgents, kindPlain},
	{"PATCH /v0/workload-resource-instances/{id}", agents, kindV0Report},
	{"GET /v0/workload-events", viewersAndAgents, kindPlain},
	{"POST /v0/workload-events", agents, kindV0Report},
	{"GET /v0/workload-events/{id}", viewersAndAgents, kindPlain},
	{"PATCH /v0/workload-events/{id}", agents, kindV0Report},

	{"GET /v0/workloads", viewers, kindPlain},
	{"GET /v0/workloads/watch", viewers, kindStream},
	{"GET /v0/workloads/{type}/{id}", viewers, kindPlain},
	{"GET /v0/workloads/{type}/{id}/events", viewers, kindPlain},
	{"GET /v0/workloads/{type}/{id}/event-retention", viewersAndAgents, kindPlain},
	{"GET /v0/clusters", viewers, kindPlain},
	{"GET /v0/clusters/{uid}/objects/{objectUID}", viewers, kindPlain},

	{"DELETE /v0/clusters/{uid}", adminsOnly, kindPlain},
	{"GET /v0/tokens", adminsOnly, kindPlain},
	{"POST /v0/tokens", adminsOnly, kindTokens},
	{"DELETE /v0/tokens/{id}", adminsOnly, kindTokens},
	{"GET /v0/audit-records", adminsOnly, kindPlain},

	{"GET /{$}", viewers, kindPlain},
	{"GET /workloads/{type}/{id}", viewers, kindPlain},
}

// ServeHTTP makes a rule an [http.Handler] for ruleMux. It is never called.
func (rule) ServeHTTP(http.ResponseWriter, *http.Request) {}

// ruleMux finds the rule of a request. It is a mux so that it matches paths exactly as the router does.
var ruleMux = func() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range rules {
		mux.Handle(r.pattern, r)
	}
	return mux
}()

// ruleFor returns the rule of a request. Without one it is the zero rule, which allows administrators only.
func ruleFor(r *http.Request) rule {
	found, _ := ruleMux.Handler(r)
	matched, _ := found.(rule)
	return matched
}

// HasRule reports whether there is a rule with exactly this pattern. A test uses it to find routes without one.
func HasRule(pattern string) bool {
	return slices.ContainsFunc(rules, func(r rule) bool { return r.pattern == pattern })
}

// allows reports whether the rule allows a role.
func (r rule) allows(role Role) bool {
	return role == RoleAdmin || slices.Contains(r.roles, role)
}

// alwaysPublicPaths need no credential, whatever the configuration.
var alwaysPublicPaths = []string{"/healthz", "/readyz", loginPath, stylePath, logoutPath, signOnPath, CallbackPath}

// isPublic reports whether a request needs no credential. Unclean paths are not public, since handlers may read them
// differently.
func (a *Authenticator) isPublic(r *http.Request) bool {
	given := r.URL.Path
	if r.URL.RawPath != "" || given == "" || path.Clean(given) != strings.TrimSuffix(given, "/") {
		return false
	}
	if slices.Contains(alwaysPublicPaths, given) {
		return true
	}
	return slices.ContainsFunc(a.config.PublicPaths, func(public string) bool {
		return given == public || strings.HasSuffix(public, "/") && strings.HasPrefix(given, public)
	})
}

// isSafe reports whether a method only reads (RFC 9110, section 9.2.1).
func isSafe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions || method == http.MethodTrace
}
