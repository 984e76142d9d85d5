package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/process"
)

const (
	// apiAddress is the default address of the control-plane API; if it is in use, the demo takes another one.
	apiAddress = "127.0.0.1:1323"
	anyAddress = "127.0.0.1:0"
	// startTimeout limits the time until a process is ready.
	startTimeout = 5 * time.Minute
	portTaken    = "address already in use"
)

// The time limits for stopping the processes before they are killed. The agent flushes for up to 25 s.
const (
	agentGrace = time.Minute
	apiGrace   = time.Minute
)

// stack is all running parts of the demo.
type stack struct {
	root  string // of the source tree
	log   io.Writer
	mode  mode
	agent agent

	cluster *cluster.Cluster // nil until it is started
	access  access
	api     *process.Process // nil until it is started
	apiURL  string
	files   []*os.File // logs
}

func newStack(root string, log io.Writer, m mode) *stack {
	return &stack{root: root, log: log, mode: m, agent: m.agent()}
}

// start starts everything. After an error, the started parts still run, and have to be stopped.
func (s *stack) start(ctx context.Context) error {
	if err := s.startCluster(ctx); err != nil {
		return err
	}
	if err := s.startAPI(ctx); err != nil {
		return err
	}
	return s.agent.start(ctx, s)
}

func (s *stack) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(s.log, format+"\n", args...)
}

func (s *stack) startCluster(ctx context.Context) (err error) {
	s.printf("Starting a Kubernetes control plane with %s.\n"+
		"The first time it is built from source, which takes 5 to 6 minutes on 2 cores; after that, seconds.", s.mode.nodes)
	options := s.mode.options()
	options.Log = s.log
	if s.cluster, err = cluster.Start(ctx, options); err != nil {
		return err
	}
	s.printf("Logs, keys and data are in %s, which the demo deletes at its end.", s.cluster.Dir())
	return s.mode.images(ctx, s)
}

// build compiles a command of the project into the cluster's run directory, which is deleted with the cluster.
func (s *stack) build(ctx context.Context, command string) (string, error) {
	s.printf("Building %s (a minute or two the first time, then seconds).", command)
	return process.Build(ctx, s.root, command, s.cluster.Dir())
}

func (s *stack) startAPI(ctx context.Context) error {
	logFile, err := s.logFile(apiLog)
	if err != nil {
		return err
	}
	binary, err := s.build(ctx, "./cmd/controlplane")
	if err != nil {
		return err
	}
	if s.access, err = s.mode.access(s.cluster.Dir()); err != nil {
		return err
	}
	database := "--database=sqlite:" + filepath.Join(s.cluster.Dir(), "controlplane.db")
	for _, address := range []string{apiAddress, anyAddress} {
		s.api, err = process.Start(binary, nil, append([]string{"--bind-address=" + address, database}, s.access.flags...), logFile)
		if err != nil {
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, startTimeout)
		s.apiURL, err = s.api.URL(waiting)
		cancel()
		if err == nil {
			s.printf("The control-plane API listens at %s", s.apiURL)
			return nil
		}
		if address == anyAddress || !strings.Contains(s.api.Output(), portTaken) {
			return fmt.Errorf("start the control-plane API: %w", err)
		}
		s.printf("%s is in use: the control-plane API gets another port.", address)
	}
	return nil
}

// contextUntilExit returns a context that is cancelled when the cluster or the control-plane API exits. The cause is an
// exitError. The returned function releases the context.
func (s *stack) contextUntilExit(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
		case <-s.cluster.Done():
			cancel(&exitError{"the cluster", s.cluster.Err()})
		case <-s.api.Done():
			cancel(&exitError{"the control-plane API", errors.New("see the end of its log above")})
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}

// agentDone returns a channel that is closed when the agent ends and nothing restarts it.
func (s *stack) agentDone() <-chan struct{} {
	if p := s.agent.process(); p != nil {
		return p.Done()
	}
	return nil
}

// exitError is the unexpected end of a component.
type exitError struct {
	component string
	reason    error
}

func (e *exitError) Error() string {
	return fmt.Sprintf("%s ended unexpectedly: %v", e.component, e.reason)
}

// stop stops all parts. An agent outside the cluster is first, so that it delivers its last reports. One that has ended before is no
// error here.
func (s *stack) stop() error {
	var errs []error
	if p := s.agent.process(); p != nil {
		select {
		case <-p.Done():
		default:
			errs = append(errs, p.Stop(agentGrace))
		}
	}
	if s.api != nil {
		errs = append(errs, s.api.Stop(apiGrace))
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
	}
	for _, file := range s.files {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}
