package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/threeport/threeport-agent/hack/figures"
	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// stack is the measured system with its observers.
type stack struct {
	dir      string
	cluster  *cluster.Cluster
	client   kubernetes.Interface
	api      *process.Process
	agent    *process.Process
	binary   string
	user     string
	upstream *upstream.Upstream
	oracle   *oracle.Oracle
}

// start starts everything except the agent, and builds the agent if no binary is given. Call stop also after an error.
func start(ctx context.Context, agent string) (*stack, error) {
	s := &stack{binary: agent}
	var err error
	if s.dir, err = os.MkdirTemp("", "threeport-measure-"); err != nil {
		return s, err
	}
	if s.binary == "" {
		if s.binary, err = process.Build(ctx, ".", "./cmd/agent", s.dir); err != nil {
			return s, err
		}
	}
	apiBinary, err := process.Build(ctx, ".", "./cmd/controlplane", s.dir)
	if err != nil {
		return s, err
	}
	if s.cluster, err = cluster.Start(ctx, cluster.Options{Nodes: 4, Log: os.Stderr}); err != nil {
		return s, err
	}
	if s.client, err = kubernetes.NewForConfig(s.cluster.Config()); err != nil {
		return s, err
	}
	s.api, err = process.Start(apiBinary, nil, []string{
		"--bind-address=127.0.0.1:0", "--auth-enabled=false", "--database=sqlite:" + filepath.Join(s.dir, "controlplane.db"),
		"--events-per-workload=10000000", // enough for every measurement
	})
	if err != nil {
		return s, err
	}
	url, err := s.api.URL(ctx)
	if err != nil {
		return s, err
	}
	if s.upstream, err = upstream.New(s.cluster.Config(), upstream.API{URL: url}); err != nil {
		return s, err
	}
	if err = s.upstream.Install(ctx, ".", "agent"); err != nil {
		return s, err
	}
	if _, err = s.upstream.InstallComponent(ctx, ".", "secrets"); err != nil {
		return s, err
	}
	if s.user, _, err = s.cluster.User("agent"); err != nil {
		return s, err
	}
	s.oracle, err = oracle.Watch(ctx, s.cluster.Config())
	return s, err
}

func (s *stack) startAgent(ctx context.Context) error {
	var err error
	s.agent, err = process.Start(s.binary, nil, []string{
		"--kubeconfig=" + s.user, "--threeport-api-server=" + s.upstream.API.URL, "--auth-enabled=false",
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--state-dir=" + filepath.Join(s.dir, "state"),
	})
	if err != nil {
		return err
	}
	_, err = s.agent.WaitFor(ctx, "Starting workers")
	return err
}

func (s *stack) stopAgent() error {
	if s.agent == nil {
		return nil
	}
	agent := s.agent
	s.agent = nil
	return agent.Stop(40 * time.Second)
}

// stop stops everything in the order of dependency.
func (s *stack) stop() error {
	errs := []error{s.stopAgent()}
	if s.api != nil {
		errs = append(errs, s.api.Stop(10*time.Second))
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// medianMemory returns the memory of an idle process in MB, as the median of nine readings.
func medianMemory(ctx context.Context, pid int) (float64, error) {
	return figures.MedianMemory(ctx, pid, 9, 2*time.Second)
}
