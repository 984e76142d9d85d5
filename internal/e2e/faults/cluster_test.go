package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/proxy"
	"github.com/threeport/threeport-agent/internal/e2e/world"
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
			w.Pause(2 * time.Second)
			mend()
			w.Pause(500 * time.Millisecond)
		}
		l.down()
		w.Pause(2 * time.Second)
		l.up()
	}
	load.stop()
	w.awaitAgreement()
}

// Connections become half-open: no data arrives, and no side is notified. The agent must notice that within 60 s on a watch,
// and within 30 s on a request.
func TestNetwork_HalfOpenConnections(t *testing.T) {
	t.Parallel()
	for reason, within := range map[string]time.Duration{"to the cluster": 60 * time.Second, "to the control plane": 30 * time.Second} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			w := newWorldWithoutAgent(t)
			toCluster := newRelay(t, strings.TrimPrefix(w.Cluster.Config().Host, "https://"))
			toAPI := newRelay(t, w.toAPI.Listen)
			w.start("--kubeconfig="+w.kubeconfig(toCluster.address), "--threeport-api-server="+toAPI.address)
			objects := w.deployWeb()
			load := w.startLoad(seed(t), 20, objects)
			w.await(30, "before the connections freeze", proxy.Request.IsAcceptedWrite)
			if reason == "to the cluster" {
				toCluster.freeze()
			} else {
				toAPI.freeze()
			}
			frozen := time.Now()
			load.paused.Store(true)
			changed := w.change(objects[0])
			w.EventuallyWithin(within, "the change after the connections froze", func() error { return w.expectVersion(0, changed.GetResourceVersion()) })
			t.Logf("the change was reported %s after the connections %s froze", time.Since(frozen).Round(time.Second), reason)
			load.paused.Store(false)
			w.Pause(2 * time.Second)
			load.stop()
			w.awaitAgreement()
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
		w.Pause(3 * time.Second)
		w.Must(w.Cluster.Kill(cluster.APIServer))
		w.Oracle.Interrupted()
		load.paused.Store(true) // until the test's own watch works again
		w.Pause(2 * time.Second)
		w.Must(w.Cluster.Restart(w.Ctx, cluster.APIServer))
		w.awaitOracleRecovery(objects[0])
		load.paused.Store(false)
	}
	w.Pause(3 * time.Second)
	load.stop()
	w.awaitAgreement()
}

// awaitOracleRecovery waits until the oracle's watch works again.
func (w *faultWorld) awaitOracleRecovery(obj *unstructured.Unstructured) {
	w.Helper()
	changed := w.change(obj)
	events := w.Oracle.EventCount()
	w.createEvent(obj, fmt.Sprintf("probe-%d", events))
	w.Eventually("the oracle to watch again", func() error {
		if !w.Oracle.Observed(changed.GetUID(), changed.GetResourceVersion()) || w.Oracle.EventCount() <= events {
			return errors.New("the oracle has not observed the latest change")
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
	w.await(20, "before the API server is away", proxy.Request.IsAcceptedWrite)
	w.toCluster.down()
	version := w.Get(objects[0]).GetResourceVersion()
	w.Pause(2 * time.Second)
	w.Remove(objects[1])
	w.createEvent(w.Create(world.ConfigMap("more")), "of-the-second")
	w.Eventually("etcd to compact the version", func() error { return w.expectCompacted(version) })
	w.toCluster.up()
	w.Pause(2 * time.Second)
	load.stop()
	w.awaitAgreement()
}

// expectCompacted expects the answer 410 Gone to a watch from a version.
func (w *faultWorld) expectCompacted(version string) error {
	w.Helper()
	watch, err := w.Client.CoreV1().ConfigMaps(w.Namespace).Watch(w.Ctx, metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: new(int64(1))})
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	w.Must(err)
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if err := apierrors.FromObject(event.Object); apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return nil
		}
	}
	return fmt.Errorf("a watch from version %s succeeds", version)
}

// A listed kind is uninstalled and installed again. Other kinds are not affected.
func TestCRD_RemovedAndRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const shop = "{apiVersion: faults.example.com/v1, kind: Shop, metadata: {name: corner}, spec: {open: true}}"
	install := func() *unstructured.Unstructured { return w.InstallCRD("faults.example.com", "Shop", "shops") }
	crd := install()
	d := w.deploy("shop", world.ConfigMap("conf"), shop)
	w.createEvent(w.Get(d.Objects[1]), "opened")
	w.awaitAgreement()

	w.Remove(crd)
	w.ExpectState(d, 1, v1alpha1.ResourceKindNotInstalled, "")
	w.ExpectState(d, 0, v1alpha1.ResourcePresent, "")
	changed := w.change(d.Objects[0])
	w.Eventually("the change of another kind", func() error { return w.expectVersion(0, changed.GetResourceVersion()) })
	w.awaitAgreement()

	install()
	w.createEvent(w.Create(shop), "opened-again")
	w.change(d.Objects[1])
	w.ExpectState(d, 1, v1alpha1.ResourcePresent, "")
	w.awaitAgreement()
	w.Remove(crd)
	w.ExpectState(d, 1, v1alpha1.ResourceKindNotInstalled, "") // by then the oracle has observed it too
	w.awaitAgreement()
}

// The permission for one kind is revoked and restored.
func TestPermission_RemovedAndRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deploy("web", world.ConfigMap("conf"), deployment)
	w.createEvent(w.Get(d.Objects[0]), "before")
	w.awaitAgreement()

	role, err := w.Client.RbacV1().ClusterRoles().Get(w.Ctx, builtInKinds, metav1.GetOptions{})
	w.Must(err)
	w.Cleanup(func() { w.permit(role.Rules) })
	w.permit([]rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list", "watch"}}})
	// An open watch continues: the API server checks permissions only at its start.
	w.toCluster.cut()
	w.ExpectState(d, 0, v1alpha1.ResourceForbidden, "")
	w.ExpectState(d, 1, v1alpha1.ResourcePresent, "")
	w.change(d.Objects[0])
	w.createEvent(w.Get(d.Objects[0]), "while-it-may-not-see")
	changed := w.change(d.Objects[1])
	w.Eventually("the change of another kind", func() error { return w.expectVersion(1, changed.GetResourceVersion()) })

	w.permit(role.Rules)
	w.ExpectState(d, 0, v1alpha1.ResourcePresent, "")
	w.awaitAgreement()
}

// builtInKinds is the ClusterRole of the agent for the kinds of Kubernetes itself.
const builtInKinds = "threeport-agent-built-in-kinds"

// permit sets the rules of the ClusterRole for the kinds of Kubernetes itself.
func (w *faultWorld) permit(rules []rbacv1.PolicyRule) {
	w.Helper()
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/rules", "value": rules}})
	w.Must(err)
	_, err = w.Client.RbacV1().ClusterRoles().Patch(context.WithoutCancel(w.Ctx), builtInKinds, types.JSONPatchType, patch, metav1.PatchOptions{})
	w.Must(err)
}
