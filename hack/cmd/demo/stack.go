package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/hack/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/process"
)

const (
	nodes = 3
	// apiAddress is where the control-plane API listens by default; it moves if that is taken.
	apiAddress = "127.0.0.1:1323"
	anyAddress = "127.0.0.1:0"
	// startTimeout is how long a process may take to be ready.
	startTimeout = time.Minute
	// portAttempts is how often a process is started anew because its port was taken.
	portAttempts = 5
	portTaken    = "address already in use"
	// agentUser is who the agent is in the cluster.
	agentUser = "threeport-agent"
)

// How long the processes have to end, after which they are killed: the agent flushes for up to 25 seconds.
const (
	agentGrace = 35 * time.Second
	apiGrace   = 15 * time.Second
)

// stack is all that runs. Its parts are nil until they are started.
type stack struct {
	root string // of the source tree
	log  io.Writer

	cluster *cluster.Cluster
	api     *process.Process
	agent   *process.Process
	files   []*os.File // logs

	apiURL, metricsURL, probesURL string
}

// start brings everything up. If it fails, what did start is there to be looked at, and to be stopped.
func (s *stack) start(ctx context.Context) error {
	steps := []func(context.Context) error{s.startCluster, s.startAPI, s.install, s.startAgent}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *stack) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.log, format+"\n", args...)
}

func (s *stack) startCluster(ctx context.Context) (err error) {
	s.say("Starting a Kubernetes control plane with %d fake nodes.\n"+
		"The first time it is built from source, which takes 5 to 6 minutes on 2 cores; after that, seconds.", nodes)
	s.cluster, err = cluster.Start(ctx, cluster.Options{Nodes: nodes, Log: s.log})
	return err
}

// build compiles one of the project's commands into the cluster's run directory, which goes with the cluster.
func (s *stack) build(ctx context.Context, command string) (string, error) {
	s.say("Building %s (a minute or two the first time, then seconds).", command)
	return process.Build(ctx, s.root, command, s.cluster.Dir(), "-buildvcs=false")
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
	for _, address := range []string{apiAddress, anyAddress} {
		s.api, err = process.Start(binary, nil, []string{
			"--bind-address=" + address,
			"--database=sqlite:" + filepath.Join(s.cluster.Dir(), "controlplane.db"),
			"--auth-enabled=false",
		}, logFile)
		if err != nil {
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, startTimeout)
		s.apiURL, err = s.api.URL(waiting)
		cancel()
		if err == nil {
			s.say("The control-plane API listens at %s", s.apiURL)
			return nil
		}
		if address == anyAddress || !strings.Contains(s.api.Output(), portTaken) {
			return fmt.Errorf("start the control-plane API: %w", err)
		}
		s.say("%s is taken: the control-plane API gets another port.", address)
	}
	return nil
}

// startAgent starts the agent and waits until it is ready. It has to be told its ports, and one that is free
// now may be taken then.
func (s *stack) startAgent(ctx context.Context) error {
	logFile, err := s.logFile(agentLog)
	if err != nil {
		return err
	}
	binary, err := s.build(ctx, "./cmd/agent")
	if err != nil {
		return err
	}
	kubeconfig, _, err := s.cluster.User(agentUser)
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		metrics, probes, err := freeAddresses(ctx)
		if err != nil {
			return err
		}
		s.metricsURL, s.probesURL = "http://"+metrics+"/metrics", "http://"+probes
		s.agent, err = process.Start(binary, nil, []string{
			"--kubeconfig=" + kubeconfig,
			"--threeport-api-server=" + s.apiURL,
			"--auth-enabled=false",
			"--metrics-bind-address=" + metrics,
			"--health-probe-bind-address=" + probes,
		}, logFile)
		if err != nil {
			return err
		}
		if err = s.awaitAgent(ctx); err == nil {
			s.say("The agent is ready.")
			return nil
		}
		if attempt == portAttempts || !strings.Contains(s.agent.Output(), portTaken) {
			return fmt.Errorf("start the agent: %w", err)
		}
		s.agent.Kill() // so that one at most is left to stop
	}
}

// awaitAgent waits until the agent says that it is ready.
func (s *stack) awaitAgent(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return poll(ctx, func(ctx context.Context) (again bool, err error) {
		select {
		case <-s.agent.Done():
			return false, errors.New("it ended")
		default:
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.probesURL+"/readyz", http.NoBody)
		if err != nil {
			return false, err
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			return true, err
		}
		defer answer.Body.Close() //nolint:errcheck // it is not read
		if answer.StatusCode != http.StatusOK {
			return true, fmt.Errorf("%s/readyz answers %s", s.probesURL, answer.Status)
		}
		return false, nil
	})
}

// freeAddresses returns two loopback addresses that nothing listens on now.
func freeAddresses(ctx context.Context) (string, string, error) {
	var free [2]string
	for i := range free {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", anyAddress)
		if err != nil {
			return "", "", fmt.Errorf("find a free port: %w", err)
		}
		defer listener.Close() //nolint:errcheck // nothing came of it
		free[i] = listener.Addr().String()
	}
	return free[0], free[1], nil
}

// guard returns a context that ends, with a deathError as its cause, when a part of the stack dies by itself.
// The function that it returns releases it.
func (s *stack) guard(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-ctx.Done():
		case <-s.cluster.Done():
			cancel(&deathError{"the cluster", s.cluster.Err()})
		case <-s.api.Done():
			cancel(&deathError{"the control-plane API", errors.New("see the end of its log above")})
		case <-s.agent.Done():
			cancel(&deathError{"the agent", errors.New("see the end of its log above")})
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-watched
	}
}

// deathError is the end of a part that was to go on running.
type deathError struct {
	part string
	why  error
}

func (e *deathError) Error() string { return fmt.Sprintf("%s ended by itself: %v", e.part, e.why) }

// stop ends what runs: the agent first, so that it can deliver its last reports.
func (s *stack) stop() error {
	var errs []error
	if s.agent != nil {
		errs = append(errs, s.agent.Stop(agentGrace))
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
