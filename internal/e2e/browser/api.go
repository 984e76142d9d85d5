package browser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/threeport/threeport-agent/internal/server"
)

// API is a control plane on a loopback address, with its rows in a file. After Stop and Start it has the same address.
type API struct {
	URL string

	config server.Config
	log    *slog.Logger
	cancel context.CancelFunc
	done   chan error
}

// NewAPI returns a control plane without authentication, with its rows in a file. An agent counts as offline after silence.
func NewAPI(file string, agentTimeout time.Duration, log *slog.Logger) *API {
	config := server.DefaultConfig()
	config.BindAddress, config.AuthEnabled, config.Database = "127.0.0.1:0", false, "sqlite:"+file
	config.Maintenance.AgentTimeout, config.Maintenance.SilenceInterval = agentTimeout, agentTimeout/4
	config.ReturnTime = 0 // the tests send one report after a silence
	return &API{config: config, log: log}
}

// Start serves until ctx ends or Stop is called.
func (a *API) Start(ctx context.Context) error {
	s, err := server.New(ctx, a.config, a.log)
	if err != nil {
		return fmt.Errorf("start control plane: %w", err)
	}
	a.URL = s.URL()
	a.config.BindAddress = a.URL[len("http://"):]
	ctx, a.cancel = context.WithCancel(ctx)
	a.done = make(chan error, 1)
	go func() { a.done <- s.Run(ctx) }()
	if err := a.checkReady(ctx); err != nil {
		return errors.Join(err, a.Stop())
	}
	return nil
}

// checkReady sends the readiness probe. The server accepts connections before it serves, so the answer may take a moment.
func (a *API) checkReady(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("ask control plane: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("ask control plane: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // only its status is read
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the control plane is not ready: %s", resp.Status)
	}
	return nil
}

// Stop stops the control plane, and waits for its end.
func (a *API) Stop() error {
	if a.cancel == nil {
		return errors.New("stop control plane: it was not started")
	}
	a.cancel()
	a.cancel = nil
	return <-a.done
}
