package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/threeport/threeport-agent/internal/redact"
	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/otlplogs"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/tracing"
)

// drainTimeout is how long requests under way may take when the server stops.
const drainTimeout = 10 * time.Second

// maxHeader bounds the headers of a request, in bytes. Everyone who reaches the port can make the server hold them.
const maxHeader = 16 << 10

// maxStreams bounds the concurrent requests of an HTTP/2 connection. Each holds its headers and a goroutine until the client has
// read the answer, without a credential too.
const maxStreams = 32

// http2Buffer bounds the bytes of bodies that an HTTP/2 connection holds until a handler reads them. It is the least that net/http permits.
const http2Buffer = 64 << 10

// Server serves the API on a port. Make one with [New] and call [Server.Run] once.
type Server struct {
	config Config
	store  *store.Store
	access *auth.Authenticator // nil under StrictV0
	// certificates is nil without authentication.
	certificates *certReloader
	redaction    *redact.Live       // nil for the built-in rules
	logs         *otlplogs.Exporter // nil without an endpoint
	traces       *tracing.Provider  // nil without traces
	connections  *connections       // nil without authentication and under StrictV0: they are not bounded
	listener     net.Listener
	http         *http.Server
	log          *slog.Logger
}

// New opens the database and the port. Requests wait in the port's backlog until Run.
func New(ctx context.Context, config Config, log *slog.Logger) (s *Server, err error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config.Maintenance.Log = log
	s = &Server{config: config, log: log, http: newHTTPServer(log)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(ctx))
			s = nil
		}
	}()
	if err := s.loadCertificates(); err != nil {
		return s, err
	}
	if err := s.openRedactionRules(); err != nil {
		return s, err
	}
	service := tracing.Service{Name: "threeport-controlplane", Version: config.Version, Metrics: "controlplane"}
	if s.traces, err = tracing.Open(ctx, config.Traces, service, logr.FromSlogHandler(log.Handler())); err != nil {
		return s, err
	}
	s.store, err = store.Open(ctx, store.Config{
		Address: config.Database, Exclusive: true, StrictV0: config.StrictV0, ClusterBytes: config.Limits.ClusterBytes, ReturnTime: config.ReturnTime,
		WorkloadMetrics: config.WorkloadMetrics, LogBytes: config.logBytes(),
		Feed: store.FeedConfig{Log: log, Tombstones: config.Maintenance.Retention.TombstoneAge},
	})
	if err != nil {
		return s, err
	}
	s.warnReadableDatabase()
	if err := s.newLogExporter(); err != nil {
		return s, err
	}
	handler, err := s.handler() //nolint:contextcheck // its goroutines end with the server, not with ctx
	if err != nil {
		return s, err
	}
	s.http.Handler = &stallHandler{handler, stallTimeout}
	s.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", config.BindAddress)
	if err != nil {
		return s, fmt.Errorf("listen: %w", err)
	}
	if s.connections != nil {
		s.listener, s.http.ConnContext = s.connections.listen(s.listener), withConnection
		s.http.RegisterOnShutdown(s.connections.drain)
	}
	return s, nil
}

// warnReadableDatabase warns of a database file that all users of the machine may read. The server creates none, but earlier
// versions did.
func (s *Server) warnReadableDatabase() {
	file, isFile := strings.CutPrefix(s.config.Database, "sqlite:")
	if !isFile || file == ":memory:" {
		return
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o007 != 0 {
		s.log.Warn("All users of this machine may read the database: run chmod o= on the file and on its -wal and -shm", "file", file, "mode", info.Mode().Perm().String())
	}
}

func newHTTPServer(log *slog.Logger) *http.Server {
	return &http.Server{
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxStreams,
			MaxReceiveBufferPerConnection: http2Buffer, MaxReceiveBufferPerStream: http2Buffer,
		},
		ErrorLog: slog.NewLogLogger(newLimitedLog(log.Handler()), slog.LevelWarn),

		DisableGeneralOptionsHandler: true, // it answers without authentication and without a limit
	}
}

func (s *Server) loadCertificates() error {
	if !s.config.AuthEnabled {
		return nil
	}
	files := tlsFiles{s.config.CertFile, s.config.KeyFile, s.config.CAFile}
	var err error
	if s.certificates, err = newCertReloader(files, s.config.clientAuth(), s.log); err != nil {
		return err
	}
	s.http.TLSConfig = s.certificates.config()
	return nil
}

func (s *Server) openRedactionRules() (err error) {
	if s.config.RedactionRules == "" {
		return nil
	}
	s.redaction, err = redact.Open(s.config.RedactionRules, redact.NewMetrics("controlplane"), logr.FromSlogHandler(s.log.Handler()))
	if err != nil {
		return fmt.Errorf("redaction rules (--redaction-rules): %w", err)
	}
	return nil
}

// newLogExporter makes the exporter of logs, if there is an endpoint for them.
func (s *Server) newLogExporter() (err error) {
	if s.config.Logs.Endpoint == "" {
		return nil
	}
	s.logs, err = otlplogs.New(s.store, s.config.Logs, s.config.Version, slog.New(newLimitedLog(s.log.Handler())))
	return err
}

// newAccess starts authentication and authorization.
func (s *Server) newAccess() (err error) {
	config := s.config.authConfig()
	if s.certificates != nil {
		config.VerifyCertificate = s.certificates.verify
	}
	s.access, err = auth.New(s.store, config, s.log)
	return err
}

// onShutdown returns a function that calls end when the server stops, unless forget is called before.
func (s *Server) onShutdown() func(end func()) (forget func() bool) {
	ctx, cancel := context.WithCancel(context.Background())
	s.http.RegisterOnShutdown(cancel)
	return func(end func()) func() bool { return context.AfterFunc(ctx, end) }
}

// URL is the server's address, with the actual port.
func (s *Server) URL() string {
	scheme := "http"
	if s.config.AuthEnabled {
		scheme = "https"
	}
	return scheme + "://" + s.listener.Addr().String()
}

// Run serves until ctx ends, lets the requests under way finish, and closes the database. It returns nil after such a stop.
func (s *Server) Run(ctx context.Context) error {
	s.log.Info("Listening", "url", s.URL())
	if at, ok := s.listener.Addr().(*net.TCPAddr); ok && !s.config.AuthEnabled && !at.IP.IsLoopback() {
		s.log.Warn("Everyone who reaches this address is an administrator: authentication is disabled and the address is not loopback")
	}
	if s.refusesCertificatesWithoutRole() {
		s.log.Info("Client certificates that name no role are refused; an installation with agents of v0 needs --certificate-role=admin")
	}
	background, end := context.WithCancel(ctx)
	defer end()
	var running sync.WaitGroup
	s.runBackground(background, &running)
	err := s.serve(ctx)
	end()
	running.Wait()
	return errors.Join(err, s.close(ctx))
}

// refusesCertificatesWithoutRole reports whether a certificate of a trusted authority may still be refused for its subject.
func (s *Server) refusesCertificatesWithoutRole() bool {
	return s.config.AuthEnabled && !s.config.StrictV0 && s.config.CAFile != "" && s.config.Access.CertificateRole == ""
}

// runBackground starts the goroutines of the store and of the redaction rules. Each logs its failures and tries again.
func (s *Server) runBackground(ctx context.Context, running *sync.WaitGroup) {
	if s.config.StrictV0 {
		return
	}
	tasks := map[string]func(context.Context) error{
		"feed":        s.store.RunFeed,
		"maintenance": func(ctx context.Context) error { return s.store.Maintain(ctx, s.config.Maintenance) },
	}
	if s.logs != nil {
		tasks["export of logs"] = s.logs.Run
	}
	if s.redaction != nil {
		running.Go(func() { s.redaction.Run(ctx, func() {}) })
	}
	for name, run := range tasks {
		running.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				s.log.Error("Background task stopped", "task", name, "error", err)
			}
		})
	}
}

// serve serves until ctx ends, and then until the requests under way are answered. Watches end at once, and connections without an
// authenticated request after unauthenticatedDrain.
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

// close closes everything that is open. No request may be under way.
func (s *Server) close(ctx context.Context) error {
	var errs []error
	if s.listener != nil {
		if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) { // serving closes it
			errs = append(errs, err)
		}
	}
	s.traces.Shutdown(ctx)
	if s.access != nil {
		s.access.Close()
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	return errors.Join(errs...)
}
