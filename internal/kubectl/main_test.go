package kubectl

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/threeport/threeport-agent/internal/kubectl/manifest"
	"github.com/threeport/threeport-agent/internal/testing/apiserver"
)

// shared is the API server of all tests, with the CRD installed.
var shared struct {
	api        *apiserver.Server
	dynamic    dynamic.Interface
	kubeconfig string // of the administrator
	nobody     string // the kubeconfig of a user without permissions
	uninstall  result // of status, before the CRD was there
}

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	flag.Parse()
	if flag.Lookup("test.fuzz").Value.String() != "" { // fuzzing runs many processes, and its targets need no cluster
		os.Exit(m.Run())
	}
	code, err := runMain(m)
	if err == nil {
		err = leaks()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubectl:", err)
		code = 1
	}
	os.Exit(code)
}

// leaks returns what still runs after a time in which all that is to end has ended, however busy the machine is.
func leaks() error {
	for begin := time.Now(); ; {
		if err := goleak.Find(); err == nil || time.Since(begin) > 30*time.Second { // it waits itself, a little
			return err
		}
	}
}

func runMain(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	shared.api, err = apiserver.Start()
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := shared.api.Stop(); err == nil {
			err = stopErr
		}
	}()
	if shared.dynamic, err = dynamic.NewForConfig(shared.api.Config()); err != nil {
		return 1, err
	}
	if shared.kubeconfig, _, err = shared.api.User("root", "system:masters"); err != nil {
		return 1, err
	}
	if shared.nobody, _, err = shared.api.User("nobody"); err != nil {
		return 1, err
	}
	cache, err := os.MkdirTemp("", "kubectl-threeport")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(cache) //nolint:errcheck // a temporary folder
	if err := os.Setenv("KUBECACHEDIR", cache); err != nil {
		return 1, err
	}
	shared.uninstall = invokeAt(ctx, time.Now, "", "status", "--kubeconfig", shared.kubeconfig)
	if err := install(ctx, "../../config/crd/bases/control-plane.threeport.io_threeportworkloads.yaml", "testdata/input/crds.yaml"); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// install applies CRDs, and waits until they are served.
func install(ctx context.Context, paths ...string) error {
	for _, path := range paths {
		in, err := os.Open(filepath.FromSlash(path))
		if err != nil {
			return err
		}
		for d := range manifest.Documents(ctx, path, in) {
			if d.Err != nil {
				return fmt.Errorf("%s: %w", d.Place(), d.Err)
			}
			crd := &unstructured.Unstructured{Object: d.Object}
			if _, err := apply(ctx, crd); err != nil {
				return err
			}
			if err := served(ctx, crd); err != nil {
				return fmt.Errorf("wait for %s: %w", crd.GetName(), err)
			}
		}
		if err := in.Close(); err != nil {
			return err
		}
	}
	return nil
}

func served(ctx context.Context, crd *unstructured.Unstructured) error {
	plural, group, _ := strings.Cut(crd.GetName(), ".")
	version := "v1"
	if group == workloads.Group {
		version = workloads.Version
	}
	client, err := discovery.NewDiscoveryClientForConfig(shared.api.Config())
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := shared.dynamic.Resource(resource(group, version, plural)).List(ctx, metav1.ListOptions{})
		_, lists, discoveryErr := client.ServerGroupsAndResources() // discovery lists a new kind some time after it is served
		return err == nil && discoveryErr == nil && slices.ContainsFunc(lists, func(l *metav1.APIResourceList) bool {
			return l.GroupVersion == group+"/"+version &&
				slices.ContainsFunc(l.APIResources, func(r metav1.APIResource) bool { return r.Name == plural })
		}), nil
	})
}

// resourceOf returns where an object is kept. The kinds of the tests have regular plurals.
func resourceOf(u *unstructured.Unstructured) dynamic.ResourceInterface {
	gvk := u.GroupVersionKind()
	plural := strings.ToLower(gvk.Kind) + "s"
	r := shared.dynamic.Resource(schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: plural})
	if u.GetNamespace() != "" {
		return r.Namespace(u.GetNamespace())
	}
	return r
}

// apply creates an object, and writes its status. It returns the object as it is stored.
func apply(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	status := u.Object["status"]
	stored, err := resourceOf(u).Create(ctx, u, metav1.CreateOptions{})
	if err != nil || status == nil || u.GetKind() == "CustomResourceDefinition" {
		return stored, err
	}
	stored.Object["status"] = status
	return resourceOf(u).UpdateStatus(ctx, stored, metav1.UpdateOptions{})
}

// create stores an object, which is removed when the test ends, and returns its UID. In the text, $NAME stands for the
// name of the test's own namespace, and the arguments for verbs.
func create(t *testing.T, text string, args ...any) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	for d := range manifest.Documents(t.Context(), t.Name(), strings.NewReader(fmt.Sprintf(text, args...))) {
		if d.Err != nil {
			t.Fatal(d.Place(), d.Err)
		}
		u.Object = d.Object
	}
	stored, err := apply(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := resourceOf(u).Delete(context.WithoutCancel(t.Context()), u.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	return stored
}

// call runs the plugin as the administrator.
func call(t *testing.T, args ...string) result {
	t.Helper()
	return invokeAt(t.Context(), time.Now, "", append(args, "--kubeconfig", shared.kubeconfig)...)
}
