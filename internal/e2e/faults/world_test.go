package faults

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// world is the environment of one test. The agent reaches the control plane through a link and the proxy, and the cluster
// through a link.
type world struct {
	*testing.T
	way       protocol
	ctx       context.Context //nolint:containedctx // the test's own, which ends with it
	cluster   *testCluster
	namespace string
	upstream  *upstream.Upstream
	client    kubernetes.Interface
	oracle    *oracle.Oracle
	database  string       // of the control plane: its address
	api       upstream.API // of the control plane, without any faults
	proxy     *proxy
	toAPI     *link // to the control plane
	toCluster *link
	agent     *process.Process
	limits    *limits
	deposed   *process.Process // an agent that may end with an error
	state     string           // the agent's folder
	metrics   string           // URLs
	probes    string
	deployed  []upstream.Deployed
}

// waitTimeout is longer than any wait on a busy machine.
const waitTimeout = 5 * time.Minute

// newWorld returns a world with a cluster of the pool, and starts its agent.
func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldIn(t, reportSets)
}

// newWorldIn is newWorld with a protocol.
func newWorldIn(t *testing.T, delivery protocol) *world {
	t.Helper()
	w := newWorldWithoutAgentIn(t, delivery)
	w.start()
	return w
}

func newWorldWithoutAgent(t *testing.T) *world {
	t.Helper()
	return newWorldWithoutAgentIn(t, reportSets)
}

func newWorldWithoutAgentIn(t *testing.T, delivery protocol) *world {
	t.Helper()
	w := newWorldWithoutControlPlane(t, takeCluster(t), delivery)
	w.startOnlyControlPlane()
	return w
}

// takeCluster takes a cluster of the pool for a test.
func takeCluster(t *testing.T) *testCluster {
	t.Helper()
	c, err := shared.clusters.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := release(c.Config()); err != nil {
			t.Errorf("clean up: %v", err)
		}
		shared.clusters.give(c)
	})
	return c
}

// newWorldOn is newWorld with the test's own cluster.
func newWorldOn(t *testing.T, c *testCluster) *world {
	t.Helper()
	w := newWorldWithoutControlPlane(t, c, reportSets)
	w.startOnlyControlPlane()
	return w
}

func newWorldWithoutControlPlane(t *testing.T, c *testCluster, delivery protocol) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	t.Cleanup(cancel)
	w := &world{T: t, way: delivery, ctx: ctx, cluster: c, state: filepath.Join(t.TempDir(), "state")}
	w.database = "sqlite:" + filepath.Join(t.TempDir(), "controlplane.db")
	w.proxy = newProxy(t)
	w.toAPI = newLink(t, "the control plane", w.proxy.listen(t, "agent"))
	w.toCluster = newLink(t, "the cluster", strings.TrimPrefix(c.Config().Host, "https://"))
	return w
}

// startAnotherControlPlane starts another control plane on the world's database, and forwards requests to it.
func (w *world) startAnotherControlPlane() (control *process.Process, url string) {
	w.Helper()
	control = w.startControlPlane("--bind-address=127.0.0.1:0", "--auth-enabled=false")
	url, err := control.URL(w.ctx)
	w.must(err)
	w.proxy.setBackend(url, true)
	return control, url
}

// startOnlyControlPlane starts the control plane of a world that keeps it for the whole test, and sets up the world.
func (w *world) startOnlyControlPlane() {
	w.Helper()
	_, url := w.startAnotherControlPlane()
	w.setUp(url)
}

// setUp creates everything except the agent. The URL is that of the control plane for the test's own requests.
func (w *world) setUp(url string) {
	w.Helper()
	w.api = upstream.API{URL: url}
	w.connect()
	w.limits = watchLimits(w)
}

// keepAll raises the limit of stored Events of a workload above the number in any test.
const keepAll = "--events-per-workload=10000000"

// startControlPlane starts the reference API with flags.
func (w *world) startControlPlane(flags ...string) *process.Process {
	w.Helper()
	control, err := process.Start(shared.controlAPI, nil, slices.Concat(flags, w.way.api, []string{"--database=" + w.database, keepAll}))
	w.must(err)
	w.Cleanup(control.Kill)
	return control
}

// connect creates the test's clients, starts the oracle, and creates the namespace.
func (w *world) connect() {
	w.Helper()
	config := w.cluster.Config()
	var err error
	w.upstream, err = upstream.New(config, w.api)
	w.must(err)
	typed := rest.CopyConfig(config)
	typed.ContentType, typed.QPS = runtime.ContentTypeProtobuf, -1
	w.client, err = kubernetes.NewForConfig(typed)
	w.must(err)
	w.oracle, err = oracle.Watch(w.ctx, config)
	w.must(err)
	w.namespace = namespaceFor(w.Name())
	w.create("{apiVersion: v1, kind: Namespace, metadata: {name: " + w.namespace + "}}")
}

var worlds atomic.Int64

// namespaceFor returns a unique name for a test.
func namespaceFor(test string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(strings.TrimPrefix(test, "Test")))
	return fmt.Sprintf("%s-%d", strings.Trim(name[:min(len(name), 40)], "-"), worlds.Add(1))
}

// release removes the workloads from a cluster, so that the next agent has none. The remaining objects and Events then belong
// to no workload.
func release(config *rest.Config) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	workloads := dyn.Resource(v1alpha1.GroupVersion.WithResource("threeportworkloads"))
	list, err := workloads.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, item := range list.Items {
		_, _ = workloads.Patch(ctx, item.GetName(), "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err := workloads.Delete(ctx, item.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// start starts the agent with additional flags, and waits until it is ready.
func (w *world) start(flags ...string) {
	w.Helper()
	w.launch(flags...)
	w.awaitReady(w.ctx)
}

func (w *world) awaitReady(ctx context.Context) {
	w.Helper()
	_, err := w.agent.WaitFor(ctx, "Starting workers")
	w.must(err)
}

// launch starts the agent without waiting.
func (w *world) launch(flags ...string) {
	w.Helper()
	metrics, probes := freeAddress(w.T), freeAddress(w.T)
	w.metrics, w.probes = "http://"+metrics, "http://"+probes
	w.agent = w.startProcess(append([]string{
		"--kubeconfig=" + w.kubeconfig(w.cluster.agentUser, w.toCluster.Listen),
		"--threeport-api-server=" + w.toAPI.Listen, "--auth-enabled=false",
		"--metrics-bind-address=" + metrics, "--health-probe-bind-address=" + probes, "--state-dir=" + w.state,
	}, slices.Concat(w.way.agent, flags)...)...)
	w.limits.follow(w.agent, w.metrics, w.state)
}

// startProcess starts the agent's binary. At the end of the test it is stopped, and must not have failed before.
func (w *world) startProcess(flags ...string) *process.Process {
	w.Helper()
	agent, err := shared.agent.start(w.T, flags)
	w.must(err)
	w.Cleanup(func() {
		err := agent.Stop(waitTimeout)
		if err != nil && agent != w.deposed && !strings.Contains(err.Error(), "signal: killed") {
			w.Errorf("stop the agent: %v", err)
		}
		if strings.Contains(agent.Output(), "DATA RACE") {
			w.Errorf("the race detector found:\n%s", agent.Output())
		}
		if w.Failed() && agent == w.agent {
			w.Logf("the end of the agent's log:\n%s", end(agent.Output(), 6000))
		}
	})
	return agent
}

func end(text string, n int) string { return text[max(0, len(text)-n):] }

// kill kills the agent, which must still run.
func (w *world) kill() {
	w.Helper()
	select {
	case <-w.agent.Done():
		w.Fatalf("the agent ended by itself:\n%s", end(w.agent.Output(), 4000))
	default:
		w.agent.Kill()
	}
}

// kubeconfig writes a copy of a kubeconfig with another address of the API server.
func (w *world) kubeconfig(original, address string) string {
	w.Helper()
	config, err := clientcmd.LoadFromFile(original)
	w.must(err)
	for _, c := range config.Clusters {
		c.Server = "https://" + address
	}
	path := filepath.Join(w.TempDir(), "kubeconfig")
	w.must(clientcmd.WriteToFile(*config, path))
	return path
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// object parses a valid manifest. The default namespace is the test's.
func (w *world) object(manifest string) *unstructured.Unstructured {
	w.Helper()
	objects, err := upstream.Parse(manifest)
	if err != nil || len(objects) != 1 {
		w.Fatalf("%d objects: %v in %s", len(objects), err, manifest)
	}
	obj := objects[0]
	switch obj.GetKind() {
	case "Namespace", "CustomResourceDefinition":
	default:
		obj.SetNamespace(w.namespace)
	}
	return obj
}

func (w *world) create(manifest string) *unstructured.Unstructured {
	w.Helper()
	created, err := w.upstream.Create(w.ctx, w.object(manifest))
	w.must(err)
	return created
}

// createOwned creates an object with another one as its controller.
func (w *world) createOwned(manifest string, owner *unstructured.Unstructured) *unstructured.Unstructured {
	w.Helper()
	obj := w.object(manifest)
	obj.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true),
	}})
	created, err := w.upstream.Create(w.ctx, obj)
	w.must(err)
	return created
}

// deploy deploys a WorkloadInstance of manifests.
func (w *world) deploy(name string, manifests ...string) upstream.Deployed {
	w.Helper()
	workload := upstream.Workload{Name: w.namespace + "-" + name, Type: v1alpha1.WorkloadTypeInstance}
	for _, manifest := range manifests {
		workload.Objects = append(workload.Objects, w.object(manifest))
	}
	d, err := w.upstream.Deploy(w.ctx, workload)
	w.must(err)
	w.deployed = append(w.deployed, d)
	return d
}

func (w *world) get(obj *unstructured.Unstructured) *unstructured.Unstructured {
	w.Helper()
	resource, err := w.upstream.Resource(obj)
	w.must(err)
	got, err := resource.Get(w.ctx, obj.GetName(), metav1.GetOptions{})
	w.must(err)
	return got
}

func (w *world) patch(obj *unstructured.Unstructured, patch string) *unstructured.Unstructured {
	w.Helper()
	resource, err := w.upstream.Resource(obj)
	w.must(err)
	patched, err := resource.Patch(w.ctx, obj.GetName(), "application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
	w.must(err)
	return patched
}

// change makes a unique change of an object.
func (w *world) change(obj *unstructured.Unstructured) *unstructured.Unstructured {
	w.Helper()
	return w.patch(obj, fmt.Sprintf(`{"metadata":{"annotations":{"example.com/turn":"%d"}}}`, rand.Int64()))
}

func (w *world) remove(obj *unstructured.Unstructured) {
	w.Helper()
	w.must(w.upstream.DeleteObject(w.ctx, obj))
}

func (w *world) expected() []oracle.Expected {
	var out []oracle.Expected
	for _, d := range w.deployed {
		out = append(out, oracle.Expected{Deployed: d})
	}
	return out
}

// awaitAgreement waits until the rows match the cluster (A, B, C), and checks the order of the writes (D).
func (w *world) awaitAgreement(within time.Duration) {
	w.Helper()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(w.ctx, within)
	defer cancel()
	w.awaitReady(ctx) // before that, all rows may be those of its predecessor
	if err := w.oracle.Await(ctx, w.api, w.expected()); err != nil {
		w.Fatalf("after %s: %v", within, err)
	}
	writes := w.proxy.accepted()
	if differences := w.oracle.CheckOrder(writes, w.expected()); len(differences) > 0 {
		const shown = 10
		w.Errorf("%d differences in the order of writes, such as:\n  %s", len(differences), strings.Join(differences[:min(len(differences), shown)], "\n  "))
	}
	w.Logf("the control plane agrees with the cluster after %s: %d writes, %d Events",
		time.Since(begin).Round(time.Millisecond), len(writes), w.oracle.EventCount())
}

// eventually repeats a check until it returns no error.
func (w *world) eventually(within time.Duration, expected string, check func() error) {
	w.Helper()
	var last error
	err := wait.PollUntilContextTimeout(w.ctx, 25*time.Millisecond, within, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		w.Fatalf("expected within %s: %s; last error: %v", within, expected, last)
	}
}

// pause lets time pass, as the duration of a fault or a measurement.
func (w *world) pause(d time.Duration) {
	w.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ctx.Done():
		w.Fatal(w.ctx.Err())
	}
}

// await waits for a number of matching requests since the start.
func (w *world) await(within time.Duration, n int, expected string, matches func(request) bool) {
	w.Helper()
	w.eventually(within, fmt.Sprintf("%d requests %s", n, expected), func() error {
		if got := w.proxy.count(matches); got < n {
			return fmt.Errorf("there were %d", got)
		}
		return nil
	})
}

// status returns the stored ThreeportWorkload.
func (w *world) status(name string) *v1alpha1.ThreeportWorkload {
	w.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ThreeportWorkload"))
	obj.SetName(name)
	out := &v1alpha1.ThreeportWorkload{}
	w.must(runtime.DefaultUnstructuredConverter.FromUnstructured(w.get(obj).Object, out))
	return out
}

// fetch returns a page and its HTTP status.
func fetch(ctx context.Context, url string) (string, int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", 0, err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(answer.Body)
	return string(body), answer.StatusCode, err
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

// rowPath returns the path of a listed resource's row.
func rowPath(d upstream.Deployed, resource int) string {
	return fmt.Sprintf("/v0/workload-resource-instances/%d", d.Resources[resource].ThreeportID)
}

// operationIn returns the LastOperation in a body.
func operationIn(body []byte) string {
	_, rest, _ := strings.Cut(string(body), `"LastOperation":"`)
	operation, _, _ := strings.Cut(rest, `"`)
	return operation
}
