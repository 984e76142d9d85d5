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

// binaries are those of all tests.
var binaries struct{ controlAPI, collector string }

func TestMain(m *testing.M) { world.Main(m, setUp) }

func setUp(s *world.Suite) error {
	source, err := filepath.Abs(filepath.Join(root, "hack", "otelcol"))
	if err != nil {
		return err
	}
	var builds errgroup.Group
	builds.Go(func() (err error) {
		binaries.controlAPI, err = process.Build(s.Ctx, root, "./cmd/controlplane", s.Dir)
		return err
	})
	builds.Go(func() (err error) {
		binaries.collector, err = cluster.Program{Source: source, Module: "go.opentelemetry.io/collector/otelcol", Package: "."}.Build(s.Ctx, os.Stderr)
		return err
	})
	return builds.Wait()
}
