package node

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/image"
	"github.com/threeport/threeport-agent/internal/e2e/operator"
	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
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
		return nil, fmt.Errorf("the control-plane API at %s does not require certificates", base)
	}
	shared.operator, err = operator.Install(ctx, shared.cluster, root, credentials, parsed.Host)
	return api.Kill, err
}

// behaveArchive builds the image of the test workloads.
func behaveArchive(ctx context.Context, dir string) (string, error) {
	archive := filepath.Join(dir, "behave.tar")
	return archive, image.Program(ctx, filepath.Join(root, "internal", "e2e"), "./behave", archive, image.Behave)
}

// These limits are long enough for every test that does not hang, on a slow and busy machine.
const (
	waitTimeout = 5 * time.Minute  // with a condition
	worldLimit  = 20 * time.Minute // with a test on the shared cluster
)

// world is the environment of one test: a namespace.
type world struct {
	*testing.T
	ctx       context.Context //nolint:containedctx // the test's own, which ends with it
	namespace string
}

// namespaceOf returns a namespace for a test. The name of a namespace has at most 63 bytes, so a long one ends with a digest.
func namespaceOf(t *testing.T) string {
	t.Helper()
	name := "t-" + strings.ToLower(strings.NewReplacer("_", "-", "/", "-").Replace(strings.TrimPrefix(t.Name(), "Test")))
	if len(name) <= 63 {
		return name
	}
	digest := fnv.New32a()
	_, _ = digest.Write([]byte(name))
	return fmt.Sprintf("%s-%08x", name[:54], digest.Sum32())
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), worldLimit)
	t.Cleanup(cancel)
	w := &world{T: t, ctx: ctx}
	w.namespace = namespaceOf(t)
	_, err := shared.upstream.Create(ctx, w.objects("{apiVersion: v1, kind: Namespace, metadata: {name: " + w.namespace + "}}")[0])
	w.must(err)
	t.Cleanup(func() {
		err := shared.client.CoreV1().Namespaces().Delete(context.WithoutCancel(ctx), w.namespace, metav1.DeleteOptions{})
		if err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return w
}

// objects parses manifests, and sets the test's namespace on namespaced objects.
func (w *world) objects(manifests string) []*unstructured.Unstructured {
	w.Helper()
	objects, err := upstream.Parse(manifests)
	w.must(err)
	for _, obj := range objects {
		if obj.GetKind() != "Namespace" {
			obj.SetNamespace(w.namespace)
		}
	}
	return objects
}

// deploy deploys a WorkloadInstance of manifests, and deletes it at the end of the test.
func (w *world) deploy(name, manifests string) upstream.Deployed {
	w.Helper()
	d, err := shared.upstream.Deploy(w.ctx, upstream.Workload{
		Name: w.namespace + "-" + name, Type: v1alpha1.WorkloadTypeInstance, Objects: w.objects(manifests),
	})
	w.must(err)
	w.Cleanup(func() {
		if err := shared.upstream.Delete(context.WithoutCancel(w.ctx), d); err != nil {
			w.Errorf("clean up: %v", err)
		}
	})
	return d
}

// agree waits until the rows of the control plane match the observations of the oracle.
func (w *world) agree(deployed ...upstream.Deployed) {
	w.Helper()
	var expected []oracle.Expected
	for _, d := range deployed {
		expected = append(expected, oracle.Expected{Deployed: d})
	}
	ctx, cancel := context.WithTimeout(w.ctx, waitTimeout)
	defer cancel()
	if err := shared.oracle.AwaitOnly(ctx, shared.api, expected); err != nil {
		w.Fatal(err)
	}
}

// awaitStatus waits until the control plane shows a status of an instance, such as "Healthy".
func (w *world) awaitStatus(d upstream.Deployed, want string) {
	w.Helper()
	w.eventually("the control plane to show "+want, func() error {
		got, err := shared.api.Status(w.ctx, upstream.WorkloadInstances, d.InstanceID)
		if err != nil {
			return err
		}
		if word, _, _ := strings.Cut(got, ":"); word != want {
			return fmt.Errorf("it shows %q", got)
		}
		return nil
	})
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// kubectl runs kubectl, and expects success.
func (w *world) kubectl(args ...string) string {
	w.Helper()
	out, err := shared.operator.Kubectl(w.ctx, args...)
	w.must(err)
	return out
}

// eventually repeats a check until it returns no error. It also works in a cleanup.
func (w *world) eventually(expected string, check func() error) {
	w.Helper()
	var last error
	err := wait.PollUntilContextTimeout(context.WithoutCancel(w.ctx), 100*time.Millisecond, waitTimeout, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		w.Fatalf("expected within %s: %s; last error: %v", waitTimeout, expected, last)
	}
}
