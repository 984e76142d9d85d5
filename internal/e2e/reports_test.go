package e2e

import (
	"encoding/base64"
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
	"github.com/threeport/threeport-agent/internal/e2e/proxy"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestReports_Workload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	web := w.Deploy("web", world.ConfigMap("conf"), deployment("web", 3),
		`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}`)
	crash := w.Deploy("crash", failingDeployment("crash", 2, "crash-loop"))
	w.ExpectStatus(web, "Healthy")
	w.ExpectStatus(crash, "Down")
	w.AwaitAgreement(world.Expected(web, crash)...)

	cr, err := w.ThreeportWorkload(web)
	w.Must(err)
	if id := cr.Spec.WorkloadInstanceID; id != web.InstanceID || id < 1<<53 {
		t.Errorf("the workload's instance ID is %d, want %d, beyond 2^53", id, web.InstanceID)
	}
	w.ExpectCondition(web, v1alpha1.ConditionWatching, metav1.ConditionTrue, "")
	w.ExpectCondition(web, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
}

func TestReports_Changes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	web := w.Deploy("web", deployment("web", 3))
	w.ExpectStatus(web, "Healthy")
	// A rollout, and scaling to zero and back.
	w.patch(web.Objects[0], `{"spec":{"template":{"metadata":{"labels":{"rollout":"2"}}}}}`)
	w.patch(web.Objects[0], `{"spec":{"replicas":0}}`)
	w.awaitReplicas(web.Objects[0], 0)
	w.patch(web.Objects[0], `{"spec":{"replicas":2}}`)
	w.awaitReplicas(web.Objects[0], 2)
	w.ExpectStatus(web, "Healthy")
	w.AwaitAgreement(world.Expected(web)...)
}

func TestReports_RecreatedObject_DeletedThenAdded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deploy("conf", world.ConfigMap("conf"), deployment("web", 2))
	w.ExpectStatus(d, "Healthy")
	w.AwaitAgreement(world.Expected(d)...)
	before := len(w.proxy.Requested(world.RowPath(d, 0)))
	w.Remove(d.Objects[0])
	w.Remove(d.Objects[1])
	for _, obj := range d.Objects {
		_, err := w.Upstream.Create(w.Ctx, obj)
		w.Must(err)
	}
	w.awaitReplicas(d.Objects[1], 2)
	w.ExpectStatus(d, "Healthy")
	w.AwaitAgreement(world.Expected(d)...)
	var operations []string
	for _, r := range w.proxy.Requested(world.RowPath(d, 0))[before:] {
		operations = append(operations, world.OperationOf(r))
	}
	if got := strings.Join(operations, " "); got != "DELETED ADDED" {
		t.Errorf("after the recreation the row got %q, want DELETED ADDED", got)
	}
}

func TestReports_CustomResources_AnyOwnerChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, kind := range []string{"App", "Widget"} {
		w.removeLater(w.InstallCRD(w.Namespace+".example.com", kind, strings.ToLower(kind)+"s"))
	}
	api := w.Namespace + ".example.com/v1"
	app := w.Deploy("app", fmt.Sprintf(`{apiVersion: %s, kind: App, metadata: {name: shop}}`, api))
	// The kind in between is neither listed nor watched.
	owner := w.Get(app.Objects[0])
	widget := w.CreateOwned(fmt.Sprintf(`{apiVersion: %s, kind: Widget, metadata: {name: shelf}}`, api), owner)
	shelf := w.CreateOwned(pod("shelf-0"), widget)
	w.AwaitCondition(shelf, "Ready")
	w.Eventually("Events of the pod in the control plane", func() error {
		events, err := w.Upstream.API.Events(w.Ctx, url.Values{"workloadinstanceid": {strconv.FormatInt(app.InstanceID, 10)}})
		if err != nil {
			return err
		}
		for _, ev := range events {
			if *ev.Reason == "Started" && strings.HasPrefix(*ev.Message, "Pod shelf-0: ") &&
				ev.WorkloadResourceInstanceID != nil && *ev.WorkloadResourceInstanceID == app.Resources[0].ThreeportID {
				return nil
			}
		}
		return fmt.Errorf("the instance has %d rows of Events; none is Started of the pod under the custom resource", len(events))
	})
	w.patch(app.Objects[0], `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"StockFailed","message":"the shelf is empty"}]}}`)
	w.ExpectStatus(app, "Unhealthy")
	w.AwaitAgreement(world.Expected(app)...)
}

func TestReports_HelmWorkload_EventsAndStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	chart := w.Workload("chart", v1alpha1.WorkloadTypeHelmInstance, deployment("chart", 2), world.ConfigMap("chart"),
		`{apiVersion: v1, kind: Service, metadata: {name: chart}, spec: {selector: {app: chart}, ports: [{port: 80}]}}`)
	d, err := w.Upstream.Register(w.Ctx, chart)
	w.Must(err)
	label := map[string]string{v1alpha1.LabelHelmWorkloadInstance: strconv.FormatInt(d.InstanceID, 10)}
	for _, obj := range d.Objects {
		_, err := w.Upstream.Create(w.Ctx, obj)
		w.Must(err)
	}
	d.Resources[2].Namespace = "" // to be defaulted to that of the others
	// A pod that belongs to the workload only by its label.
	hook := w.Object(pod("chart-hook"))
	hook.SetLabels(label)
	_, err = w.Upstream.Create(w.Ctx, hook)
	w.Must(err)
	w.Must(w.Upstream.Declare(w.Ctx, d))
	w.ExpectHelmStatus(d, "Healthy")
	w.Eventually("Events of the labelled pod under the Helm instance", func() error {
		events, err := w.Upstream.API.Events(w.Ctx, url.Values{"helmworkloadinstanceid": {strconv.FormatInt(d.InstanceID, 10)}})
		if err != nil {
			return err
		}
		pods := map[string]bool{}
		for _, ev := range events {
			name, _, _ := strings.Cut(*ev.Message, ": ")
			pods[name] = true
			if ev.WorkloadInstanceID != nil || ev.WorkloadResourceInstanceID != nil {
				return fmt.Errorf("the row of Event %s has a workload or resource instance, want only the Helm instance", *ev.Reason)
			}
		}
		if !pods["Pod chart-hook"] || len(pods) < 4 {
			return fmt.Errorf("the Events are about %v, want the hook, two pods and their ReplicaSet", pods)
		}
		return nil
	})
	w.Eventually("the Service's namespace in the status", func() error {
		cr, err := w.ThreeportWorkload(d)
		if err != nil {
			return err
		}
		if n := len(cr.Status.Resources); n != 3 {
			return fmt.Errorf("the status has %d resources, want 3", n)
		}
		if s := cr.Status.Resources[2]; s.Namespace != w.Namespace || s.State != v1alpha1.ResourcePresent {
			return fmt.Errorf("the Service is %s in namespace %q, want Present in %q", s.State, s.Namespace, w.Namespace)
		}
		return nil
	})
	if sent := w.proxy.Requested("/v0/workload-resource-instances"); len(sent) > 0 {
		t.Errorf("the agent sent %d operations for a Helm workload, want none", len(sent))
	}
}

func TestReports_RepeatedEvent_UpdatesRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deploy("conf", world.ConfigMap("conf"))
	uid := w.Get(d.Objects[0]).GetUID()
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
note: the server did not answer
regarding: {apiVersion: v1, kind: ConfigMap, name: conf, namespace: %s, uid: %s}
`, w.Namespace, uid)
	created := w.create(event)
	w.AwaitAgreement(world.Expected(d)...)
	for i := range 5 {
		w.patch(created, `{"series":`+series(i+2, 10+i)+`}`)
	}
	w.AwaitAgreement(world.Expected(d)...)
	events, err := w.Upstream.API.Events(w.Ctx, url.Values{"runtimeeventuid": {string(created.GetUID())}})
	w.Must(err)
	want := time.Date(2026, 1, 2, 3, 4, 14, 123456000, time.UTC)
	if len(events) != 1 || !events[0].Timestamp.Equal(want) {
		t.Errorf("the repeated Event has %d rows, the first with the time %v, want one row with %v", len(events), events[0].Timestamp, want)
	}
	posts := slices.DeleteFunc(w.proxy.Requested("/v0/workload-events"), func(w oracle.Write) bool { return w.Method != http.MethodPost })
	if *strictV0 && len(posts) != len(w.allEvents()) { // a report set writes a repeat like the first report
		t.Errorf("the agent posted %d rows for %d Events", len(posts), len(w.allEvents()))
	}
}

// A user may write an Event whose time is in the year 10000 in UTC. JSON cannot encode that, and the agent keeps Events in a file.
func TestReports_EventsWithExtremeTimes_AreReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--state-dir="+t.TempDir())
	d := w.Deploy("conf", world.ConfigMap("conf"))
	uid := w.Get(d.Objects[0]).GetUID()
	event := func(name, times string) {
		w.create(fmt.Sprintf(`
{apiVersion: v1, kind: Event, metadata: {name: %s}, type: Normal, reason: Written, message: %[1]s, %s,
 involvedObject: {apiVersion: v1, kind: ConfigMap, name: conf, namespace: %s, uid: %s}}
`, name, times, w.Namespace, uid))
	}
	event("last", `lastTimestamp: "9999-12-31T23:59:59-23:59"`)
	event("first", `firstTimestamp: "9999-12-31T23:59:59-23:59"`)
	event("zero", `lastTimestamp: "0000-01-01T00:00:00+23:59"`)
	for _, name := range []string{"last", "first", "zero"} {
		w.awaitEvent(d, "Written: "+name)
	}
}

func TestSecrets_StayInCluster(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutAgent(t)
	const value = "correct-horse-battery-staple-4711"
	encoded := base64.StdEncoding.EncodeToString([]byte(value))
	home := t.TempDir()
	w.permitSecrets()
	w.startAgentIn(home)
	// As with kubectl apply, an annotation contains the manifest.
	manifest := fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"sesame"},"data":{"password":%q}}`, encoded)
	secret := w.Object(manifest)
	secret.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: manifest, "helm.sh/chart": "kept"})
	wl := w.Workload("secret", v1alpha1.WorkloadTypeInstance)
	wl.Objects = append(wl.Objects, secret)
	d, err := w.Upstream.Deploy(w.Ctx, wl)
	w.Must(err)
	w.AwaitAgreement(world.Expected(d)...)
	w.patch(d.Objects[0], fmt.Sprintf(`{"data":{"more":%q}}`, encoded))
	w.AwaitAgreement(world.Expected(d)...)

	row, err := w.Upstream.API.Resources(w.Ctx, nil)
	w.Must(err)
	for _, text := range []string{`"name":"sesame"`, `"annotations":{"helm.sh/chart":"kept"}`, `"kind":"Secret"`} {
		if !strings.Contains(string(row[0].RuntimeDefinition), text) {
			t.Errorf("the Secret's definition is %s, want its metadata with %s", row[0].RuntimeDefinition, text)
		}
	}
	places := map[string]string{"the agent's log": w.agent.Output(), "the agent's metrics": w.metrics()}
	for _, r := range w.proxy.Sent(proxy.Any) {
		places["a request"] += r.Path + string(r.Body)
	}
	w.Must(addFiles(home, places))
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

func (w *agentWorld) allEvents() []threeport.WorkloadEvent {
	w.Helper()
	events, err := w.Upstream.API.Events(w.Ctx, nil)
	w.Must(err)
	return events
}

// awaitReplicas waits until a rollout of a Deployment is complete with a number of pods.
func (w *agentWorld) awaitReplicas(obj *unstructured.Unstructured, want int64) {
	w.Helper()
	w.Eventually(fmt.Sprintf("%d ready replicas of %s in the cluster", want, obj.GetName()), func() error {
		live := w.Get(obj)
		ready, _, _ := unstructured.NestedInt64(live.Object, "status", "readyReplicas")
		all, _, _ := unstructured.NestedInt64(live.Object, "status", "replicas")
		observed, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
		if ready != want || all != want || observed != live.GetGeneration() {
			return fmt.Errorf("%d of %d replicas are ready", ready, all)
		}
		return nil
	})
}
