package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// shared is the cluster of all tests: starting it takes longer than most tests.
var shared struct {
	cluster    *cluster.Cluster
	agentUser  string // kubeconfig of the user that the agent's role is bound to
	agent      string // binaries, this one with the race detector
	plainAgent string
	controlAPI string
}

var strictV0 = flag.Bool("strict-v0", false, "limit the control plane to the API of Threeport, so that the agent uses v0")

func TestMain(m *testing.M) {
	code, err := runMain(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func runMain(m *testing.M) (code int, err error) {
	flag.Parse()
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "threeport-e2e-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	if shared.agent, err = process.Build(ctx, root, "./cmd/agent", dir, "-race"); err != nil {
		return 1, err
	}
	if shared.plainAgent, err = process.Build(ctx, root, "./cmd/agent", filepath.Join(dir, "plain")); err != nil {
		return 1, err
	}
	if shared.controlAPI, err = process.Build(ctx, root, "./cmd/controlplane", dir); err != nil {
		return 1, err
	}
	if shared.cluster, err = cluster.Start(ctx, cluster.Options{Nodes: 2, Log: os.Stderr}); err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := shared.cluster.Stop(); err == nil {
			err = stopErr
		}
	}()
	if err := install(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// root is the path of the module's root from this package.
var root = filepath.Join("..", "..")

// install creates the generated CRD and role, and binds the role to the agent's user.
func install(ctx context.Context) error {
	up, err := upstream.New(shared.cluster.Config(), upstream.API{})
	if err != nil {
		return err
	}
	if err := up.Install(ctx, root, "agent"); err != nil {
		return err
	}
	shared.agentUser, _, err = shared.cluster.User("agent")
	return err
}

// object parses a valid manifest.
func object(manifest string) *unstructured.Unstructured {
	objects, err := upstream.Parse(manifest)
	if err != nil || len(objects) != 1 {
		panic(fmt.Sprintf("%d objects: %v in %s", len(objects), err, manifest))
	}
	return objects[0]
}

// world is the environment of one test: a control-plane API, a recording proxy in front of it, an agent, an oracle and a
// namespace.
type world struct {
	*testing.T
	ctx       context.Context //nolint:containedctx // the test's own, which ends with it
	namespace string
	upstream  *upstream.Upstream
	oracle    *oracle.Oracle
	proxy     *proxy
	api       upstream.API
	agent     *process.Process
	// controlPlane is the process of the control-plane API.
	controlPlane *process.Process
	binary       string // the agent's
	metrics      string // URLs
	probes       string
	user         string // the agent's kubeconfig
}

// newWorld starts a world with additional flags for the agent.
func newWorld(t *testing.T, flags ...string) *world {
	t.Helper()
	w := newWorldWithoutAgent(t)
	w.startAgent(flags...)
	return w
}

func newWorldWithoutAgent(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	w := &world{T: t, ctx: ctx, user: shared.agentUser, binary: shared.agent}
	api, err := process.Start(shared.controlAPI, nil, []string{
		"--bind-address=127.0.0.1:0", "--auth-enabled=false", "--database=sqlite::memory:", fmt.Sprintf("--strict-v0=%t", *strictV0),
	})
	w.must(err)
	w.controlPlane = api
	t.Cleanup(api.Kill)
	url, err := api.URL(ctx)
	w.must(err)
	w.api = upstream.API{URL: url}
	w.proxy = newProxy(t, url)
	w.upstream, err = upstream.New(shared.cluster.Config(), w.api)
	w.must(err)
	w.oracle, err = oracle.Watch(ctx, shared.cluster.Config())
	w.must(err)

	w.namespace = "t-" + strings.ToLower(strings.NewReplacer("_", "-", "/", "-").Replace(strings.TrimPrefix(t.Name(), "Test")))
	w.create("{apiVersion: v1, kind: Namespace, metadata: {name: " + w.namespace + "}}")
	t.Cleanup(w.cleanUp)
	return w
}

// startAgent starts the agent with the proxy as its control plane, and waits until it is ready.
func (w *world) startAgent(flags ...string) {
	w.Helper()
	metrics, probes := freeAddress(w.T), freeAddress(w.T)
	args := append([]string{
		"--kubeconfig=" + w.user, "--threeport-api-server=" + w.proxy.url, "--auth-enabled=false",
		"--metrics-bind-address=" + metrics, "--health-probe-bind-address=" + probes,
	}, flags...)
	w.metrics, w.probes = "http://"+metrics, "http://"+probes
	var err error
	w.agent, err = process.Start(w.binary, nil, args)
	w.must(err)
	agent := w.agent
	w.Cleanup(func() {
		if w.Failed() {
			w.Logf("the agent's log:\n%s", agent.Output())
		}
		if err := agent.Stop(waitTimeout); err != nil && !strings.Contains(err.Error(), "signal: killed") {
			w.Errorf("stop the agent: %v", err)
		}
		if strings.Contains(agent.Output(), "DATA RACE") {
			w.Errorf("the race detector found:\n%s", agent.Output())
		}
	})
	_, err = agent.WaitFor(w.ctx, "Starting workers")
	w.must(err)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// cleanUp removes the test's objects from the shared cluster. The agent still runs, so that it forgets its workloads.
func (w *world) cleanUp() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), time.Minute)
	defer cancel()
	dyn, err := dynamic.NewForConfig(shared.cluster.Config())
	w.must(err)
	workloads := dyn.Resource(v1alpha1.GroupVersion.WithResource("threeportworkloads"))
	list, err := workloads.List(ctx, metav1.ListOptions{})
	w.must(err)
	for _, item := range list.Items {
		// Another test checks that the agent removes the finalizer in time.
		_, _ = workloads.Patch(ctx, item.GetName(), "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err := workloads.Delete(ctx, item.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			w.Errorf("clean up: %v", err)
		}
	}
	namespaces := dyn.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	if err := namespaces.Delete(ctx, w.namespace, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		w.Errorf("clean up: %v", err)
	}
}

// removeLater deletes a cluster-scoped object at the end of the test.
func (w *world) removeLater(obj *unstructured.Unstructured) {
	w.Cleanup(func() {
		if err := w.upstream.DeleteObject(context.WithoutCancel(w.ctx), obj); err != nil {
			w.Errorf("clean up: %v", err)
		}
	})
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// create creates an object from a manifest; the default namespace is the test's. After the creation of a CRD the oracle
// watches the new kind.
func (w *world) create(manifest string) *unstructured.Unstructured {
	w.Helper()
	created, err := w.upstream.Create(w.ctx, w.place(object(manifest)))
	w.must(err)
	w.awaitOracle(created)
	if created.GetKind() == "CustomResourceDefinition" {
		w.awaitCondition(created, "Established")
		var crd struct {
			Spec struct {
				Group    string
				Names    struct{ Kind, Plural string }
				Versions []struct{ Name string }
			}
		}
		raw, err := created.MarshalJSON()
		w.must(err)
		w.must(json.Unmarshal(raw, &crd))
		group := schema.GroupVersion{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name}
		w.must(w.oracle.Add(w.ctx, group.WithKind(crd.Spec.Names.Kind).GroupKind(), group.WithResource(crd.Spec.Names.Plural)))
	}
	return created
}

// awaitOracle waits until the oracle has observed a version of an object, so that its checks expect that version. The oracle
// need not watch kinds of CRDs.
func (w *world) awaitOracle(obj *unstructured.Unstructured) {
	w.Helper()
	if group := obj.GroupVersionKind().Group; strings.HasSuffix(group, ".example.com") || group == v1alpha1.GroupVersion.Group {
		return
	}
	w.eventually(waitTimeout, obj.GetKind()+" "+obj.GetName()+" to be seen by the oracle", func() error {
		if !w.oracle.Observed(obj.GetUID(), obj.GetResourceVersion()) {
			return errors.New("it is not")
		}
		return nil
	})
}

// place sets the test's namespace on a namespaced object without one.
func (w *world) place(obj *unstructured.Unstructured) *unstructured.Unstructured {
	switch obj.GetKind() {
	case "Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "PriorityClass", "ThreeportWorkload":
		return obj
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace(w.namespace)
	}
	return obj
}

// workload returns a workload of manifests.
func (w *world) workload(name string, typ v1alpha1.WorkloadType, manifests ...string) upstream.Workload {
	w.Helper()
	out := upstream.Workload{Name: w.namespace + "-" + name, Type: typ}
	for _, manifest := range manifests {
		out.Objects = append(out.Objects, w.place(object(manifest)))
	}
	return out
}

// deploy deploys a WorkloadInstance of manifests.
func (w *world) deploy(name string, manifests ...string) upstream.Deployed {
	w.Helper()
	d, err := w.upstream.Deploy(w.ctx, w.workload(name, v1alpha1.WorkloadTypeInstance, manifests...))
	w.must(err)
	return d
}

// waitTimeout is longer than any wait on a busy machine.
const waitTimeout = 2 * time.Minute

// awaitAgreement waits until the rows of the control plane match the observations of the oracle.
func (w *world) awaitAgreement(workloads ...oracle.Expected) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, waitTimeout)
	defer cancel()
	if err := w.oracle.Await(ctx, w.api, workloads); err != nil {
		w.Fatal(err)
	}
}

func tracked(deployed ...upstream.Deployed) []oracle.Expected {
	var out []oracle.Expected
	for _, d := range deployed {
		out = append(out, oracle.Expected{Deployed: d})
	}
	return out
}

// eventually repeats a check until it returns no error. It also works in a cleanup.
func (w *world) eventually(within time.Duration, expected string, check func() error) {
	w.Helper()
	var last error
	err := wait.PollUntilContextTimeout(context.WithoutCancel(w.ctx), 50*time.Millisecond, within, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		w.Fatalf("expected within %s: %s; last error: %v", within, expected, last)
	}
}

// status returns the stored ThreeportWorkload; with an error, an empty one.
func (w *world) status(name string) (*v1alpha1.ThreeportWorkload, error) {
	out := &v1alpha1.ThreeportWorkload{}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ThreeportWorkload"))
	resource, err := w.upstream.Resource(obj)
	if err != nil {
		return out, err
	}
	if obj, err = resource.Get(w.ctx, name, metav1.GetOptions{}); err != nil {
		return out, err
	}
	return out, convert(obj.Object, out)
}

// get returns the body of a page, and expects success.
func (w *world) get(url string) string {
	w.Helper()
	body, code := w.fetch(url)
	if code != http.StatusOK {
		w.Fatalf("GET %s: HTTP %d: %s", url, code, body)
	}
	return body
}
