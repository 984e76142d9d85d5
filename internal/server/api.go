package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/server/ui"
)

// readyTimeout is how long the database may take to answer before the server counts as not ready.
const readyTimeout = 2 * time.Second

// everything serves v0 and what this API has beside it: report sets, the board, tokens, the page, the document of it
// all, and metrics.
func (s *Server) everything(v0 http.Handler, onStop func(func()) func() bool) (http.Handler, error) {
	counted := newMetrics()
	counted.registry.MustRegister(s.store.Collectors()...)
	routes := routes{}
	body, err := s.operations(newAPI(routes, s.config.Version, s.config.AuthEnabled), counted, onStop)
	if err != nil {
		return nil, err
	}
	routes.add(http.MethodGet, "/openapi.json", serveDocument(body))
	routes.add(http.MethodGet, "/metrics", counted.handler().ServeHTTP)
	routes.add(http.MethodGet, "/healthz", alive)
	routes.add(http.MethodGet, "/readyz", s.ready)

	mux := http.NewServeMux()
	routes.mount(mux)
	if err := mountPage(mux); err != nil {
		return nil, err
	}
	s.access.Register(mux)
	mux.Handle("/", v0)
	return observe(s.access.Middleware(routed(mux)), counted, s.log), nil
}

// operations adds all operations to an API, and returns the document of them.
func (s *Server) operations(api huma.API, counted *metrics, onStop func(func()) func() bool) ([]byte, error) {
	(&reports{store: s.store, limits: s.config.Limits, memory: newMemory(s.config.Limits), metrics: counted}).register(api)
	(&board{workloads: s.store, clusters: s.store}).register(api)
	(&retirement{clusters: s.store}).register(api)
	(&retention{events: s.store, keep: s.config.Maintenance.Retention}).register(api)
	(&watches{
		subscribe: func(ctx context.Context, q store.WatchQuery) (subscription, error) { return s.store.Watch(ctx, q) },
		pingEvery: pingEvery, metrics: counted, onStop: onStop,
	}).register(api)
	registerAccess(api, s.access)
	return document(api)
}

// registerAccess adds the operations of administrators.
func registerAccess(api huma.API, a *auth.Authenticator) {
	tokens := a.Tokens()
	errors := append([]int{http.StatusBadRequest, http.StatusUnprocessableEntity}, commonErrors...)
	huma.Register(api, huma.Operation{
		OperationID: "create-token", Method: http.MethodPost, Path: "/v0/tokens", DefaultStatus: http.StatusCreated,
		Tags: []string{tagAccess}, Summary: "Make a token", Description: "Its secret is in this answer, and nowhere else.",
		Errors: append([]int{http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType}, errors...),
	}, tokens.Create)
	huma.Register(api, readOperation("list-tokens", "/v0/tokens", tagAccess, "List tokens",
		"All of them, those that have ended too, without their secrets."), tokens.List)
	huma.Register(api, huma.Operation{
		OperationID: "revoke-token", Method: http.MethodDelete, Path: "/v0/tokens/{id}",
		Tags: []string{tagAccess}, Summary: "End a token", Description: "And all sessions that were opened with it.",
		Errors: append([]int{http.StatusNotFound}, errors...),
	}, tokens.Revoke)
	huma.Register(api, readOperation("list-audit-records", "/v0/audit-records", tagAccess, "List audit records",
		"Who changed what, or tried to: the newest first."), a.AuditLog().List)
}

func mountPage(mux *http.ServeMux) error {
	people, err := ui.New()
	if err != nil {
		return fmt.Errorf("make the page: %w", err)
	}
	for _, pattern := range ui.Patterns() {
		mux.Handle(pattern, people)
	}
	return nil
}

// alive answers that the server serves, whatever becomes of its database: who restarts what is not alive would only make the
// database's outage longer.
func alive(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }

// ready answers whether the server can do its work, which needs the database.
func (s *Server) ready(w http.ResponseWriter, req *http.Request) {
	ctx, cancel := context.WithTimeout(req.Context(), readyTimeout)
	defer cancel()
	if err := s.store.Ping(ctx); err != nil {
		note(req.Context(), fmt.Errorf("ask the database: %w", err))
		http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}
