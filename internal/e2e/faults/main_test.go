package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// root is the path of the module's root from this package.
var root = filepath.Join("..", "..", "..")

// shared has the resources of all tests.
var shared struct {
	agent      agentBuild
	controlAPI string // binary
	clusters   pool
}

func TestMain(m *testing.M) {
	code, err := runMain(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		code = 1
	}
	os.Exit(code)
}

func runMain(m *testing.M) (code int, err error) {
	flag.Parse()
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxics log to a logger that cannot be set
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "threeport-faults-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	if shared.agent, err = buildAgent(ctx, dir); err != nil {
		return 1, err
	}
	if shared.controlAPI, err = process.Build(ctx, root, "./cmd/controlplane", dir); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.clusters.stop()) }()
	return m.Run(), nil
}

// repeats returns the number of repetitions of a random test: the second value with -short.
func repeats(often, seldom int) int {
	if testing.Short() {
		return seldom
	}
	return often
}

// testCluster is an API server without controllers: only tests change objects.
type testCluster struct {
	*cluster.Cluster
	agentUser string // kubeconfig of the user that the agent's role is bound to
}

// startCluster starts a cluster with the CRD and the role of the agent.
func startCluster(ctx context.Context, apiServerArgs ...string) (*testCluster, error) {
	c, err := cluster.Start(ctx, cluster.Options{Components: cluster.APIOnly(), APIServerArgs: apiServerArgs})
	if err != nil {
		return nil, err
	}
	out := &testCluster{Cluster: c}
	up, err := upstream.New(c.Config(), upstream.API{})
	if err == nil {
		err = up.Install(ctx, root, "agent")
	}
	if err == nil {
		out.agentUser, _, err = c.User("agent")
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return out, nil
}

// pool has the unused clusters. ThreeportWorkloads are cluster-scoped, so two tests cannot use a cluster at the same time.
type pool struct {
	mu   sync.Mutex
	idle []*testCluster
}

// take returns a cluster for one test. Return it with give.
func (p *pool) take(ctx context.Context) (*testCluster, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return c, nil
	}
	return startCluster(ctx)
}

func (p *pool) give(c *testCluster) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
}

func (p *pool) stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, c := range p.idle {
		errs = append(errs, c.Stop())
	}
	p.idle = nil
	return errors.Join(errs...)
}
