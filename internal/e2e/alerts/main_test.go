package alerts

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
	clusters                                              world.Pool
	agent, controlAPI, prometheus, promtool, alertmanager string
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
	for _, program := range []struct {
		pin, name, module, tags string
		path                    *string
	}{
		// The tag is that of PROMTOOL in the Makefile.
		{"prometheus", "promtool", "github.com/prometheus/prometheus", "remove_all_sd", &shared.promtool},
		{"prometheus", "prometheus", "github.com/prometheus/prometheus", "remove_all_sd", &shared.prometheus},
		{"alertmanager", "alertmanager", "github.com/prometheus/alertmanager", "", &shared.alertmanager},
	} {
		source, err := filepath.Abs(filepath.Join(root, "hack", program.pin))
		if err != nil {
			return err
		}
		builds.Go(func() (err error) {
			*program.path, err = cluster.Program{
				Source: source, Name: program.name, Module: program.module, Package: program.module + "/cmd/" + program.name, Tags: program.tags,
			}.Build(s.Ctx, os.Stderr)
			return err
		})
	}
	return builds.Wait()
}
