package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/cluster"
)

// The network is bad in every way, on one side and then on the other.
func TestNetwork_Impaired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	load := w.startLoad(seed(t), 20, w.deployWeb())
	for _, l := range []*link{w.toAPI, w.toCluster} {
		for _, bad := range []struct{ kind, attributes string }{
			{kind: "latency", attributes: `{"latency":300,"jitter":200}`},
			{kind: "bandwidth", attributes: `{"rate":20}`},
			{kind: "timeout", attributes: `{"timeout":0}`}, // nothing passes; the connections are closed in the end
			{kind: "timeout", attributes: `{"timeout":500}`},
			{kind: "reset_peer", attributes: `{"timeout":100}`},
			{kind: "slicer", attributes: `{"average_size":40,"size_variation":20,"delay":100}`},
		} {
			mend := l.spoil(bad.kind, bad.attributes)
			w.let(2 * time.Second)
			mend()
			w.let(500 * time.Millisecond)
		}
		l.down()
		w.let(2 * time.Second)
		l.up()
	}
	load.stop()
	w.agree(patience)
}

// Connections are forgotten on the way: nobody is told, and nothing comes any more. On a watch that has to be noticed
// within 60 s, on a request within 30.
func TestNetwork_HalfOpenConnections(t *testing.T) {
	t.Parallel()
	for reason, within := range map[string]time.Duration{"to the cluster": 60 * time.Second, "to the control plane": 30 * time.Second} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			w := newWorldWithoutAgent(t)
			toCluster := newRelay(t, strings.TrimPrefix(w.cluster.Config().Host, "https://"))
			toAPI := newRelay(t, w.toAPI.Listen)
			w.start("--kubeconfig="+w.kubeconfig(w.cluster.agentUser, toCluster.address), "--threeport-api-server="+toAPI.address)
			objects := w.deployWeb()
			load := w.startLoad(seed(t), 20, objects)
			w.await(patience, 30, "before the connections freeze", func(r request) bool { return r.write() && r.accepted })
			if reason == "to the cluster" {
				toCluster.freeze()
			} else {
				toAPI.freeze()
			}
			frozen := time.Now()
			load.paused.Store(true)
			changed := w.change(objects[0])
			w.eventually(within, "what changed after the connections froze", func() error { return w.has(0, changed.GetResourceVersion()) })
			t.Logf("what changed was reported %s after the connections %s froze", time.Since(frozen).Round(time.Second), reason)
			load.paused.Store(false)
			w.let(2 * time.Second)
			load.stop()
			w.agree(patience)
		})
	}
}

// The API server is killed and comes back. Its new process knows no versions of before: watches are told 410.
func TestAPIServer_Restarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	objects := w.deployWeb()
	load := w.startLoad(seed(t), 20, objects)
	for range 2 {
		w.let(3 * time.Second)
		w.must(w.cluster.Kill(cluster.APIServer))
		w.oracle.Interrupted()
		load.paused.Store(true) // until the test's own watch works again
		w.let(2 * time.Second)
		w.must(w.cluster.Restart(w.ctx, cluster.APIServer))
		w.awaitOracle(objects[0])
		load.paused.Store(false)
	}
	w.let(3 * time.Second)
	load.stop()
	w.agree(patience)
}

// awaitOracle waits until the test's own watch works again.
func (w *world) awaitOracle(obj *unstructured.Unstructured) {
	w.Helper()
	changed := w.change(obj)
	events := w.oracle.EventCount()
	w.happen(obj, fmt.Sprintf("probe-%d", events))
	w.eventually(patience, "the test's own watch to work", func() error {
		if !w.oracle.Observed(changed.GetUID(), changed.GetResourceVersion()) || w.oracle.EventCount() <= events {
			return fmt.Errorf("it has not seen the latest change")
		}
		return nil
	})
}

// The agent cannot reach the API server for so long that etcd has forgotten the version from which it watches.
func TestEtcd_Compaction(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, ownCluster(t, "--etcd-compaction-interval=1s", "--watch-cache=false"))
	w.start()
	objects := w.deployWeb()
	load := w.startLoad(seed(t), 20, objects)
	w.await(patience, 20, "before the API server is away", func(r request) bool { return r.write() && r.accepted })
	w.toCluster.down()
	version := w.get(objects[0]).GetResourceVersion()
	w.let(2 * time.Second)
	w.remove(objects[1])
	w.happen(w.create(configMap("more")), "of-the-second")
	w.eventually(patience, "the version to be forgotten", func() error { return w.forgotten(version) })
	w.toCluster.up()
	w.let(2 * time.Second)
	load.stop()
	w.agree(patience)
}

// forgotten expects that a watch from a version is answered with 410 Gone.
func (w *world) forgotten(version string) error {
	w.Helper()
	watch, err := w.client.CoreV1().ConfigMaps(w.namespace).Watch(w.ctx, metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: new(int64(1))})
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	w.must(err)
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if err := apierrors.FromObject(event.Object); apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return nil
		}
	}
	return fmt.Errorf("a watch from version %s works", version)
}

const shopCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.faults.example.com}
spec:
  group: faults.example.com
  scope: Namespaced
  names: {kind: Shop, plural: shops}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// A listed kind is uninstalled and comes back. Only its objects are affected.
func TestCRD_RemovedAndRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const shop = "{apiVersion: faults.example.com/v1, kind: Shop, metadata: {name: corner}, spec: {open: true}}"
	crd := w.installShops()
	d := w.deploy("shop", configMap("conf"), shop)
	w.happen(w.get(d.Objects[1]), "opened")
	w.agree(patience)

	w.remove(crd)
	w.expectState(d.Name, 1, v1alpha1.ResourceKindNotInstalled)
	w.expectState(d.Name, 0, v1alpha1.ResourcePresent)
	changed := w.change(d.Objects[0])
	w.eventually(patience, "the change of another kind", func() error { return w.has(0, changed.GetResourceVersion()) })
	w.agree(patience)

	w.installShops()
	w.happen(w.create(shop), "opened-again")
	w.change(d.Objects[1])
	w.expectState(d.Name, 1, v1alpha1.ResourcePresent)
	w.agree(patience)
	w.remove(crd)
	w.expectState(d.Name, 1, v1alpha1.ResourceKindNotInstalled) // by then the test's own watch has seen it too
	w.agree(patience)
}

// installShops installs a kind, and lets the oracle watch it.
func (w *world) installShops() *unstructured.Unstructured {
	w.Helper()
	var crd *unstructured.Unstructured
	w.eventually(patience, "the kind to be installed", func() error {
		var err error
		crd, err = w.upstream.Create(w.ctx, w.object(shopCRD)) // it may just be going
		return err
	})
	w.eventually(patience, "the kind to be served", func() error {
		_, err := w.client.Discovery().ServerResourcesForGroupVersion("faults.example.com/v1")
		return err
	})
	kind := schema.GroupVersion{Group: "faults.example.com", Version: "v1"}
	w.must(w.oracle.Add(w.ctx, kind.WithKind("Shop").GroupKind(), kind.WithResource("shops")))
	return crd
}

// expectState waits until a workload's status says something of a listed resource.
func (w *world) expectState(name string, resource int, want v1alpha1.ResourceState) {
	w.Helper()
	w.eventually(patience, fmt.Sprintf("state %s of resource %d", want, resource), func() error {
		resources := w.status(name).Status.Resources
		if len(resources) <= resource || resources[resource].State != want {
			return fmt.Errorf("the resources are %+v", resources)
		}
		return nil
	})
}

// The permission for one kind is revoked and restored.
func TestPermission_RemovedAndRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deploy("web", configMap("conf"), deployment)
	w.happen(w.get(d.Objects[0]), "before")
	w.agree(patience)

	role, err := w.client.RbacV1().ClusterRoles().Get(w.ctx, "threeport-agent", metav1.GetOptions{})
	w.must(err)
	w.Cleanup(func() { w.permit("*", "*") })
	if role.Rules[0].Resources[0] != "*" {
		t.Fatalf("the role's first rule is %+v, expected all resources", role.Rules[0])
	}
	w.permit("apps", "deployments")
	// A watch that is open goes on: it was permitted when it began.
	w.toCluster.cut()
	w.expectState(d.Name, 0, v1alpha1.ResourceForbidden)
	w.expectState(d.Name, 1, v1alpha1.ResourcePresent)
	w.change(d.Objects[0])
	w.happen(w.get(d.Objects[0]), "while-it-may-not-see")
	changed := w.change(d.Objects[1])
	w.eventually(patience, "the change of another kind", func() error { return w.has(1, changed.GetResourceVersion()) })

	w.permit("*", "*")
	w.expectState(d.Name, 0, v1alpha1.ResourcePresent)
	w.agree(patience)
}

// permit says what the agent's role lets it list and watch besides ThreeportWorkloads.
func (w *world) permit(group, resource string) {
	w.Helper()
	patch := fmt.Sprintf(`[{"op":"replace","path":"/rules/0/apiGroups","value":[%q]},{"op":"replace","path":"/rules/0/resources","value":[%q]}]`, group, resource)
	_, err := w.client.RbacV1().ClusterRoles().Patch(context.WithoutCancel(w.ctx), "threeport-agent", types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	w.must(err)
}
