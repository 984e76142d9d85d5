package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/proxy"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// faultWorld is a world with one agent. The agent reaches the control plane through a link and the proxy, and the cluster
// through a link.
type faultWorld struct {
	*world.World
	protocol  protocol
	database  string // address of the control plane's database
	proxy     *proxy.Proxy
	toAPI     *link // to the control plane
	toCluster *link
	agent     *world.Agent
	limits    *limits
	state     string // the agent's folder
	deployed  []upstream.Deployed
}

// newWorld returns a world with a cluster of the pool, and starts its agent.
func newWorld(t *testing.T) *faultWorld {
	t.Helper()
	return newWorldIn(t, reportSets)
}

// newWorldIn is newWorld with a protocol.
func newWorldIn(t *testing.T, delivery protocol) *faultWorld {
	t.Helper()
	w := newWorldWithoutAgentIn(t, delivery)
	w.start()
	return w
}

func newWorldWithoutAgent(t *testing.T) *faultWorld {
	t.Helper()
	return newWorldWithoutAgentIn(t, reportSets)
}

func newWorldWithoutAgentIn(t *testing.T, delivery protocol) *faultWorld {
	t.Helper()
	w := newWorldWithoutControlPlane(t, shared.clusters.Take(t), delivery)
	w.startOnlyControlPlane()
	return w
}

// newWorldOn is newWorldWithoutAgent with the test's own cluster.
func newWorldOn(t *testing.T, c *world.Cluster) *faultWorld {
	t.Helper()
	w := newWorldWithoutControlPlane(t, c, reportSets)
	w.startOnlyControlPlane()
	return w
}

func newWorldWithoutControlPlane(t *testing.T, c *world.Cluster, delivery protocol) *faultWorld {
	t.Helper()
	w := &faultWorld{World: world.New(t, c), protocol: delivery, proxy: proxy.New(t)}
	w.state = filepath.Join(t.TempDir(), "state")
	w.database = "sqlite:" + filepath.Join(t.TempDir(), "controlplane.db")
	w.toAPI = newLink(w.World, "the control plane", w.proxy.Listen(t, "agent"))
	w.toCluster = newLink(w.World, "the cluster", strings.TrimPrefix(c.Config().Host, "https://"))
	return w
}

// startAnotherControlPlane starts another control plane on the world's database, and forwards requests to it.
func (w *faultWorld) startAnotherControlPlane() (control *process.Process, url string) {
	w.Helper()
	control = w.startControlPlane("--bind-address=127.0.0.1:0", "--auth-enabled=false")
	url, err := control.URL(w.Ctx)
	w.Must(err)
	w.proxy.AddBackend(url)
	return control, url
}

// startOnlyControlPlane starts the control plane of a world that keeps it for the whole test, and sets up the world.
func (w *faultWorld) startOnlyControlPlane() {
	w.Helper()
	_, url := w.startAnotherControlPlane()
	w.setUp(url)
}

// setUp creates everything except the agent. The URL is that of the control plane for the test's own requests.
func (w *faultWorld) setUp(url string) {
	w.Helper()
	w.Upstream.API = upstream.API{URL: url}
	w.StartOracle()
	w.limits = watchLimits(w)
}

// keepAll raises the limit of stored Events of a workload above the number in any test.
const keepAll = "--events-per-workload=10000000"

// startControlPlane starts the control-plane API on the world's database, with flags.
func (w *faultWorld) startControlPlane(flags ...string) *process.Process {
	w.Helper()
	return w.StartControlPlane(shared.controlAPI, slices.Concat(flags, w.protocol.api, []string{"--database=" + w.database, keepAll})...)
}

// start starts the agent with additional flags, and waits until it is ready.
func (w *faultWorld) start(flags ...string) {
	w.Helper()
	w.launch(flags...)
	w.AwaitAgent(w.Ctx, w.agent)
}

// launch starts the agent without waiting.
func (w *faultWorld) launch(flags ...string) {
	w.Helper()
	w.agent = w.launchWith(w.state, append([]string{
		"--kubeconfig=" + w.kubeconfig(w.toCluster.Listen), "--threeport-api-server=" + w.toAPI.Listen,
	}, flags...)...)
}

// launchWith starts an agent with a state directory, and measures it.
func (w *faultWorld) launchWith(state string, flags ...string) *world.Agent {
	w.Helper()
	agent := w.LaunchAgent(shared.agent.command(w.World), slices.Concat(w.protocol.agent, []string{"--state-dir=" + state}, flags)...)
	w.limits.follow(agent, state)
	return agent
}

// kill kills the agent, which must still run.
func (w *faultWorld) kill() {
	w.Helper()
	w.KillAgent(w.agent)
}

// kubeconfig writes a copy of the agent's kubeconfig with another address of the API server.
func (w *faultWorld) kubeconfig(address string) string {
	w.Helper()
	config, err := clientcmd.LoadFromFile(w.Cluster.AgentKubeconfig)
	w.Must(err)
	for _, c := range config.Clusters {
		c.Server = "https://" + address
	}
	path := filepath.Join(w.TempDir(), "kubeconfig")
	w.Must(clientcmd.WriteToFile(*config, path))
	return path
}

// deploy deploys a WorkloadInstance of manifests, which awaitAgreement checks.
func (w *faultWorld) deploy(name string, manifests ...string) upstream.Deployed {
	w.Helper()
	d := w.Deploy(name, manifests...)
	w.deployed = append(w.deployed, d)
	return d
}

// change makes a unique change of an object.
func (w *faultWorld) change(obj *unstructured.Unstructured) *unstructured.Unstructured {
	w.Helper()
	return w.Patch(obj, fmt.Sprintf(`{"metadata":{"annotations":{"example.com/turn":"%d"}}}`, rand.Int64()))
}

// awaitAgreement waits until the rows match the cluster (A, B, C), and checks the order of the writes (D).
func (w *faultWorld) awaitAgreement() {
	w.Helper()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(w.Ctx, world.Timeout)
	defer cancel()
	w.AwaitAgent(ctx, w.agent) // before that, all rows may be those of its predecessor
	expected := world.Expected(w.deployed...)
	w.AwaitAgreement(expected...)
	writes := w.proxy.Accepted()
	if differences := w.Oracle.CheckOrder(writes, expected); len(differences) > 0 {
		const shown = 10
		w.Errorf("%d differences in the order of writes, such as:\n  %s", len(differences), strings.Join(differences[:min(len(differences), shown)], "\n  "))
	}
	w.Logf("the control plane agrees with the cluster after %s: %d writes, %d Events",
		time.Since(begin).Round(time.Millisecond), len(writes), w.Oracle.EventCount())
}

// await waits for a number of matching requests since the start.
func (w *faultWorld) await(n int, expected string, matches func(proxy.Request) bool) {
	w.Helper()
	w.Eventually(fmt.Sprintf("%d requests %s", n, expected), func() error {
		if got := w.proxy.Count(matches); got < n {
			return fmt.Errorf("the proxy received %d", got)
		}
		return nil
	})
}

// seed returns a source of random numbers, and logs its seed; FAULTS_SEED sets it.
func seed(t *testing.T) *rand.Rand {
	t.Helper()
	n := uint64(time.Now().UnixNano())
	if given := os.Getenv("FAULTS_SEED"); given != "" {
		var err error
		if n, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("FAULTS_SEED: %v", err)
		}
	}
	t.Logf("FAULTS_SEED=%d", n)
	return rand.New(rand.NewPCG(n, n))
}
