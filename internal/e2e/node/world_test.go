package node

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/image"
	"github.com/threeport/threeport-agent/internal/e2e/operator"
	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// root is the path of the module's root from this package.
var root = filepath.Join("..", "..", "..")

// shared is the installation of all tests: a cluster with a real node, a control-plane API that requires certificates, and the
// agent as an operator.
var shared struct {
	dir      string // for files, until all tests have ended
	cluster  *cluster.Cluster
	client   kubernetes.Interface
	api      upstream.API
	operator *operator.Operator
	upstream *upstream.Upstream
	oracle   *oracle.Oracle
}

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		if err := helper(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	world.Main(m, setUp)
}

func setUp(s *world.Suite) (err error) {
	if err := cluster.CanRunRealNode(); err != nil {
		return err
	}
	shared.dir = s.Dir
	if shared.cluster, err = cluster.Start(s.Ctx, cluster.Options{RealNode: true, Nodes: 1, Log: os.Stderr}); err != nil {
		return err
	}
	s.Cleanup(shared.cluster.Stop)
	if shared.client, err = kubernetes.NewForConfig(shared.cluster.Config()); err != nil {
		return err
	}
	if err := shared.cluster.LoadBehave(s.Ctx); err != nil {
		return err
	}
	if err := install(s); err != nil {
		return err
	}
	if shared.upstream, err = upstream.New(shared.cluster.Config(), shared.api); err != nil {
		return err
	}
	shared.oracle, err = oracle.Watch(s.Ctx, shared.cluster.Config())
	return err
}

// install starts the control-plane API and installs the operator.
func install(s *world.Suite) error {
	binary, err := process.Build(s.Ctx, root, "./cmd/controlplane", s.Dir, "-race")
	if err != nil {
		return err
	}
	credentials, err := operator.NewCredentials(s.Dir)
	if err != nil {
		return err
	}
	flags := append(credentials.APIFlags(), "--bind-address=127.0.0.1:0", "--database=sqlite:"+filepath.Join(s.Dir, "controlplane.db"))
	api, err := process.Start(binary, nil, flags)
	if err != nil {
		return err
	}
	s.Cleanup(func() error { return world.KillControlPlane(api) })
	base, err := api.URL(s.Ctx)
	if err != nil {
		return err
	}
	shared.api.URL = base
	if shared.api.HTTP, err = credentials.Client("user"); err != nil {
		return err
	}
	parsed, err := url.Parse(base)
	if err != nil {
		return err
	}
	if parsed.Scheme != "https" {
		return fmt.Errorf("the control-plane API at %s does not use TLS", base)
	}
	shared.operator, err = operator.Install(s.Ctx, shared.cluster, root, credentials, parsed.Host)
	return err
}

// behaveArchive builds the image of the test workloads.
func behaveArchive(ctx context.Context, dir string) (string, error) {
	archive := filepath.Join(dir, "behave.tar")
	return archive, image.Program(ctx, filepath.Join(root, "internal", "e2e"), "./behave", archive, image.Behave)
}

// operatorWorld is a world on the shared installation.
type operatorWorld struct{ *world.World }

func newWorld(t *testing.T) *operatorWorld {
	t.Helper()
	w := &operatorWorld{world.New(t, &world.Cluster{Cluster: shared.cluster})}
	w.Upstream.API, w.Oracle = shared.api, shared.oracle
	return w
}

// deploy deploys a WorkloadInstance of manifests, and deletes it at the end of the test.
func (w *operatorWorld) deploy(name, manifests string) upstream.Deployed {
	w.Helper()
	d := w.Deploy(name, manifests)
	w.Cleanup(func() {
		if err := w.Upstream.Delete(context.WithoutCancel(w.Ctx), d); err != nil {
			w.Error(err)
		}
	})
	return d
}

// awaitAgreement waits until the rows of some workloads match the observations of the oracle. Other tests have other
// workloads in the control plane.
func (w *operatorWorld) awaitAgreement(deployed ...upstream.Deployed) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Ctx, world.Timeout)
	defer cancel()
	w.Must(w.Oracle.AwaitOnly(ctx, w.Upstream.API, world.Expected(deployed...)))
}

// kubectl runs kubectl, and expects success.
func (w *operatorWorld) kubectl(args ...string) string {
	w.Helper()
	out, err := shared.operator.Kubectl(w.Ctx, args...)
	w.Must(err)
	return out
}
