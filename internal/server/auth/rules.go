package auth

import (
	"net/http"
	"path"
	"slices"
	"strings"
)

// Rule grants the requests of a pattern to roles. The administrator may make every request. A request without a rule is the
// administrator's alone.
//
// Rules know paths only. Which rows an agent may read and write depends on the row: handlers of v0 ask [Principal.May], and
// the handler of report sets asks [Principal.SpeaksFor].
type Rule struct {
	Pattern string // as of [http.ServeMux]
	Roles   []Role // besides the administrator
	Class   Class
}

// Class is how requests are audited, and how long they last.
type Class int

// The classes of requests.
const (
	Ordinary    Class = iota
	V0Write           // what an agent writes through v0
	ReportSet         // what an agent writes otherwise
	TokenChange       // changes who may do what
	Stream            // goes on until somebody ends it
)

// ServeHTTP makes a rule a handler, so that a mux finds it. It is never called.
func (Rule) ServeHTTP(http.ResponseWriter, *http.Request) {}

// ruleTable finds the rule of a request. It is a mux, so it reads paths exactly as the router behind it does.
type ruleTable struct{ mux *http.ServeMux }

func newRuleTable(rules []Rule) ruleTable {
	mux := http.NewServeMux()
	for _, r := range rules {
		mux.Handle(r.Pattern, r)
	}
	return ruleTable{mux}
}

// find returns the rule of a request; the zero rule, which grants nothing, if there is none.
func (t ruleTable) find(r *http.Request) Rule {
	found, _ := t.mux.Handler(r)
	matched, _ := found.(Rule)
	return matched
}

// grants reports whether a role may make the rule's requests.
func (r Rule) grants(role Role) bool {
	return role == RoleAdmin || slices.Contains(r.Roles, role)
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
