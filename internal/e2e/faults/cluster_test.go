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

// Each network fault happens on the link to the control plane, then on the link to the cluster.
func TestNetwork_Impaired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	load := w.startLoad(seed(t), 20, w.deployWeb())
	for _, l := range []*link{w.toAPI, w.toCluster} {
		for _, bad := range []struct{ kind, attributes string }{
			{kind: "latency", attributes: `{"latency":300,"jitter":200}`},
			{kind: "bandwidth", attributes: `{"rate":20}`},
			{kind: "timeout", attributes: `{"timeout":0}`}, // stops all data; closes the connections at its end
			{kind: "timeout", attributes: `{"timeout":500}`},
			{kind: "reset_peer", attributes: `{"timeout":100}`},
			{kind: "slicer", attributes: `{"average_size":40,"size_variation":20,"delay":100}`},
		} {
			mend := l.impair(bad.kind, bad.attributes)
			w.pause(2 * time.Second)
			mend()
			w.pause(500 * time.Millisecond)
		}
		l.down()
		w.pause(2 * time.Second)
		l.up()
	}
	load.stop()
	w.awaitAgreement(waitTimeout)
}

// Connections become half-open: no data arrives, and no side is notified. The agent must notice that within 60 s on a watch,
// and within 30 s on a request.
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
			w.await(waitTimeout, 30, "before the connections freeze", func(r request) bool { return r.isWrite() && r.accepted })
			if reason == "to the cluster" {
				toCluster.freeze()
			} else {
				toAPI.freeze()
			}
			frozen := time.Now()
			load.paused.Store(true)
			changed := w.change(objects[0])
			w.eventually(within, "the change after the connections froze", func() error { return w.expectVersion(0, changed.GetResourceVersion()) })
			t.Logf("the change was reported %s after the connections %s froze", time.Since(frozen).Round(time.Second), reason)
			load.paused.Store(false)
			w.pause(2 * time.Second)
			load.stop()
			w.awaitAgreement(waitTimeout)
		})
	}
}

// The API server is killed and restarted. The new process has no old versions, so it answers watches with 410.
func TestAPIServer_Restarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	objects := w.deployWeb()
	load := w.startLoad(seed(t), 20, objects)
	for range 2 {
		w.pause(3 * time.Second)
		w.must(w.cluster.Kill(cluster.APIServer))
		w.oracle.Interrupted()
		load.paused.Store(true) // until the test's own watch works again
		w.pause(2 * time.Second)
		w.must(w.cluster.Restart(w.ctx, cluster.APIServer))
		w.awaitOracle(objects[0])
		load.paused.Store(false)
	}
	w.pause(3 * time.Second)
	load.stop()
	w.awaitAgreement(waitTimeout)
}

// awaitOracle waits until the oracle's watch works again.
func (w *world) awaitOracle(obj *unstructured.Unstructured) {
	w.Helper()
	changed := w.change(obj)
	events := w.oracle.EventCount()
	w.createEvent(obj, fmt.Sprintf("probe-%d", events))
	w.eventually(waitTimeout, "the oracle's watch to work", func() error {
		if !w.oracle.Observed(changed.GetUID(), changed.GetResourceVersion()) || w.oracle.EventCount() <= events {
			return fmt.Errorf("it has not observed the latest change")
		}
		return nil
	})
}

// The agent cannot reach the API server until etcd has compacted the version of the agent's watch.
func TestEtcd_Compaction(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, ownCluster(t, "--etcd-compaction-interval=1s", "--watch-cache=false"))
	w.start()
	objects := w.deployWeb()
	load := w.startLoad(seed(t), 20, objects)
	w.await(waitTimeout, 20, "before the API server is away", func(r request) bool { return r.isWrite() && r.accepted })
	w.toCluster.down()
	version := w.get(objects[0]).GetResourceVersion()
	w.pause(2 * time.Second)
	w.remove(objects[1])
	w.createEvent(w.create(configMap("more")), "of-the-second")
	w.eventually(waitTimeout, "the version to be compacted", func() error { return w.expectCompacted(version) })
	w.toCluster.up()
	w.pause(2 * time.Second)
	load.stop()
	w.awaitAgreement(waitTimeout)
}

// expectCompacted expects the answer 410 Gone to a watch from a version.
func (w *world) expectCompacted(version string) error {
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
	return fmt.Errorf("a watch from version %s succeeds", version)
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

// A listed kind is uninstalled and installed again. Other kinds are not affected.
func TestCRD_RemovedAndRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const shop = "{apiVersion: faults.example.com/v1, kind: Shop, metadata: {name: corner}, spec: {open: true}}"
	crd := w.installShops()
	d := w.deploy("shop", configMap("conf"), shop)
	w.createEvent(w.get(d.Objects[1]), "opened")
	w.awaitAgreement(waitTimeout)

	w.remove(crd)
	w.expectState(d.Name, 1, v1alpha1.ResourceKindNotInstalled)
	w.expectState(d.Name, 0, v1alpha1.ResourcePresent)
	changed := w.change(d.Objects[0])
	w.eventually(waitTimeout, "the change of another kind", func() error { return w.expectVersion(0, changed.GetResourceVersion()) })
	w.awaitAgreement(waitTimeout)

	w.installShops()
	w.createEvent(w.create(shop), "opened-again")
	w.change(d.Objects[1])
	w.expectState(d.Name, 1, v1alpha1.ResourcePresent)
	w.awaitAgreement(waitTimeout)
	w.remove(crd)
	w.expectState(d.Name, 1, v1alpha1.ResourceKindNotInstalled) // by then the test's own watch has seen it too
	w.awaitAgreement(waitTimeout)
}

// installShops installs a CRD, and adds its kind to the oracle.
func (w *world) installShops() *unstructured.Unstructured {
	w.Helper()
	var crd *unstructured.Unstructured
	w.eventually(waitTimeout, "the kind to be installed", func() error {
		var err error
		crd, err = w.upstream.Create(w.ctx, w.object(shopCRD)) // it may just be going
		return err
	})
	w.eventually(waitTimeout, "the kind to be served", func() error {
		_, err := w.client.Discovery().ServerResourcesForGroupVersion("faults.example.com/v1")
		return err
	})
	kind := schema.GroupVersion{Group: "faults.example.com", Version: "v1"}
	w.must(w.oracle.Add(w.ctx, kind.WithKind("Shop").GroupKind(), kind.WithResource("shops")))
	return crd
}

// expectState waits until the status of a listed resource has a state.
func (w *world) expectState(name string, resource int, want v1alpha1.ResourceState) {
	w.Helper()
	w.eventually(waitTimeout, fmt.Sprintf("state %s of resource %d", want, resource), func() error {
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
	w.createEvent(w.get(d.Objects[0]), "before")
	w.awaitAgreement(waitTimeout)

	role, err := w.client.RbacV1().ClusterRoles().Get(w.ctx, "threeport-agent", metav1.GetOptions{})
	w.must(err)
	w.Cleanup(func() { w.permit("*", "*") })
	if role.Rules[0].Resources[0] != "*" {
		t.Fatalf("the role's first rule is %+v, want all resources", role.Rules[0])
	}
	w.permit("apps", "deployments")
	// An open watch continues: the API server checks permissions only at its start.
	w.toCluster.cut()
	w.expectState(d.Name, 0, v1alpha1.ResourceForbidden)
	w.expectState(d.Name, 1, v1alpha1.ResourcePresent)
	w.change(d.Objects[0])
	w.createEvent(w.get(d.Objects[0]), "while-it-may-not-see")
	changed := w.change(d.Objects[1])
	w.eventually(waitTimeout, "the change of another kind", func() error { return w.expectVersion(1, changed.GetResourceVersion()) })

	w.permit("*", "*")
	w.expectState(d.Name, 0, v1alpha1.ResourcePresent)
	w.awaitAgreement(waitTimeout)
}

// permit sets the resources that the agent's role permits to list and watch, besides ThreeportWorkloads.
func (w *world) permit(group, resource string) {
	w.Helper()
	patch := fmt.Sprintf(`[{"op":"replace","path":"/rules/0/apiGroups","value":[%q]},{"op":"replace","path":"/rules/0/resources","value":[%q]}]`, group, resource)
	_, err := w.client.RbacV1().ClusterRoles().Patch(context.WithoutCancel(w.ctx), "threeport-agent", types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	w.must(err)
}
