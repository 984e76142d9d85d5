package installed

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/helm"
	"github.com/threeport/threeport-agent/internal/e2e/image"
	"github.com/threeport/threeport-agent/internal/e2e/monitoring"
	"github.com/threeport/threeport-agent/internal/e2e/operator"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// root is the path of the module's root from this package.
var root = filepath.Join("..", "..", "..")

// shared has the programs and the images of all tests.
var shared struct {
	kubectl, helm string
	monitoring    monitoring.Programs
	images        []string // archives
}

func TestMain(m *testing.M) { world.Main(m, setUp) }

func setUp(s *world.Suite) error {
	if err := cluster.CanRunRealNode(); err != nil {
		return err
	}
	binaries, err := cluster.FindBinaries(s.Ctx, os.Stderr, cluster.Kubectl)
	if err != nil {
		return err
	}
	shared.kubectl = binaries[cluster.Kubectl]
	var builds errgroup.Group
	for target, ref := range map[string]string{"agent": operator.Image, "controlplane": "localhost/threeport-controlplane:local"} {
		archive := filepath.Join(s.Dir, target+".tar")
		shared.images = append(shared.images, archive)
		builds.Go(func() error { return image.Target(s.Ctx, root, target, runtime.GOARCH, archive, ref) })
	}
	builds.Go(func() (err error) {
		shared.monitoring, err = monitoring.Build(s.Ctx, root)
		return err
	})
	builds.Go(func() (err error) {
		shared.helm, err = helm.Build(s.Ctx, root, 4)
		return err
	})
	return builds.Wait()
}
