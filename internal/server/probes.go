package server

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// readyTimeout is how long the database may take to answer the readiness probe.
	readyTimeout = 2 * time.Second

	// readyMaxAge is the maximum age of an answer of the database to the readiness probe. Anybody may send the probe.
	readyMaxAge = time.Second
)

// probes answers the probes of Kubernetes, without a body if all is well: see package auth. It is safe for concurrent use.
type probes struct {
	database interface {
		Ping(ctx context.Context) error
	}
	now func() time.Time

	mu   sync.Mutex
	at   time.Time // of the last ping; zero before the first
	last error     // its result
}

// alive answers that the server runs, with or without its database: a restart of the server would only prolong an outage of
// the database.
func (*probes) alive(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

// ready answers whether the server can do its work, which needs the database.
func (p *probes) ready(w http.ResponseWriter, req *http.Request) {
	if err := p.ping(req.Context()); err != nil {
		setCause(req.Context(), fmt.Errorf("ping database: %w", err))
		http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// ping pings the database, unless that was done less than readyMaxAge ago. One request pings and the others wait for its
// result. So the ping does not end with the client of that request.
func (p *probes) ping(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.at.IsZero() && p.now().Sub(p.at) < readyMaxAge {
		return p.last
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	p.last = p.database.Ping(ctx)
	p.at = p.now()
	return p.last
}
