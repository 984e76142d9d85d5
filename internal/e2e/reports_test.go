package e2e

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestReports_Workload(t *testing.T) {
	w := newWorld(t)
	web := w.deploy("web", configMap("conf"), deployment("web", 3),
		`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}`)
	crash := w.deploy("crash", failingDeployment("crash", 2, "crash-loop"))
	w.expectStatus(web, "Healthy")
	w.expectStatus(crash, "Down")
	w.awaitAgreement(tracked(web, crash)...)

	cr, err := w.status(web.Name)
	w.must(err)
	if id := cr.Spec.WorkloadInstanceID; id != web.InstanceID || id < 1<<53 {
		t.Errorf("the workload's instance ID is %d, expected %d, beyond 2^53", id, web.InstanceID)
	}
	w.expectCondition(web.Name, v1alpha1.ConditionWatching, metav1.ConditionTrue)
	w.expectCondition(web.Name, v1alpha1.ConditionDelivered, metav1.ConditionTrue)
}

func TestReports_Changes(t *testing.T) {
	w := newWorld(t)
	web := w.deploy("web", deployment("web", 3))
	w.expectStatus(web, "Healthy")
	// A rollout, and scaling to zero and back.
	w.patch(web.Objects[0], `{"spec":{"template":{"metadata":{"labels":{"rollout":"2"}}}}}`)
	w.patch(web.Objects[0], `{"spec":{"replicas":0}}`)
	w.awaitReplicas(web.Objects[0], 0)
	w.patch(web.Objects[0], `{"spec":{"replicas":2}}`)
	w.awaitReplicas(web.Objects[0], 2)
	w.expectStatus(web, "Healthy")
	w.awaitAgreement(tracked(web)...)
}

func TestReports_RecreatedObject_DeletedThenAdded(t *testing.T) {
	w := newWorld(t)
	d := w.deploy("conf", configMap("conf"), deployment("web", 2))
	w.expectStatus(d, "Healthy")
	w.awaitAgreement(tracked(d)...)
	before := len(w.proxy.writes(rowPath(d, 0)))
	w.must(w.upstream.DeleteObject(w.ctx, d.Objects[0]))
	w.must(w.upstream.DeleteObject(w.ctx, d.Objects[1]))
	for _, obj := range d.Objects {
		_, err := w.upstream.Create(w.ctx, obj)
		w.must(err)
	}
	w.awaitReplicas(d.Objects[1], 2)
	w.expectStatus(d, "Healthy")
	w.awaitAgreement(tracked(d)...)
	var operations []string
	for _, r := range w.proxy.writes(rowPath(d, 0))[before:] {
		operations = append(operations, operationIn(r))
	}
	if got := strings.Join(operations, " "); got != "DELETED ADDED" {
		t.Errorf("after the recreation the row got %q, want DELETED ADDED", got)
	}
}

func TestReports_CustomResources_AnyOwnerChain(t *testing.T) {
	w := newWorld(t)
	for _, kind := range []string{"App", "Widget"} {
		w.removeLater(w.create(crd(w.namespace+".example.com", kind, strings.ToLower(kind)+"s")))
	}
	api := w.namespace + ".example.com/v1"
	app := w.deploy("app", fmt.Sprintf(`{apiVersion: %s, kind: App, metadata: {name: shop}}`, api))
	// The kind in between is neither listed nor watched.
	owner := w.getObject(app.Objects[0])
	widget := w.createOwned(fmt.Sprintf(`{apiVersion: %s, kind: Widget, metadata: {name: shelf}}`, api), owner)
	shelf := w.createOwned(pod("shelf-0"), widget)
	w.awaitCondition(shelf, "Ready")
	w.eventually(waitTimeout, "Events of the pod in the control plane", func() error {
		events, err := w.api.Events(w.ctx, url.Values{"workloadinstanceid": {strconv.FormatInt(app.InstanceID, 10)}})
		if err != nil {
			return err
		}
		for _, ev := range events {
			if *ev.Reason == "Started" && strings.HasPrefix(*ev.Message, "Pod shelf-0: ") &&
				ev.WorkloadResourceInstanceID != nil && *ev.WorkloadResourceInstanceID == app.Resources[0].ThreeportID {
				return nil
			}
		}
		return fmt.Errorf("%d events, none of them Started of the pod, under the custom resource", len(events))
	})
	w.patch(app.Objects[0], `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"StockFailed","message":"the shelf is empty"}]}}`)
	w.expectStatus(app, "Unhealthy")
	w.awaitAgreement(tracked(app)...)
}

func TestReports_HelmWorkload_EventsAndStatus(t *testing.T) {
	w := newWorld(t)
	chart := w.workload("chart", v1alpha1.WorkloadTypeHelmInstance, deployment("chart", 2), configMap("chart"),
		`{apiVersion: v1, kind: Service, metadata: {name: chart}, spec: {selector: {app: chart}, ports: [{port: 80}]}}`)
	d, err := w.upstream.Register(w.ctx, chart)
	w.must(err)
	label := map[string]string{v1alpha1.LabelHelmWorkloadInstance: strconv.FormatInt(d.InstanceID, 10)}
	for _, obj := range d.Objects {
		_, err := w.upstream.Create(w.ctx, obj)
		w.must(err)
	}
	d.Resources[2].Namespace = "" // to be defaulted to that of the others
	// A pod that belongs to the workload only by its label.
	hook := w.place(object(pod("chart-hook")))
	hook.SetLabels(label)
	_, err = w.upstream.Create(w.ctx, hook)
	w.must(err)
	w.must(w.upstream.Declare(w.ctx, d))
	w.eventually(waitTimeout, "the status of the helm instance", func() error {
		status, err := w.api.Status(w.ctx, upstream.HelmWorkloadInstances, d.InstanceID)
		if err == nil && status != "Healthy" {
			err = fmt.Errorf("it is %q, expected Healthy", status)
		}
		return err
	})
	w.eventually(waitTimeout, "Events of the labelled pod under the helm instance", func() error {
		events, err := w.api.Events(w.ctx, url.Values{"helmworkloadinstanceid": {strconv.FormatInt(d.InstanceID, 10)}})
		if err != nil {
			return err
		}
		pods := map[string]bool{}
		for _, ev := range events {
			name, _, _ := strings.Cut(*ev.Message, ": ")
			pods[name] = true
			if ev.WorkloadInstanceID != nil || ev.WorkloadResourceInstanceID != nil {
				return fmt.Errorf("event %s has a workload or resource instance, expected the helm instance only", *ev.Reason)
			}
		}
		if !pods["Pod chart-hook"] || len(pods) < 4 {
			return fmt.Errorf("events are about %v, expected the hook, two pods and their ReplicaSet", pods)
		}
		return nil
	})
	w.eventually(waitTimeout, "the Service's namespace in the status", func() error {
		cr, err := w.status(d.Name)
		if err != nil || len(cr.Status.Resources) != 3 {
			return fmt.Errorf("%w: %d resources", err, len(cr.Status.Resources))
		}
		if s := cr.Status.Resources[2]; s.Namespace != w.namespace || s.State != v1alpha1.ResourcePresent {
			return fmt.Errorf("the Service is %s in namespace %q, expected Present in %q", s.State, s.Namespace, w.namespace)
		}
		return nil
	})
	if sent := w.proxy.writes("/v0/workload-resource-instances"); len(sent) > 0 {
		t.Errorf("%d operations were sent for a Helm workload, expected none", len(sent))
	}
}

func TestReports_RepeatedEvent_UpdatesRow(t *testing.T) {
	w := newWorld(t)
	d := w.deploy("conf", configMap("conf"))
	uid := w.getObject(d.Objects[0]).GetUID()
	// An Event of events.k8s.io: lastTimestamp stays null.
	series := func(count int, second int) string {
		return fmt.Sprintf(`{"count": %d, "lastObservedTime": "2026-01-02T03:04:%02d.123456Z"}`, count, second)
	}
	event := fmt.Sprintf(`
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: probe}
eventTime: "2026-01-02T03:04:05.000001Z"
reportingController: example.com/controller
reportingInstance: controller-0
action: Probing
type: Warning
reason: Probed
note: it did not answer
regarding: {apiVersion: v1, kind: ConfigMap, name: conf, namespace: %s, uid: %s}
`, w.namespace, uid)
	created := w.create(event)
	w.awaitAgreement(tracked(d)...)
	for i := range 5 {
		w.patch(created, `{"series":`+series(i+2, 10+i)+`}`)
	}
	w.awaitAgreement(tracked(d)...)
	events, err := w.api.Events(w.ctx, url.Values{"runtimeeventuid": {string(created.GetUID())}})
	w.must(err)
	want := time.Date(2026, 1, 2, 3, 4, 14, 123456000, time.UTC)
	if len(events) != 1 || !events[0].Timestamp.Equal(want) {
		t.Errorf("the repeated Event has %d rows, the first with the time %v, want one row with %v", len(events), events[0].Timestamp, want)
	}
	posts := slices.DeleteFunc(w.proxy.writes("/v0/workload-events"), func(w oracle.Write) bool { return w.Method != http.MethodPost })
	if *strictV0 && len(posts) != len(w.allEvents()) { // a report set writes a repeat like the first report
		t.Errorf("%d rows were posted for %d Events", len(posts), len(w.allEvents()))
	}
}

func TestSecrets_StayInCluster(t *testing.T) {
	w := newWorldWithoutAgent(t)
	const value = "correct-horse-battery-staple-4711"
	encoded := base64.StdEncoding.EncodeToString([]byte(value))
	out := w.startAgentIn(t.TempDir())
	// As with kubectl apply, an annotation contains the manifest.
	manifest := fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"sesame"},"data":{"password":%q}}`, encoded)
	secret := object(manifest)
	secret.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: manifest, "example.com/kept": "kept"})
	wl := w.workload("secret", v1alpha1.WorkloadTypeInstance)
	wl.Objects = append(wl.Objects, w.place(secret))
	d, err := w.upstream.Deploy(w.ctx, wl)
	w.must(err)
	w.awaitAgreement(tracked(d)...)
	w.patch(d.Objects[0], fmt.Sprintf(`{"data":{"more":%q}}`, encoded))
	w.awaitAgreement(tracked(d)...)

	row, err := w.api.Resources(w.ctx, nil)
	w.must(err)
	for _, text := range []string{`"name":"sesame"`, `"annotations":{"example.com/kept":"kept"}`, `"kind":"Secret"`} {
		if !strings.Contains(string(row[0].RuntimeDefinition), text) {
			t.Errorf("the Secret's definition is %s, expected its metadata with %s", row[0].RuntimeDefinition, text)
		}
	}
	places := map[string]string{"the agent's log": w.agent.Output(), "the agent's metrics": w.get(w.metrics + "/metrics")}
	for _, r := range w.proxy.sent() {
		places["a request"] += r.path + string(r.body)
	}
	w.must(w.filesIn(out, places))
	for place, text := range places {
		expectWithout(t, place, []byte(text), value, encoded)
	}
	// Proves that the search works: the control plane received the manifest, so its memory contains it.
	if _, found, err := searchMemory(w.controlPlane.PID(), encoded); err != nil || !found {
		t.Fatalf("the search did not find the value in the control plane's memory: %v", err)
	}
	for _, secret := range []string{value, encoded} {
		if where, found, err := searchMemory(w.agent.PID(), secret); err != nil || found {
			t.Errorf("the agent's memory holds the Secret's value: %s %v", where, err)
		}
	}
}

// expectStatus waits until the row of a workload has a status.
func (w *world) expectStatus(d upstream.Deployed, want string) {
	w.Helper()
	w.eventually(waitTimeout, "status "+want+" of "+d.Name+" in the control plane", func() error {
		status, err := w.api.Status(w.ctx, upstream.WorkloadInstances, d.InstanceID)
		if err == nil && status != want {
			err = fmt.Errorf("it is %q", status)
		}
		return err
	})
}

func (w *world) expectCondition(name, condition string, want metav1.ConditionStatus) {
	w.Helper()
	w.eventually(waitTimeout, fmt.Sprintf("condition %s of %s to be %s", condition, name, want), func() error {
		cr, err := w.status(name)
		if err != nil {
			return err
		}
		for _, c := range cr.Status.Conditions {
			if c.Type == condition && c.Status == want && c.ObservedGeneration == cr.Generation {
				return nil
			}
		}
		return fmt.Errorf("the conditions are %+v", cr.Status.Conditions)
	})
}

func (w *world) allEvents() []threeport.WorkloadEvent {
	w.Helper()
	events, err := w.api.Events(w.ctx, nil)
	w.must(err)
	return events
}

func (w *world) getObject(obj *unstructured.Unstructured) *unstructured.Unstructured {
	w.Helper()
	resource, err := w.upstream.Resource(obj)
	w.must(err)
	got, err := resource.Get(w.ctx, obj.GetName(), metav1.GetOptions{})
	w.must(err)
	return got
}

func (w *world) patch(obj *unstructured.Unstructured, patch string) {
	w.Helper()
	resource, err := w.upstream.Resource(obj)
	w.must(err)
	patched, err := resource.Patch(w.ctx, obj.GetName(), "application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
	w.must(err)
	w.awaitOracle(patched)
}

// createOwned creates an object with another one as its controller.
func (w *world) createOwned(manifest string, owner *unstructured.Unstructured) *unstructured.Unstructured {
	w.Helper()
	controller := true
	obj := w.place(object(manifest))
	obj.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), Controller: &controller,
	}})
	created, err := w.upstream.Create(w.ctx, obj)
	w.must(err)
	return created
}

// awaitCondition waits until an object's condition is True in the cluster.
func (w *world) awaitCondition(obj *unstructured.Unstructured, condition string) {
	w.Helper()
	w.eventually(waitTimeout, obj.GetKind()+" "+obj.GetName()+" to be "+condition+" in the cluster", func() error {
		conditions, _, err := unstructured.NestedSlice(w.getObject(obj).Object, "status", "conditions")
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == condition && c["status"] == "True" {
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("its conditions are %v", conditions))
	})
}

// awaitReplicas waits until a rollout of a Deployment is complete with a number of pods.
func (w *world) awaitReplicas(obj *unstructured.Unstructured, want int64) {
	w.Helper()
	w.eventually(waitTimeout, fmt.Sprintf("%d ready replicas of %s in the cluster", want, obj.GetName()), func() error {
		live := w.getObject(obj)
		ready, _, _ := unstructured.NestedInt64(live.Object, "status", "readyReplicas")
		all, _, _ := unstructured.NestedInt64(live.Object, "status", "replicas")
		observed, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
		if ready != want || all != want || observed != live.GetGeneration() {
			return fmt.Errorf("%d of %d are ready", ready, all)
		}
		return nil
	})
}

func rowPath(d upstream.Deployed, resource int) string {
	return fmt.Sprintf("/v0/workload-resource-instances/%d", d.Resources[resource].ThreeportID)
}
