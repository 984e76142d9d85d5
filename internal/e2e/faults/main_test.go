package faults

import (
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

func TestMain(m *testing.M) { world.Main(m, setUp) }

func setUp(s *world.Suite) error {
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxics log to a logger that cannot be set
	// The API server has no controllers: only tests change objects.
	shared.clusters.Root, shared.clusters.Options = root, cluster.Options{Components: cluster.APIOnly()}
	s.Cleanup(shared.clusters.Stop)
	var builds errgroup.Group
	builds.Go(func() (err error) {
		shared.agent, err = buildAgent(s.Ctx, s.Dir)
		return err
	})
	builds.Go(func() (err error) {
		shared.controlAPI, err = process.Build(s.Ctx, root, "./cmd/controlplane", filepath.Join(s.Dir, "api"))
		return err
	})
	return builds.Wait()
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
