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
	kind    kind
}

// kind is what a request is to audit and to time.
type kind int

const (
	plain kind = iota
	// report is what an agent writes through v0, reportSet what it writes else.
	report
	reportSet
	// tokens changes who may do what.
	tokens
	// endless is an answer that goes on until somebody ends it.
	endless
)

var (
	readers  = []Role{RoleViewer, RoleAgent}
	viewers  = []Role{RoleViewer}
	agents   = []Role{RoleAgent}
	noneElse []Role // but the administrator
)

// rules are all routes that the API has. What is not here is the administrator's.
//
// Which rows an agent may read and write the paths do not tell: handlers of v0, and the one of what is kept of a workload,
// ask [Principal.May], and the one of report sets [Principal.SpeaksFor].
var rules = []rule{
	{"GET /{objects}/versions", readers, plain},
	{"GET /openapi.json", readers, plain},
	{"GET /metrics", viewers, plain},

	{"POST /v0/workload-report-sets", agents, reportSet},

	{"GET /v0/workload-instances", viewers, plain},
	{"GET /v0/workload-instances/{id}", readers, plain},
	{"PATCH /v0/workload-instances/{id}", agents, report},
	{"GET /v0/helm-workload-instances", viewers, plain},
	{"GET /v0/helm-workload-instances/{id}", readers, plain},
	{"PATCH /v0/helm-workload-instances/{id}", agents, report},
	{"GET /v0/workload-resource-instances", viewers, plain},
	{"GET /v0/workload-resource-instances/{id}", readers, plain},
	{"PATCH /v0/workload-resource-instances/{id}", agents, report},
	{"GET /v0/workload-events", readers, plain},
	{"POST /v0/workload-events", agents, report},
	{"GET /v0/workload-events/{id}", readers, plain},
	{"PATCH /v0/workload-events/{id}", agents, report},

	{"GET /v0/workloads", viewers, plain},
	{"GET /v0/workloads/watch", viewers, endless},
	{"GET /v0/workloads/{type}/{id}", viewers, plain},
	{"GET /v0/workloads/{type}/{id}/events", viewers, plain},
	{"GET /v0/workloads/{type}/{id}/event-retention", readers, plain},
	{"GET /v0/clusters", viewers, plain},
	{"GET /v0/clusters/{uid}/objects/{objectUID}", viewers, plain},

	{"DELETE /v0/clusters/{uid}", noneElse, plain},
	{"GET /v0/tokens", noneElse, plain},
	{"POST /v0/tokens", noneElse, tokens},
	{"DELETE /v0/tokens/{id}", noneElse, tokens},
	{"GET /v0/audit-records", noneElse, plain},

	{"GET /{$}", viewers, plain},
	{"GET /workloads/{type}/{id}", viewers, plain},
}

// ServeHTTP makes a rule a handler, so that a mux finds it. It is never called.
func (rule) ServeHTTP(http.ResponseWriter, *http.Request) {}

// table finds the rule of a request. It is a mux, so that it reads paths exactly as the router behind it does.
var table = func() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range rules {
		mux.Handle(r.pattern, r)
	}
	return mux
}()

// ruleOf is the rule of a request; the zero one, which is no one's but the administrator's, if there is none.
func ruleOf(r *http.Request) rule {
	found, _ := table.Handler(r)
	matched, _ := found.(rule)
	return matched
}

// Listed tells whether there is a rule for exactly this pattern, such as "GET /v0/clusters". A route without one is the
// administrator's only, which is hardly what was meant: a test of the routes wants it to be true.
func Listed(pattern string) bool {
	return slices.ContainsFunc(rules, func(r rule) bool { return r.pattern == pattern })
}

// grants tells whether a role may do what the rule is about.
func (r rule) grants(role Role) bool {
	return role == RoleAdmin || slices.Contains(r.roles, role)
}

// ownPaths need no principal, whatever the configuration says.
var ownPaths = []string{"/healthz", "/readyz", loginPath, stylePath, logoutPath, signOnPath, CallbackPath}

// isPublic tells whether a request needs no principal. A path that is written in an unusual way is not public, since
// whatever serves it may read it differently.
func (a *Access) isPublic(r *http.Request) bool {
	given := r.URL.Path
	if r.URL.RawPath != "" || given == "" || path.Clean(given) != strings.TrimSuffix(given, "/") {
		return false
	}
	if slices.Contains(ownPaths, given) {
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
