package reporter

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/threeport/threeport-agent/internal/agent/informers"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// world is the environment of one test: a namespace, a reporter with its registry and sink, and a proxy between it and the
// API server.
type world struct {
	*testing.T
	ctx       context.Context //nolint:containedctx // the test's own, which ends with it
	namespace string
	proxy     *proxy
	targets   *target.Registry
	sink      *recorder
	clients   *informers.Clients
	reporter  *Reporter
	registry  *prometheus.Registry
	changes   *atomic.Int64 // calls of changed
	stop      func()        // ends the reporter, and waits for it
}

func quick() Config {
	c := DefaultConfig()
	c.RetryMin, c.RetryMax, c.StatusDelay = 50*time.Millisecond, 400*time.Millisecond, 20*time.Millisecond
	c.StatusInterval = 20 * time.Millisecond
	c.CacheLagTolerance = 5 * time.Second // a cache may lag because the machine is busy
	return c
}

// newWorld starts a reporter with the permissions of a user.
func newWorld(t *testing.T, user *rest.Config, config Config) *world {
	t.Helper()
	w := newIdleWorld(t, user, config)
	w.run()
	return w
}

func newIdleWorld(t *testing.T, user *rest.Config, config Config) *world {
	t.Helper()
	return newNamedWorld(t, uniqueName(t), user, config)
}

func newNamedWorld(t *testing.T, namespace string, user *rest.Config, config Config) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	w := &world{T: t, ctx: ctx, targets: target.NewRegistry(), sink: &recorder{}, registry: prometheus.NewRegistry(), changes: &atomic.Int64{}}
	w.namespace = namespace
	w.create("{apiVersion: v1, kind: Namespace, metadata: {name: " + w.namespace + "}}")
	w.proxy = newProxy(t, user)
	var err error
	w.clients, err = informers.NewClients(&rest.Config{Host: w.proxy.URL})
	w.must(err)
	changed := func(string) { w.changes.Add(1) }
	w.reporter = New(config, w.clients, w.targets, w.sink, nil, NewMetrics(w.registry), logr.Discard(), changed)
	return w
}

// close releases the resources of a reporter that is never run.
func (r *Reporter) close() {
	r.informers.Close()
	r.queues.shutDown()
}

// run starts the reporter.
func (w *world) run() {
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.reporter.Run(ctx)
	}()
	w.stop = func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(40 * time.Second): // client-go may wait for up to a minute
			w.Error("Run did not return within 40s of its context's end")
		}
	}
	w.Cleanup(w.stop)
}

var worlds atomic.Int64

// uniqueName returns a name that no other test has, and no repetition of this test.
func uniqueName(t *testing.T) string {
	t.Helper()
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.Name()))
	return fmt.Sprintf("t-%x-%d", h.Sum32(), worlds.Add(1))
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// waitLimit is the limit of each wait. client-go itself waits for up to half a minute before a retry, and the machine may be
// busy.
const waitLimit = 90 * time.Second

// eventually checks until there is no complaint.
func (w *world) eventually(expected string, check func() string) {
	w.Helper()
	deadline := time.NewTimer(waitLimit)
	defer deadline.Stop()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		complaint := check()
		if complaint == "" {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			w.Fatalf("expected within %s: %s; at last: %s", waitLimit, expected, complaint)
		}
	}
}

// during fails the test if there is a complaint at any time within a while.
func (w *world) during(d time.Duration, check func() string) {
	w.Helper()
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		if complaint := check(); complaint != "" {
			w.Fatal(complaint)
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			return
		}
	}
}

func parse(manifest string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
		panic(fmt.Sprintf("%v in %s", err, manifest))
	}
	return obj
}

// parse parses a manifest in which NS stands for the test's namespace. Its name is unique, and so serves in API groups
// too.
func (w *world) parse(manifest string) *unstructured.Unstructured {
	return parse(strings.ReplaceAll(manifest, "NS", w.namespace))
}

// resourceOf returns the administrator's client for an object.
func resourceOf(obj *unstructured.Unstructured) dynamic.ResourceInterface {
	gvr, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
	return shared.dynamic.Resource(gvr).Namespace(obj.GetNamespace())
}

// create creates an object of a manifest, see parse. It is deleted when the test ends.
func (w *world) create(manifest string) *unstructured.Unstructured {
	w.Helper()
	obj := w.parse(manifest)
	created, err := resourceOf(obj).Create(w.ctx, obj, metav1.CreateOptions{})
	w.must(err)
	// Otherwise the next test's informers would see it, and look up its owners.
	w.Cleanup(func() {
		err := resourceOf(obj).Delete(context.WithoutCancel(w.ctx), obj.GetName(), deleteNow)
		if err != nil && !apierrors.IsNotFound(err) {
			w.Errorf("clean up: %v", err)
		}
	})
	return created
}

// patch merges a manifest into an object.
func (w *world) patch(obj *unstructured.Unstructured, patch string) {
	w.Helper()
	_, err := resourceOf(obj).Patch(w.ctx, obj.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.must(err)
}

// deleteNow also deletes Pods, for which there is no kubelet.
var deleteNow = metav1.DeleteOptions{GracePeriodSeconds: new(int64)}

// remove deletes an object, and returns when it is gone.
func (w *world) remove(obj *unstructured.Unstructured) {
	w.Helper()
	err := resourceOf(obj).Delete(w.ctx, obj.GetName(), deleteNow)
	if !apierrors.IsNotFound(err) {
		w.must(err)
	}
	w.eventually(obj.GetKind()+" "+obj.GetName()+" is gone", func() string {
		found, err := resourceOf(obj).Get(w.ctx, obj.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && found.GetUID() != obj.GetUID() {
			return ""
		}
		return fmt.Sprintf("it is still there: %v", err)
	})
}

// user returns a new user with a ClusterRole of the given rules in YAML.
func user(t *testing.T, rules string) (config *rest.Config, name string) {
	t.Helper()
	name = uniqueName(t)
	_, config, err := shared.api.User(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, manifest := range []string{
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: " + name + "}, rules: " + rules + "}",
		bindClusterRole(name, name),
	} {
		obj := parse(manifest)
		if _, err := resourceOf(obj).Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return config, name
}

// allow replaces the rules of a user's role.
func (w *world) allow(name, rules string) {
	w.Helper()
	w.patch(parse("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "+name+"}}"), `{"rules": `+rules+`}`)
}

// crd is the manifest of a kind of namespaced objects.
func crd(group, kind string) string {
	singular := strings.ToLower(kind)
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]ss.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: %[3]s, plural: %[2]ss, singular: %[2]s}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, group, singular, kind)
}

// define installs a kind, and returns when it is served.
func (w *world) define(group, kind string) *unstructured.Unstructured {
	w.Helper()
	definition := w.create(crd(group, kind))
	w.awaitServed(w.parse(fmt.Sprintf("{apiVersion: %s/v1, kind: %s, metadata: {name: none, namespace: default}}", group, kind)))
	return definition
}

// discovered complains while discovery does not show a kind, which may be some time after the kind is served.
func (w *world) discovered(gvk schema.GroupVersionKind) string {
	client, err := kubernetes.NewForConfig(shared.api.Config())
	w.must(err)
	known, err := client.Discovery().ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	if err != nil {
		return err.Error()
	}
	for _, r := range known.APIResources {
		if r.Kind == gvk.Kind {
			return ""
		}
	}
	return "discovery does not list it"
}

// awaitServed returns when the API server serves an object's kind, and discovery shows it.
func (w *world) awaitServed(example *unstructured.Unstructured) {
	w.Helper()
	w.eventually(example.GetKind()+" is served", func() string {
		if _, err := resourceOf(example).List(w.ctx, metav1.ListOptions{}); err != nil {
			return err.Error()
		}
		return w.discovered(example.GroupVersionKind())
	})
}

// awaitNotServed returns when the API server no longer serves a group and version.
func (w *world) awaitNotServed(path string) {
	w.Helper()
	client, err := kubernetes.NewForConfig(shared.api.Config())
	w.must(err)
	w.eventually(path+" is not served", func() string {
		if _, err := client.Discovery().RESTClient().Get().AbsPath(path).DoRaw(w.ctx); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("it is: %v", err)
		}
		return ""
	})
}

// patchStatus merges a manifest into an object's status.
func (w *world) patchStatus(obj *unstructured.Unstructured, patch string) {
	w.Helper()
	_, err := resourceOf(obj).Patch(w.ctx, obj.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	w.must(err)
}
