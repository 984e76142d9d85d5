package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
)

// drainTimeout is how long requests under way may take once the server stops.
const drainTimeout = 10 * time.Second

// maxHeader bounds the headers of a request, in bytes.
const maxHeader = 64 << 10

// Server is the API on a port. Make one with [New], then call [Server.Run] once.
type Server struct {
	config Config
	store  *store.Store
	access *auth.Authenticator // nil under StrictV0
	// certificates is nil without authentication.
	certificates *reloader
	listener     net.Listener
	http         *http.Server
	log          *slog.Logger
}

// New opens the database and the port. Requests wait in the port's backlog until
// Run serves them.
func New(ctx context.Context, config Config, log *slog.Logger) (s *Server, err error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config.Maintenance.Log = log
	s = &Server{config: config, log: log, http: newHTTPServer(log)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
			s = nil
		}
	}()
	if err := s.loadCertificates(); err != nil {
		return s, err
	}
	s.store, err = store.Open(ctx, store.Config{
		Address: config.Database, StrictV0: config.StrictV0,
		Feed: store.FeedConfig{Log: log, Tombstones: config.Maintenance.Retention.TombstoneAge},
	})
	if err != nil {
		return s, err
	}
	if s.http.Handler, err = s.handler(); err != nil { //nolint:contextcheck // what it starts ends with the server, not with ctx
		return s, err
	}
	s.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", config.BindAddress)
	if err != nil {
		return s, fmt.Errorf("listen: %w", err)
	}
	return s, nil
}

func newHTTPServer(log *slog.Logger) *http.Server {
	return &http.Server{
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

func (s *Server) loadCertificates() error {
	if !s.config.AuthEnabled {
		return nil
	}
	files := tlsFiles{s.config.CertFile, s.config.KeyFile, s.config.CAFile}
	var err error
	if s.certificates, err = newReloader(files, s.config.clientAuth(), s.log); err != nil {
		return err
	}
	s.http.TLSConfig = s.certificates.config()
	return nil
}

// handler serves v0 only, or everything. v0 itself is the same in both.
func (s *Server) handler() (http.Handler, error) {
	v0 := Handler(s.store, s.log)
	if s.config.StrictV0 {
		return v0, nil
	}
	stop, stopping := context.WithCancel(context.Background())
	s.http.RegisterOnShutdown(stopping)
	onStop := func(end func()) func() bool { return context.AfterFunc(stop, end) }

	may := s.config.access()
	if s.certificates != nil {
		may.Trusted = s.certificates.trusts
	}
	var err error
	if s.access, err = auth.New(s.store, may, s.log); err != nil {
		return nil, err
	}
	return s.everything(v0, onStop)
}

// URL is the server's address with the port that it got.
func (s *Server) URL() string {
	scheme := "http"
	if s.config.AuthEnabled {
		scheme = "https"
	}
	return scheme + "://" + s.listener.Addr().String()
}

// Run serves until ctx ends, lets the requests under way finish, and closes the
// database. It returns nil after such a stop.
func (s *Server) Run(ctx context.Context) error {
	s.log.Info("Listening", "url", s.URL())
	if at, ok := s.listener.Addr().(*net.TCPAddr); ok && !s.config.AuthEnabled && !at.IP.IsLoopback() {
		s.log.Warn("Whoever reaches this address may do everything: authentication is disabled, and the address is not loopback")
	}
	background, end := context.WithCancel(ctx)
	defer end()
	var running sync.WaitGroup
	s.runBackground(background, &running)
	err := s.serve(ctx)
	end()
	running.Wait()
	return errors.Join(err, s.close())
}

// runBackground starts what goes on beside requests. Each logs what it cannot do, and tries it again.
func (s *Server) runBackground(ctx context.Context, running *sync.WaitGroup) {
	if s.config.StrictV0 {
		return
	}
	for name, run := range map[string]func(context.Context) error{
		"feed":        s.store.RunFeed,
		"maintenance": func(ctx context.Context) error { return s.store.Maintain(ctx, s.config.Maintenance) },
	} {
		running.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				s.log.Error("Stopped for good", "what", name, "error", err)
			}
		})
	}
}

// serve serves until ctx ends, and until the requests of that moment are answered. Watches end with it.
func (s *Server) serve(ctx context.Context) error {
	served := make(chan error, 1)
	go func() {
		if s.config.AuthEnabled {
			served <- s.http.ServeTLS(s.listener, "", "") // the certificate is in TLSConfig
		} else {
			served <- s.http.Serve(s.listener)
		}
	}()

	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
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
	return failed
}

// close closes what is open. No request is served any more.
func (s *Server) close() error {
	var errs []error
	if s.listener != nil {
		if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) { // which is how serving leaves it
			errs = append(errs, err)
		}
	}
	if s.access != nil {
		s.access.Close()
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	return errors.Join(errs...)
}
