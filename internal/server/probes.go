package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// readyTimeout is how long the database may take to answer the readiness probe.
const readyTimeout = 2 * time.Second

// probes answers the probes of Kubernetes.
type probes struct {
	database interface {
		Ping(ctx context.Context) error
	}
}

// alive answers that the server runs, with or without its database: a restart of the server would only prolong an outage of
// the database.
func (*probes) alive(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }

// ready answers whether the server can do its work, which needs the database.
func (p *probes) ready(w http.ResponseWriter, req *http.Request) {
	ctx, cancel := context.WithTimeout(req.Context(), readyTimeout)
	defer cancel()
	if err := p.database.Ping(ctx); err != nil {
		setCause(req.Context(), fmt.Errorf("ping database: %w", err))
		http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}
