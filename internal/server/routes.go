package server

import (
	"net/http"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/server/ui"
)

// route is a row of the table of routes.
type route struct {
	method, path string // the path as of [http.ServeMux]
	access       access
	body         bodyLimit // of requests that send one
	endpoint     endpoint
}

// access has the roles that may use a route, and the way package auth treats its requests. Rates bound a principal and not a
// route: see [auth.Config]. Which rows an agent may read and write depends on the row: handlers ask package auth.
type access struct {
	public bool        // a request needs no principal
	roles  []auth.Role // besides the administrator, who may use every route
	kind   auth.RuleKind
}

// as is the access with another kind.
func (a access) as(kind auth.RuleKind) access {
	a.kind = kind
	return a
}

var (
	anyone  = access{public: true}
	readers = access{roles: []auth.Role{auth.RoleViewer, auth.RoleAgent}}
	viewers = access{roles: []auth.Role{auth.RoleViewer}}
	agents  = access{roles: []auth.Role{auth.RoleAgent}}
	admins  = access{}
)

// The body limits of routes, besides the configured limits of v0 and of report sets.
var (
	noBody     = bodyLimit{}
	tokenBody  = bodyLimit{bytes: 1 << 20, timeout: 5 * time.Second}
	loginBody  = bodyLimit{bytes: auth.MaxForm, timeout: auth.FormTimeout} // package auth reads these
	logoutBody = bodyLimit{bytes: auth.MaxForm, timeout: auth.FormTimeout}

	assignmentBody = bodyLimit{bytes: 16 << 10, timeout: 5 * time.Second}
	renewalBody    = bodyLimit{bytes: 1 << 10, timeout: 5 * time.Second} // there is none
)

// workloadPath is the path of a workload with its objects.
const workloadPath = "/v0/workloads/{type}/{id}"

// handlers are the handlers of all routes.
type handlers struct {
	probes      *probes
	metrics     *metrics
	openAPI     *openAPI
	v0          *v0API
	reportSets  *reportSets
	workloads   *workloads
	assignments *assignments
	clusters    *clusters
	watches     *watches
	tokens      *auth.TokenAPI
	audit       *auth.AuditAPI
	login       auth.LoginHandlers
	page        *ui.Page
}

// routes are all routes of the server. A path that is in no row is answered with v0's 404, to administrators only.
func (h *handlers) routes() []route {
	reportSetBody, reads := h.reportSets.bodyLimit(), h.v0.limits.reads
	rows := []route{
		{"GET", "/healthz", anyone, noBody, handle(h.probes.alive)},
		{"GET", "/readyz", anyone, noBody, handle(h.probes.ready)},
		{"GET", "/metrics", viewers, noBody, reads.limit(handle(h.metrics.handler().ServeHTTP))},
		{"GET", "/openapi.json", readers, noBody, handle(h.openAPI.serve)},

		{"GET", "/workload-report-sets/versions", readers, noBody, operation(reportSetVersionsOperation, h.reportSets.versions)},
		{"POST", "/v0/workload-report-sets", agents.as(auth.KindReportSet), reportSetBody, operation(applyReportSetOperation, h.reportSets.apply)},

		{"GET", "/v0/workloads", viewers, noBody, reads.limit(operation(listWorkloadsOperation, h.workloads.list))},
		{"GET", "/v0/workloads/watch", viewers.as(auth.KindStream), noBody, operation(watchWorkloadsOperation, h.watches.watch)},
		{"GET", workloadPath, viewers, noBody, reads.limit(operation(getWorkloadOperation, h.workloads.get))},
		{"GET", "/v0/workloads/{type}/{id}/events", viewers, noBody, reads.limit(operation(listWorkloadEventsOperation, h.workloads.listEvents))},
		{"GET", "/v0/workloads/{type}/{id}/event-retention", readers, noBody, operation(getEventRetentionOperation, h.workloads.getEventRetention)},
		{"PUT", "/v0/workloads/{type}/{id}/cluster", admins, assignmentBody, operation(assignWorkloadOperation, h.assignments.assign)},
		{"DELETE", "/v0/workloads/{type}/{id}/cluster", admins, noBody, operation(releaseWorkloadOperation, h.assignments.release)},
		{"GET", "/v0/clusters", viewers, noBody, reads.limit(operation(listClustersOperation, h.clusters.list))},
		{"GET", "/v0/clusters/{uid}/objects/{objectUID}", viewers.as(auth.KindDefinition), noBody, reads.limit(operation(getObjectOperation, h.clusters.getObject))},

		{"DELETE", "/v0/clusters/{uid}", admins, noBody, operation(releaseClusterOperation, h.clusters.release)},
		{"GET", "/v0/tokens", admins, noBody, operation(listTokensOperation, h.tokens.List)},
		{"POST", "/v0/tokens", admins.as(auth.KindTokens), tokenBody, operation(createTokenOperation, h.tokens.Create)},
		{"DELETE", "/v0/tokens/{id}", admins.as(auth.KindTokens), noBody, operation(revokeTokenOperation, h.tokens.Revoke)},
		{"GET", "/v0/tokens/own", agents, noBody, operation(getOwnTokenOperation, h.tokens.Own)},
		{"POST", "/v0/tokens/own/renewals", agents.as(auth.KindRenewal), renewalBody, operation(renewTokenOperation, h.tokens.Renew)},
		{"GET", "/v0/audit-records", admins, noBody, operation(listAuditRecordsOperation, h.audit.List)},

		{"GET", "/{$}", viewers, noBody, page(h.page.Index)},
		{"GET", "/workloads/{type}/{id}", viewers, noBody, page(h.page.Workload)},
		{"GET", "/page/{version}/{name}", anyone, noBody, page(h.page.Asset)},
		{"GET", "/page/", anyone, noBody, page(h.page.NotFound)},
		{"GET", "/login", anyone, noBody, page(h.login.Form)},
		{"POST", "/login", anyone, loginBody, page(h.login.Login)},
		{"GET", "/login/style.css", anyone, noBody, page(h.login.Style)},
		{"POST", "/logout", anyone, logoutBody, page(h.login.Logout)},

		// An agent asks for versions to learn what the server has, and has to get 404 for unknown objects.
		{"GET", "/{objects}/versions", readers, noBody, notFound},
	}
	signOn, callback := h.login.SignOn, h.login.Callback
	if signOn == nil {
		signOn, callback = h.page.NotFound, h.page.NotFound
	}
	rows = append(rows,
		route{"GET", "/login/sso", anyone, noBody, page(signOn)},
		route{"GET", auth.CallbackPath, anyone, noBody, page(callback)})
	return append(rows, h.v0.routes()...)
}

// strictRoutes are the routes of v0 alone, with its /healthz, which needs the database.
func (v *v0API) strictRoutes() []route {
	return append(v.routes(), route{"GET", "/healthz", anyone, noBody, v.plain(v.health)})
}

// routes are the routes of v0: of Events an agent may list and create, of the other objects only read and change.
func (v *v0API) routes() (rows []route) {
	body := bodyLimit{bytes: v.limits.body, timeout: readTimeout}
	for _, r := range store.Resources {
		list, read, create := viewers, readers, admins
		switch r.Object {
		case objectEvent:
			list, create = readers, agents.as(auth.KindV0Report)
		case objectResource:
			list, read = list.as(auth.KindDefinition), read.as(auth.KindDefinition)
		}
		rows = append(rows,
			route{"GET", "/v0/" + r.Path, list, noBody, v.rows(r, v.reading(v.list))},
			route{"POST", "/v0/" + r.Path, create, body, v.rows(r, v.create)},
			route{"GET", "/v0/" + r.Path + "/{id}", read, noBody, v.rows(r, v.reading(v.get))},
			route{"PATCH", "/v0/" + r.Path + "/{id}", agents.as(auth.KindV0Report), body, v.rows(r, v.update)},
			route{"DELETE", "/v0/" + r.Path + "/{id}", admins, noBody, v.rows(r, v.remove)},
			route{"GET", "/" + r.Path + "/versions", readers, noBody, v.plain(versions(r))})
	}
	return rows
}

// rules are the table as package auth needs it.
func rules(rows []route) (out []auth.Rule) {
	for _, r := range rows {
		out = append(out, auth.Rule{Pattern: r.method + " " + r.path, Public: r.access.public, Roles: r.access.roles, Kind: r.access.kind})
	}
	return out
}

// newHandlers makes the handlers of everything but strict v0.
func (s *Server) newHandlers(v0 *v0API) (*handlers, error) {
	page, err := ui.New()
	if err != nil {
		return nil, err
	}
	answers := answerMemory{v0.limits.answers}
	counted := newMetrics()
	counted.registry.MustRegister(s.store.Collectors()...)
	counted.registry.MustRegister(s.redaction.Collectors()...)
	if s.logs != nil {
		counted.registry.MustRegister(s.logs.Collectors()...)
	}
	counted.registry.MustRegister(s.traces.Collectors()...)
	v0.claims = &claims{required: s.config.RequireAssignment, access: s.access, counter: counted.claims, log: s.log}
	reportSets := newReportSets(s.store, s.config.Limits, counted, v0.claims)
	reportSets.tracer = s.traces.Tracer()
	return &handlers{
		probes: &probes{database: s.store, now: time.Now}, metrics: counted, openAPI: &openAPI{limits: s.config.Limits}, v0: v0,
		reportSets: reportSets,
		workloads: &workloads{
			store: s.store, answers: answers, searches: v0.limits.searches,
			retention: s.config.Maintenance.Retention, claims: v0.claims,
		},
		assignments: &assignments{s.store},
		clusters:    &clusters{store: s.store, answers: answers, definitions: v0.definitions},
		watches:     newWatches(s.store, s.config.Limits.Watches, counted, s.onShutdown()),
		tokens:      s.access.Tokens(), audit: s.access.AuditLog(), login: s.access.LoginHandlers(), page: page,
	}, nil
}

// handler serves v0 alone under strict v0, and otherwise all routes. v0 is the same in both.
func (s *Server) handler() (http.Handler, error) {
	v0 := newV0API(s.store, s.log, s.config.Limits.V0BodyBytes)
	if s.config.StrictV0 {
		return limitHeaderFields(withClientAddress(s.config.TrustedProxies, newRouter().serve(v0.strictRoutes()))), nil
	}
	if err := s.newAccess(); err != nil {
		return nil, err
	}
	v0.definitions = newDefinitions(s.redaction)
	h, err := s.newHandlers(v0)
	if err != nil {
		return nil, err
	}
	router, rows := newRouter(), h.routes()
	router.api = newAPI(router, s.config.Version, s.config.AuthEnabled)
	served := router.serve(rows)
	if err := h.openAPI.write(router.api); err != nil {
		return nil, err
	}
	served = recordRoute(served)
	if s.config.AuthEnabled {
		s.connections = newConnections(s.config.Limits.Watches+maxAuthenticatedPerAgent, s.config.TrustedProxies)
		h.metrics.registry.MustRegister(s.connections.collectors()...)
		h.metrics.registry.MustRegister(s.certificates.collector())
		served = s.connections.handler(served)
	}
	served = withClientAddress(s.config.TrustedProxies, s.access.Middleware(rules(rows), served))
	return instrument(pauseRefused(limitHeaderFields(withSecurityHeaders(served))), h.metrics, s.log), nil
}
