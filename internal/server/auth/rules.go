package auth

import (
	"net/http"
	"path"
	"slices"
	"strings"
)

// Rule grants requests that match a pattern to roles. Administrators are granted everything. A request without a rule is for
// administrators only. The server's table of routes has the rules.
//
// A rule does not depend on rows. Handlers that serve agents also check the rows with [Principal.Authorize], and that
// of report sets the cluster with [Principal.MayReportFor].
type Rule struct {
	Pattern string // of [http.ServeMux]
	Public  bool   // a request needs no credential
	Roles   []Role // besides administrators
	Kind    RuleKind
}

// RuleKind classifies requests for the audit log and for timeouts.
type RuleKind int

// The kinds of rules.
const (
	KindPlain RuleKind = iota
	// KindV0Report is a write of a v0 agent, and KindReportSet a report set.
	KindV0Report
	KindReportSet
	// KindTokens changes permissions.
	KindTokens
	// KindRenewal replaces the caller's own token.
	KindRenewal
	// KindDefinition reads the definitions of objects.
	KindDefinition
	// KindStream is an answer without an end.
	KindStream
)

// ServeHTTP makes a rule an [http.Handler] for rulesMux. It is never called.
func (Rule) ServeHTTP(http.ResponseWriter, *http.Request) {}

// rulesMuxes return a mux for the public rules and one for the others. Their handlers are the rules, so that they match paths
// exactly as the router does. One mux cannot have both "/page/" and "/{objects}/versions".
func rulesMuxes(rules []Rule) (public, others *http.ServeMux) {
	public, others = http.NewServeMux(), http.NewServeMux()
	for _, r := range rules {
		if r.Public {
			public.Handle(r.Pattern, r)
		} else {
			others.Handle(r.Pattern, r)
		}
	}
	return public, others
}

// ruleFor returns the rule of a request. Without one it is the zero rule, which allows administrators only.
func ruleFor(mux *http.ServeMux, r *http.Request) Rule {
	found, _ := mux.Handler(r)
	matched, _ := found.(Rule)
	return matched
}

// allows reports whether the rule allows a role.
func (r Rule) allows(role Role) bool {
	return role == RoleAdmin || slices.Contains(r.Roles, role)
}

// isPublic reports whether a request matches a public rule. Unclean paths are not public, since handlers may read them
// differently.
func isPublic(public *http.ServeMux, r *http.Request) bool {
	given := r.URL.Path
	if r.URL.RawPath != "" || given == "" || path.Clean(given) != strings.TrimSuffix(given, "/") {
		return false
	}
	return ruleFor(public, r).Public
}

// isSafe reports whether a method only reads (RFC 9110, section 9.2.1).
func isSafe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions || method == http.MethodTrace
}
