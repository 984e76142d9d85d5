package node

import (
	"context"
	"errors"
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
	code, err := runMain(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		code = 1
	}
	os.Exit(code)
}

func runMain(m *testing.M) (code int, err error) {
	if err := cluster.CanRunRealNode(); err != nil {
		return 1, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.MkdirTemp("", "threeport-node-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	shared.dir = dir
	if shared.cluster, err = cluster.Start(ctx, cluster.Options{RealNode: true, Nodes: 1, Log: os.Stderr}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.cluster.Stop()) }()
	if shared.client, err = kubernetes.NewForConfig(shared.cluster.Config()); err != nil {
		return 1, err
	}
	if err := shared.cluster.LoadBehave(ctx); err != nil {
		return 1, err
	}
	stop, err := install(ctx, dir)
	if err != nil {
		return 1, err
	}
	defer stop()
	if shared.upstream, err = upstream.New(shared.cluster.Config(), shared.api); err != nil {
		return 1, err
	}
	if shared.oracle, err = oracle.Watch(ctx, shared.cluster.Config()); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// install starts the control-plane API and installs the operator. The returned function stops the API.
func install(ctx context.Context, dir string) (func(), error) {
	binary, err := process.Build(ctx, root, "./cmd/controlplane", dir, "-race")
	if err != nil {
		return nil, err
	}
	credentials, err := operator.NewCredentials(dir)
	if err != nil {
		return nil, err
	}
	flags := append(credentials.APIFlags(), "--bind-address=127.0.0.1:0", "--database=sqlite:"+filepath.Join(dir, "controlplane.db"))
	api, err := process.Start(binary, nil, flags)
	if err != nil {
		return nil, err
	}
	base, err := api.URL(ctx)
	if err != nil {
		return nil, err
	}
	shared.api.URL = base
	if shared.api.HTTP, err = credentials.Client("user"); err != nil {
		return nil, err
	}
	parsed, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	if parsed.Scheme != "https" {
		return nil, fmt.Errorf("the control-plane API at %s does not use TLS", base)
	}
	shared.operator, err = operator.Install(ctx, shared.cluster, root, credentials, parsed.Host)
	return api.Kill, err
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
