package auth

import (
	"net/http"
	"path"
	"slices"
	"strings"
)

// rule grants a pattern of requests to roles besides the administrator, who may do everything.
type rule struct {
	pattern string // as of [http.ServeMux]
	roles   []Role
	kind    ruleKind
}

// kind is what a request is to audit and to time.
type ruleKind int

const (
	kindPlain ruleKind = iota
	// report is what an agent writes through v0, reportSet what it writes else.
	kindV0Report
	kindReportSet
	// tokens changes who may do what.
	kindTokens
	// endless is an answer that goes on until somebody ends it.
	kindStream
)

var (
	viewersAndAgents  = []Role{RoleViewer, RoleAgent}
	viewers  = []Role{RoleViewer}
	agents   = []Role{RoleAgent}
	adminsOnly []Role // but the administrator
)

// rules are all routes that the API has. What is not here is the administrator's.
//
// Which rows an agent may read and write the paths do not tell: handlers of v0, and the one of what is kept of a workload,
// ask [Principal.May], and the one of report sets [Principal.SpeaksFor].
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

// ServeHTTP makes a rule a handler, so that a mux finds it. It is never called.
func (rule) ServeHTTP(http.ResponseWriter, *http.Request) {}

// table finds the rule of a request. It is a mux, so that it reads paths exactly as the router behind it does.
var ruleMux = func() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range rules {
		mux.Handle(r.pattern, r)
	}
	return mux
}()

// ruleOf is the rule of a request; the zero one, which is no one's but the administrator's, if there is none.
func ruleFor(r *http.Request) rule {
	found, _ := ruleMux.Handler(r)
	matched, _ := found.(rule)
	return matched
}

// Listed tells whether there is a rule for exactly this pattern, such as "GET /v0/clusters". A route without one is the
// administrator's only, which is hardly what was meant: a test of the routes wants it to be true.
func HasRule(pattern string) bool {
	return slices.ContainsFunc(rules, func(r rule) bool { return r.pattern == pattern })
}

// grants tells whether a role may do what the rule is about.
func (r rule) allows(role Role) bool {
	return role == RoleAdmin || slices.Contains(r.roles, role)
}

// ownPaths need no principal, whatever the configuration says.
var alwaysPublicPaths = []string{"/healthz", "/readyz", loginPath, stylePath, logoutPath, signOnPath, CallbackPath}

// isPublic tells whether a request needs no principal. A path that is written in an unusual way is not public, since
// whatever serves it may read it differently.
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

// isSafe tells whether a method only reads (RFC 9110, section 9.2.1).
func isSafe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions || method == http.MethodTrace
}
