package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// TestMigration_FromThreeportsAgent replaces Threeport's own agent by this one, goes back, and replaces it again.
func TestMigration_FromThreeportsAgent(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutAgent(t, "--strict-v0=true")
	w.Cleanup(func() { w.applyCRD() }) // The next test of the cluster needs it.
	w.replaceCRD()
	flags := append(w.flagsOfThreeportsAgent(), "--leader-election-namespace="+w.Namespace)
	w.permitLeases()
	old := threeportsAgent{w}

	web := w.deployAsThreeport("web", v1alpha1.WorkloadTypeInstance, deployment("web", 2), world.ConfigMap("conf"))
	chart := w.deployAsThreeport("chart", v1alpha1.WorkloadTypeHelmInstance, deployment("chart", 1), world.ConfigMap("chart"))
	first := w.deployAsThreeport("first", v1alpha1.WorkloadTypeInstance, deployment("first", 1))
	between := w.deployAsThreeport("between", v1alpha1.WorkloadTypeInstance, world.ConfigMap("between"))
	double := w.deployDouble()
	w.awaitReplicas(web.Objects[0], 2)
	w.awaitReplicas(chart.Objects[0], 1)
	w.awaitReplicas(first.Objects[0], 1)
	old.run(web, chart, first, between, double)
	old.run(web) // after a restart
	w.Remove(world.CustomResource(between))

	w.applyCRD()
	rows := w.eventRows()
	w.startAgent(flags...)
	w.expectGone(between)
	w.expectReported(web, chart)
	w.awaitSilence()
	w.expectRows(rows)
	w.expectTimes()
	w.expectChanges(web)
	w.expectRows(rows)
	w.Must(w.Upstream.Delete(w.Ctx, first))
	w.expectGone(first)
	w.Remove(world.CustomResource(double))
	w.expectGone(double)
	w.expectOperations(first, threeport.OperationDeleted)
	w.Must(w.agent.Stop(world.Timeout))

	old.run(web) // with the CRD of this agent
	w.replaceCRD()
	old.run(web, chart)
	w.expectNoTrace(web)
	late := w.deployAsThreeport("late", v1alpha1.WorkloadTypeInstance, world.ConfigMap("late"))
	old.run(late)
	for _, d := range []upstream.Deployed{late, chart} {
		w.Remove(world.CustomResource(d))
		old.run(d)
		w.expectGone(d)
	}

	w.applyCRD()
	rows = w.eventRows()
	w.startAgent(flags...)
	w.expectReported(web)
	w.awaitSilence()
	w.expectRows(rows)
}

// deployDouble deploys a workload that lists an object twice. The CRD of this agent refuses that, but the object exists already.
func (w *agentWorld) deployDouble() upstream.Deployed {
	w.Helper()
	d, err := w.Upstream.Register(w.Ctx, w.Workload("double", v1alpha1.WorkloadTypeInstance, world.ConfigMap("double")))
	w.Must(err)
	w.CreateObject(d.Objects[0])
	again, err := w.Upstream.RegisterResource(w.Ctx, d, d.Objects[0])
	w.Must(err)
	d.Resources = append(d.Resources, again)
	d.Name = fmt.Sprintf("workload-instance-%d", d.InstanceID)
	w.declareAsThreeport(d)
	return d
}

// replaceCRD makes the CRD that of Threeport, as its installer does.
func (w *agentWorld) replaceCRD() {
	w.Helper()
	crd := w.manifestFile("testdata", "threeport", "crd.yaml")[0]
	resource, err := w.Upstream.Resource(crd)
	w.Must(err)
	w.Eventually("the replacement of the CRD", func() error { // The API server updates its status, so there may be a conflict.
		crd.SetResourceVersion(w.Get(crd).GetResourceVersion())
		_, err := resource.Update(w.Ctx, crd, metav1.UpdateOptions{})
		return err
	})
	w.awaitStatusResource(false)
}

// applyCRD makes the CRD that of this agent, as kubectl apply --server-side --force-conflicts does. It also works in a cleanup.
func (w *agentWorld) applyCRD() {
	w.Helper()
	crd := w.manifestFile(root, "config", "crd", "bases", "control-plane.threeport.io_threeportworkloads.yaml")[0]
	resource, err := w.Upstream.Resource(crd)
	w.Must(err)
	_, err = resource.Apply(context.WithoutCancel(w.Ctx), crd.GetName(), crd, metav1.ApplyOptions{FieldManager: "kubectl", Force: true})
	w.Must(err)
	w.awaitStatusResource(true)
}

// awaitStatusResource waits until the API server serves the present CRD. Threeport's has no resource for the status.
func (w *agentWorld) awaitStatusResource(want bool) {
	w.Helper()
	w.Eventually("the API server to serve the changed CRD", func() error {
		list, err := w.Client.Discovery().ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
		if err != nil {
			return err
		}
		if got := slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "threeportworkloads/status" }); got != want {
			return fmt.Errorf("the subresource status is served: %t, want %t", got, want)
		}
		return nil
	})
}

// manifestFile returns the objects of a file.
func (w *agentWorld) manifestFile(path ...string) []*unstructured.Unstructured {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	w.Must(err)
	return w.Objects(string(text))
}

// flagsOfThreeportsAgent returns the flags in the Deployment of Threeport's agent. The port of the metrics may be in use on the machine
// of the test, so the world sets another one.
func (w *agentWorld) flagsOfThreeportsAgent() (flags []string) {
	w.Helper()
	for _, obj := range w.manifestFile("testdata", "threeport", "agent.yaml") {
		containers, _, err := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
		w.Must(err)
		for _, c := range containers {
			container, _ := c.(map[string]any)
			if container["name"] != "manager" {
				continue
			}
			flags, _, err = unstructured.NestedStringSlice(container, "args")
			w.Must(err)
		}
	}
	const metrics = "--metrics-bind-address=127.0.0.1:8080"
	if !slices.Contains(flags, metrics) || !slices.Contains(flags, "--leader-elect") {
		w.Fatalf("the flags of Threeport's agent are %q", flags)
	}
	return slices.DeleteFunc(flags, func(flag string) bool { return flag == metrics })
}

// permitLeases gives the agent's user the Role for its Leases in the namespace of the test.
func (w *agentWorld) permitLeases() {
	w.Helper()
	role := w.manifestFile(root, "config", "rbac", "leader_election_role.yaml")[0]
	binding := w.manifestFile(root, "config", "rbac", "leader_election_role_binding.yaml")[0]
	binding.Object["subjects"] = []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "agent"}}
	for _, obj := range []*unstructured.Unstructured{role, binding} {
		obj.SetNamespace(w.Namespace)
		w.CreateObject(obj)
	}
}

// eventRows are the rows of Events at one time.
type eventRows struct {
	count map[string]int // by the UID of the Event
	sent  int            // the number of the agent's writes of Events
}

func (w *agentWorld) eventRows() eventRows {
	w.Helper()
	rows := eventRows{count: map[string]int{}, sent: len(w.proxy.Requested("/v0/" + upstream.WorkloadEvents))}
	for _, row := range w.allEvents() {
		rows.count[*row.RuntimeEventUID]++
	}
	return rows
}

// expectRows expects that each Event has as many rows as before the agent started, and that a new one has one row. The agent must not
// have posted an Event that had a row, even if the control plane refused it.
func (w *agentWorld) expectRows(before eventRows) {
	w.Helper()
	now := w.eventRows()
	for uid, n := range now.count {
		if want := max(before.count[uid], 1); n != want {
			w.Errorf("Event %s has %d rows, want %d", uid, n, want)
		}
	}
	for uid, n := range before.count {
		if now.count[uid] == 0 {
			w.Errorf("Event %s had %d rows and has none", uid, n)
		}
	}
	for _, write := range w.proxy.Requested("/v0/" + upstream.WorkloadEvents)[before.sent:] {
		if write.Method != http.MethodPost {
			continue
		}
		var row threeport.WorkloadEvent
		w.Must(json.Unmarshal(write.Body, &row))
		if before.count[*row.RuntimeEventUID] > 0 {
			w.Errorf("the agent posted Event %s (%s), which had a row", *row.RuntimeEventUID, *row.Reason)
		}
	}
}

// expectTimes expects that the agent corrected the times of rows without one. It updates the first row of each Event.
func (w *agentWorld) expectTimes() {
	w.Helper()
	seen := map[string]bool{}
	for _, row := range w.allEvents() { // in the order of their IDs
		if uid := *row.RuntimeEventUID; !seen[uid] && row.Timestamp.Year() < 2000 {
			w.Errorf("the first row of Event %s (%s: %s) has the time %s", uid, *row.Reason, *row.Message, row.Timestamp)
		}
		seen[*row.RuntimeEventUID] = true
	}
}

// expectReported expects that workloads are Healthy in the control plane and in the cluster, and have one finalizer.
func (w *agentWorld) expectReported(workloads ...upstream.Deployed) {
	w.Helper()
	for _, d := range workloads {
		w.ExpectCondition(d, v1alpha1.ConditionHealthy, metav1.ConditionTrue, "")
		w.ExpectCondition(d, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
		if d.Type == v1alpha1.WorkloadTypeHelmInstance {
			w.ExpectHelmStatus(d, "Healthy")
		} else {
			w.ExpectStatus(d, "Healthy")
		}
		w.expectOneFinalizer(d)
	}
}

func (w *agentWorld) expectOneFinalizer(d upstream.Deployed) {
	w.Helper()
	if got := w.Get(world.CustomResource(d)).GetFinalizers(); !slices.Equal(got, []string{threeportsFinalizer}) {
		w.Errorf("the finalizers of %s are %q, want only %s", d.Name, got, threeportsFinalizer)
	}
}

// expectChanges scales the Deployment of a workload and changes its ConfigMap. It expects new rows of Events, and the operations.
func (w *agentWorld) expectChanges(d upstream.Deployed) {
	w.Helper()
	before := w.eventRows()
	w.patch(d.Objects[0], `{"spec":{"replicas":3}}`)
	w.patch(d.Objects[1], `{"data":{"key":"changed"}}`)
	w.awaitReplicas(d.Objects[0], 3)
	w.Eventually("rows of the Events of the new Pod", func() error {
		for _, row := range w.allEvents() {
			if before.count[*row.RuntimeEventUID] == 0 && *row.Reason == "Started" {
				return nil
			}
		}
		return errors.New("no new row has the reason Started")
	})
	w.expectOperations(d, threeport.OperationModified, threeport.OperationModified)
	w.awaitSilence()
}

// expectOperations expects the last operation of each listed resource. The definition is the present object, if it exists.
func (w *agentWorld) expectOperations(d upstream.Deployed, operations ...string) {
	w.Helper()
	for i, operation := range operations {
		w.ExpectOperation(d, i, operation)
		if operation == threeport.OperationDeleted {
			continue
		}
		w.Eventually("the definition of "+d.Resources[i].Name, func() error {
			rows, err := w.Upstream.API.Resources(w.Ctx, nil)
			if err != nil {
				return err
			}
			want := w.Get(d.Objects[i]).GetResourceVersion()
			for _, row := range rows {
				var definition metav1.PartialObjectMetadata
				if *row.ID != d.Resources[i].ThreeportID {
					continue
				}
				if err := json.Unmarshal(row.RuntimeDefinition, &definition); err != nil || definition.ResourceVersion == want {
					return err
				}
				return fmt.Errorf("the row has version %s, want %s", definition.ResourceVersion, want)
			}
			return errors.New("the row does not exist")
		})
	}
}

// expectNoTrace expects that this agent left nothing in a ThreeportWorkload, except the common finalizer.
func (w *agentWorld) expectNoTrace(d upstream.Deployed) {
	w.Helper()
	w.Eventually("the old CRD to drop the status of "+d.Name, func() error {
		workload := w.Get(world.CustomResource(d))
		if status, _, _ := unstructured.NestedMap(workload.Object, "status"); len(status) > 0 {
			return fmt.Errorf("the status has %d fields", len(status))
		}
		return nil
	})
	if got := w.Get(world.CustomResource(d)).GetAnnotations(); len(got) > 0 {
		w.Errorf("the annotations of %s are %v, want none", d.Name, got)
	}
	w.expectOneFinalizer(d)
}
