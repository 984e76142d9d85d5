package otlp

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// root is the path of the module's root from this package.
var root = filepath.Join("..", "..", "..")

// shared has the binaries and the clusters of all tests.
var shared struct {
	clusters                     world.Pool
	agent, controlAPI, collector string
}

func TestMain(m *testing.M) { world.Main(m, setUp) }

func setUp(s *world.Suite) error {
	// The API server has no controllers: only tests change objects.
	shared.clusters.Root, shared.clusters.Options = root, cluster.Options{Components: cluster.APIOnly()}
	s.Cleanup(shared.clusters.Stop)
	source, err := filepath.Abs(filepath.Join(root, "hack", "otelcol"))
	if err != nil {
		return err
	}
	var builds errgroup.Group
	builds.Go(func() (err error) {
		shared.agent, err = process.Build(s.Ctx, root, "./cmd/agent", s.Dir, "-race")
		return err
	})
	builds.Go(func() (err error) {
		shared.controlAPI, err = process.Build(s.Ctx, root, "./cmd/controlplane", filepath.Join(s.Dir, "api"), "-race")
		return err
	})
	builds.Go(func() (err error) {
		shared.collector, err = cluster.Program{Source: source, Module: "go.opentelemetry.io/collector/otelcol", Package: "."}.Build(s.Ctx, os.Stderr)
		return err
	})
	return builds.Wait()
}
