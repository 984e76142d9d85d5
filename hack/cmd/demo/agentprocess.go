package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/threeport/threeport-agent/internal/e2e/process"
)

const (
	// agentUser is the user name of the agent in the cluster.
	agentUser = "threeport-agent"
	// portAttempts limits the restarts because of a port in use.
	portAttempts = 5
)

// agentProcess is the agent as a child process, outside the cluster.
type agentProcess struct {
	child                 *process.Process // nil until it is started
	command               string           // starts the agent again
	metricsURL, probesURL string
}

// start starts the agent and waits until it is ready. It retries with other ports: a free port may be in use when the agent
// listens.
func (a *agentProcess) start(ctx context.Context, s *stack) error {
	leaseNamespace, err := installForUser(ctx, s.cluster, s.root, agentUser)
	if err != nil {
		return err
	}
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
		metrics, err := process.FreeAddress()
		if err != nil {
			return err
		}
		probes, err := process.FreeAddress()
		if err != nil {
			return err
		}
		a.metricsURL, a.probesURL = "http://"+metrics+"/metrics", "http://"+probes
		args := []string{
			"--kubeconfig=" + kubeconfig,
			"--threeport-api-server=" + s.apiURL,
			"--auth-enabled=false",
			"--cluster-name=demo",
			"--leader-election-namespace=" + leaseNamespace, // of the heartbeat: outside a cluster there is no namespace of a pod
			"--state-dir=" + filepath.Join(s.cluster.Dir(), "agent-state"),
			"--metrics-bind-address=" + metrics,
			"--health-probe-bind-address=" + probes,
		}
		a.command = strings.Join(append([]string{binary}, args...), " ")
		if a.child, err = process.Start(binary, nil, args, logFile); err != nil {
			return err
		}
		if err = a.await(ctx); err == nil {
			s.printf("The agent is ready.")
			return nil
		}
		if attempt == portAttempts || !strings.Contains(a.child.Output(), portTaken) {
			return fmt.Errorf("start the agent: %w", err)
		}
		a.child.Kill() // stop ends only the last child
	}
}

// await waits until the agent logs that it is ready.
func (a *agentProcess) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return poll(ctx, func(ctx context.Context) (again bool, err error) {
		select {
		case <-a.child.Done():
			return false, errors.New("the agent ended")
		default:
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.probesURL+"/readyz", http.NoBody)
		if err != nil {
			return false, err
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			return true, err
		}
		defer answer.Body.Close() //nolint:errcheck // the body is not needed
		if answer.StatusCode != http.StatusOK {
			return true, fmt.Errorf("%s/readyz answers %s", a.probesURL, answer.Status)
		}
		return false, nil
	})
}

func (a *agentProcess) log(context.Context) (string, error) {
	if a.child == nil {
		return "", nil
	}
	return a.child.Output(), nil
}

func (a *agentProcess) process() *process.Process { return a.child }

func (a *agentProcess) restartCommand() string { return a.command }

func (a *agentProcess) commands(string) []string {
	return []string{"curl -s " + a.metricsURL, "curl -s " + a.probesURL + "/readyz"}
}
