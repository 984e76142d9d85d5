// Package endpoints serves HTTP endpoints of the agent, such as the probes and the metrics. Each client that reaches the port of a
// server may connect. So the memory of a server is bounded: it has at most 64 connections, with headers of 16 KiB.
package endpoints

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// The bounds of a server. A bearer token is part of the headers.
const (
	maxConnections = 64
	maxHeaderBytes = 16 << 10
	readTimeout    = 5 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 90 * time.Second // a scrape comes once a minute or more often
	stopTimeout    = 5 * time.Second
)

// New listens on an address, and returns the server for a manager to run. It serves TLS if there is a configuration of it.
func New(ctx context.Context, name, address string, handler http.Handler, config *tls.Config) (*manager.Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", name, err)
	}
	listener = newBoundedListener(listener, maxConnections)
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	return &manager.Server{
		Name: name,
		Server: &http.Server{
			Handler:        markAnswers(http.MaxBytesHandler(handler, 0)),
			ConnContext:    withConn,
			MaxHeaderBytes: maxHeaderBytes, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
			ErrorLog: log.New(io.Discard, "", 0), // a line for each client that breaks its connection
		},
		Listener:        listener,
		ShutdownTimeout: new(stopTimeout),
	}, nil
}
