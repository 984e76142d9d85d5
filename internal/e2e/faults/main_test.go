package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// root is the path of the module's root from this package.
var root = filepath.Join("..", "..", "..")

// shared has the resources of all tests.
var shared struct {
	agent      agentBuild
	controlAPI string // binary
	clusters   world.Pool
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
	var builds errgroup.Group
	builds.Go(func() (err error) {
		shared.agent, err = buildAgent(ctx, dir)
		return err
	})
	builds.Go(func() (err error) {
		shared.controlAPI, err = process.Build(ctx, root, "./cmd/controlplane", filepath.Join(dir, "api"))
		return err
	})
	if err := builds.Wait(); err != nil {
		return 1, err
	}
	// The API server has no controllers: only tests change objects.
	shared.clusters.Root, shared.clusters.Options = root, cluster.Options{Components: cluster.APIOnly()}
	defer func() { err = errors.Join(err, shared.clusters.Stop()) }()
	return m.Run(), nil
}

// repeats returns the number of repetitions of a random test: the second value with -short.
func repeats(often, seldom int) int {
	if testing.Short() {
		return seldom
	}
	return often
}

// ownCluster starts a cluster for one test only.
func ownCluster(t *testing.T, apiServerArgs ...string) *world.Cluster {
	t.Helper()
	c, err := world.StartCluster(t.Context(), root, cluster.Options{Components: cluster.APIOnly(), APIServerArgs: apiServerArgs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}
