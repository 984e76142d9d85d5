package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// drainTimeout is how long requests under way may take once the server stops.
const drainTimeout = 10 * time.Second

// Server is the API on a port. Make one with [New], then call [Server.Run] once.
type Server struct {
	store    *Store
	listener net.Listener
	http     *http.Server
	secure   bool
	log      *slog.Logger
}

// New opens the database and the port. Requests wait in the port's backlog until
// Run serves them.
func New(ctx context.Context, config Config, log *slog.Logger) (*Server, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	tlsConfig, err := config.tls()
	if err != nil {
		return nil, err
	}
	store, err := Open(ctx, config.Database, config.StrictV0)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", config.BindAddress)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", err), store.Close())
	}
	return &Server{
		store:    store,
		listener: listener,
		secure:   tlsConfig != nil,
		log:      log,
		http: &http.Server{
			Handler:           Handler(store, log),
			TLSConfig:         tlsConfig,
			ReadHeaderTimeout: 10 * time.Second,
			ReadTimeout:       5 * time.Minute, // a body of hundreds of MiB takes its time
			IdleTimeout:       2 * time.Minute,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		},
	}, nil
}

// URL is the server's address with the port that it got.
func (s *Server) URL() string {
	scheme := "http"
	if s.secure {
		scheme = "https"
	}
	return scheme + "://" + s.listener.Addr().String()
}

// Run serves until ctx ends, lets the requests under way finish, and closes the
// database. It returns nil after such a stop.
func (s *Server) Run(ctx context.Context) error {
	served := make(chan error, 1)
	go func() {
		if s.secure {
			served <- s.http.ServeTLS(s.listener, "", "") // the certificate is in TLSConfig
		} else {
			served <- s.http.Serve(s.listener)
		}
	}()
	s.log.Info("Listening", "url", s.URL())

	select {
	case err := <-served:
		return errors.Join(fmt.Errorf("serve: %w", err), s.store.Close())
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	var failed error
	if err := s.http.Shutdown(drain); err != nil {
		failed = errors.Join(fmt.Errorf("requests were cut off: %w", err), s.http.Close())
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		failed = errors.Join(failed, fmt.Errorf("serve: %w", err))
	}
	return errors.Join(failed, s.store.Close())
}
