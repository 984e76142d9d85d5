package alerts

import (
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/monitoring"
	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// root is the path of the module's root from this package.
var root = filepath.Join("..", "..", "..")

// shared has the binaries and the clusters of all tests.
var shared struct {
	clusters          world.Pool
	agent, controlAPI string
	monitoring        monitoring.Programs
}

func TestMain(m *testing.M) { world.Main(m, setUp) }

func setUp(s *world.Suite) error {
	// The API server has no controllers: only tests change objects.
	shared.clusters.Root, shared.clusters.Options = root, cluster.Options{Components: cluster.APIOnly()}
	s.Cleanup(shared.clusters.Stop)
	var builds errgroup.Group
	builds.Go(func() (err error) {
		shared.agent, err = process.Build(s.Ctx, root, "./cmd/agent", s.Dir)
		return err
	})
	builds.Go(func() (err error) {
		shared.controlAPI, err = process.Build(s.Ctx, root, "./cmd/controlplane", filepath.Join(s.Dir, "api"))
		return err
	})
	builds.Go(func() (err error) {
		shared.monitoring, err = monitoring.Build(s.Ctx, root)
		return err
	})
	return builds.Wait()
}
