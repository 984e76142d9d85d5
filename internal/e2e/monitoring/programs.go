package monitoring

import (
	"context"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
)

// Programs are the paths of the pinned programs.
type Programs struct{ Prometheus, Promtool, Alertmanager string }

// Build builds the programs, unless the user's cache has them. root is the path of the module's root.
func Build(ctx context.Context, root string) (built Programs, err error) {
	var builds errgroup.Group
	for _, program := range []struct {
		pin, name, module, tags string
		path                    *string
	}{
		// The tag is that of PROMTOOL in the Makefile.
		{"prometheus", "promtool", "github.com/prometheus/prometheus", "remove_all_sd", &built.Promtool},
		{"prometheus", "prometheus", "github.com/prometheus/prometheus", "remove_all_sd", &built.Prometheus},
		{"alertmanager", "alertmanager", "github.com/prometheus/alertmanager", "", &built.Alertmanager},
	} {
		source, err := filepath.Abs(filepath.Join(root, "hack", program.pin))
		if err != nil {
			return built, err
		}
		builds.Go(func() (err error) {
			*program.path, err = cluster.Program{
				Source: source, Name: program.name, Module: program.module, Package: program.module + "/cmd/" + program.name, Tags: program.tags,
			}.Build(ctx, os.Stderr)
			return err
		})
	}
	err = builds.Wait()
	return built, err
}
