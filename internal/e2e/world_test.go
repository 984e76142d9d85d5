package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/proxy"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// root is the path of the module's root from this package.
var root = filepath.Join("..", "..")

// shared has the resources of all tests.
var shared struct {
	clusters   world.Pool
	agent      string // binaries, this one with the race detector
	plainAgent string
	controlAPI string
	plugin     string
}

var strictV0 = flag.Bool("strict-v0", false, "limit the control plane to the API of Threeport, so that the agent uses v0")

func TestMain(m *testing.M) { world.Main(m, setUp) }

func setUp(s *world.Suite) error {
	shared.clusters.Root, shared.clusters.Options = root, cluster.Options{Nodes: 2, Log: os.Stderr}
	s.Cleanup(shared.clusters.Stop)
	var builds errgroup.Group
	builds.Go(func() (err error) {
		shared.agent, err = process.Build(s.Ctx, root, "./cmd/agent", s.Dir, "-race")
		return err
	})
	builds.Go(func() (err error) {
		shared.plainAgent, err = process.Build(s.Ctx, root, "./cmd/agent", filepath.Join(s.Dir, "plain"))
		return err
	})
	builds.Go(func() (err error) {
		shared.controlAPI, err = process.Build(s.Ctx, root, "./cmd/controlplane", filepath.Join(s.Dir, "api"))
		return err
	})
	builds.Go(func() (err error) {
		shared.plugin, err = process.Build(s.Ctx, root, "./cmd/kubectl-threeport", filepath.Join(s.Dir, "plugin"))
		return err
	})
	return builds.Wait()
}

// agentWorld is a world with one agent. A recording proxy is between the agent and the control-plane API.
type agentWorld struct {
	*world.World
	controlPlane *process.Process
	proxy        *proxy.Proxy
	server       string // the agent's address of the control plane
	agent        *world.Agent
	command      world.Command // the agent's
	kubeconfig   string        // the agent's
	cache        string        // a folder for the plugin
}

// newWorld starts a world and its agent, with additional flags for the agent.
func newWorld(t *testing.T, flags ...string) *agentWorld {
	t.Helper()
	w := newWorldWithoutAgent(t)
	w.startAgent(flags...)
	return w
}

// newWorldWithoutAgent starts a world with additional flags for the control-plane API.
func newWorldWithoutAgent(t *testing.T, flags ...string) *agentWorld {
	t.Helper()
	c := shared.clusters.Take(t)
	w := &agentWorld{
		World: world.New(t, c), proxy: proxy.New(t), command: world.Command{Path: shared.agent}, kubeconfig: c.AgentKubeconfig,
		cache: t.TempDir(),
	}
	w.controlPlane = w.StartControlPlane(shared.controlAPI, append([]string{
		"--bind-address=127.0.0.1:0", "--auth-enabled=false",
		"--database=sqlite::memory:", fmt.Sprintf("--strict-v0=%t", *strictV0),
	}, flags...)...)
	url, err := w.controlPlane.URL(w.Ctx)
	w.Must(err)
	w.Upstream.API = upstream.API{URL: url}
	w.proxy.AddBackend(url)
	w.server = w.proxy.Listen(t, "agent")
	w.StartOracle()
	return w
}

// startAgent starts the agent with the proxy as its control plane, and waits until it is ready.
func (w *agentWorld) startAgent(flags ...string) {
	w.Helper()
	w.agent = w.StartAgent(w.command, append([]string{"--kubeconfig=" + w.kubeconfig, "--threeport-api-server=" + w.server}, flags...)...)
}

// permitSecrets installs the component secrets until the end of the test.
func (w *agentWorld) permitSecrets() {
	w.Helper()
	role, err := w.Upstream.InstallComponent(w.Ctx, root, "secrets")
	w.Must(err)
	w.removeLater(role)
	w.AwaitAgentMayWatch("", "secrets")
}

// removeLater deletes a cluster-scoped object at the end of the test.
func (w *agentWorld) removeLater(obj *unstructured.Unstructured) {
	w.Cleanup(func() {
		if err := w.Upstream.DeleteObject(context.WithoutCancel(w.Ctx), obj); err != nil {
			w.Error(err)
		}
	})
}

// create creates an object from a manifest, and waits until the oracle has observed it.
func (w *agentWorld) create(manifest string) *unstructured.Unstructured {
	w.Helper()
	created := w.Create(manifest)
	w.awaitObserved(created)
	return created
}

// patch patches an object, and waits until the oracle has observed the change.
func (w *agentWorld) patch(obj *unstructured.Unstructured, patch string) {
	w.Helper()
	w.awaitObserved(w.Patch(obj, patch))
}

// awaitObserved waits for the oracle, except for kinds that it need not watch: its checks expect no versions of them.
func (w *agentWorld) awaitObserved(obj *unstructured.Unstructured) {
	w.Helper()
	if group := obj.GroupVersionKind().Group; strings.HasSuffix(group, ".example.com") || group == v1alpha1.GroupVersion.Group {
		return
	}
	w.AwaitOracle(obj)
}

// metrics returns the agent's metrics in the text format.
func (w *agentWorld) metrics() string {
	w.Helper()
	page, err := w.agent.Metrics(w.Ctx)
	w.Must(err)
	return page
}

// sum returns the sum of the series of a metric; 0 if it has none yet.
func (w *agentWorld) sum(name string) int {
	w.Helper()
	sum, err := w.agent.Metric(w.Ctx, name)
	if !errors.Is(err, world.ErrNoSeries) {
		w.Must(err)
	}
	return int(sum)
}
