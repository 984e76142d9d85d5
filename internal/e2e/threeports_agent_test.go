package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// Names of Threeport's own. They are not constants of this agent, because they must not change with these.
const (
	threeportsFinalizer = "control-plane.threeport.io/threeport-workload-finalizer"
	threeportsLabel     = "control-plane.threeport.io/workload-instance"
	threeportsHelmLabel = "control-plane.threeport.io/helm-workload-instance"
)

// threeportsAgent makes the writes of Threeport's own agent: the finalizers of ThreeportWorkloads, and the rows of operations and
// Events. That agent keeps no record, so each run posts all Events again.
type threeportsAgent struct{ *agentWorld }

// run handles ThreeportWorkloads as the agent does at its start.
func (a threeportsAgent) run(workloads ...upstream.Deployed) {
	a.Helper()
	for _, d := range workloads {
		if deleted := a.reconcileFinalizer(d); deleted {
			continue
		}
		a.patchOperations(d)
		a.postEvents(d)
	}
}

// reconcileFinalizer adds the finalizer to a ThreeportWorkload, or removes it from a deleted one.
func (a threeportsAgent) reconcileFinalizer(d upstream.Deployed) (deleted bool) {
	a.Helper()
	resource, err := a.Upstream.Resource(world.CustomResource(d))
	a.Must(err)
	a.Eventually("Threeport's agent to update "+d.Name, func() error { // The first try may be a conflict.
		workload, err := resource.Get(a.Ctx, d.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		deleted = workload.GetDeletionTimestamp() != nil
		// Its Go type has no fields of the status.
		update := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": workload.GetAPIVersion(), "kind": workload.GetKind(), "metadata": workload.Object["metadata"],
			"spec": workload.Object["spec"], "status": map[string]any{},
		}}
		update.SetFinalizers([]string{threeportsFinalizer})
		if deleted {
			update.SetFinalizers(nil)
		}
		_, err = resource.Update(a.Ctx, update, metav1.UpdateOptions{})
		return err
	})
	return deleted
}

// patchOperations writes the operation and the whole definition of each listed object. A Helm workload has no rows for them.
func (a threeportsAgent) patchOperations(d upstream.Deployed) {
	a.Helper()
	for i, listed := range d.Resources {
		if listed.ThreeportID == 0 {
			continue
		}
		body, err := json.Marshal(map[string]any{
			"LastOperation": threeport.OperationAdded, "RuntimeDefinition": a.Get(objectOf(listed)).Object,
		})
		a.Must(err)
		a.requestByOther(http.MethodPatch, world.RowPath(d, i), string(body))
	}
}

// objectOf returns an object with the name of a listed resource.
func objectOf(listed v1alpha1.WorkloadResourceInstance) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(listed.Version)
	if listed.Group != "" {
		obj.SetAPIVersion(listed.Group + "/" + listed.Version)
	}
	obj.SetKind(listed.Kind)
	obj.SetName(listed.Name)
	obj.SetNamespace(listed.Namespace)
	return obj
}

// postEvents creates a row for each Event about a listed object, or about a Pod or ReplicaSet with the label of the workload.
func (a threeportsAgent) postEvents(d upstream.Deployed) {
	a.Helper()
	rowOf := map[types.UID]int64{} // the resource instances of the objects; 0 for none
	for _, listed := range d.Resources {
		rowOf[a.Get(objectOf(listed)).GetUID()] = listed.ThreeportID
	}
	label, value := labelOf(d)
	labelled := metav1.ListOptions{LabelSelector: label + "=" + value}
	pods, err := a.Client.CoreV1().Pods(a.Namespace).List(a.Ctx, labelled)
	a.Must(err)
	for _, pod := range pods.Items {
		rowOf[pod.UID] = 0
	}
	sets, err := a.Client.AppsV1().ReplicaSets(a.Namespace).List(a.Ctx, labelled)
	a.Must(err)
	for _, set := range sets.Items {
		rowOf[set.UID] = 0
	}
	events, err := a.Client.CoreV1().Events(a.Namespace).List(a.Ctx, metav1.ListOptions{})
	a.Must(err)
	for _, event := range events.Items {
		if resource, ok := rowOf[event.InvolvedObject.UID]; ok {
			_, err := a.Upstream.API.Create(a.Ctx, upstream.WorkloadEvents, eventRow(d, resource, event))
			a.Must(err)
		}
	}
}

// eventRow returns the row of an Event. Its time is lastTimestamp, which Events of events.k8s.io do not have.
func eventRow(d upstream.Deployed, resource int64, event corev1.Event) map[string]any {
	row := map[string]any{
		"RuntimeEventUID": event.UID, "Type": event.Type, "Reason": event.Reason, "Message": event.Message,
		"Timestamp": event.LastTimestamp.UTC().Format(time.RFC3339),
	}
	if d.Type == v1alpha1.WorkloadTypeHelmInstance {
		row["HelmWorkloadInstanceID"] = d.InstanceID
		return row
	}
	row["WorkloadInstanceID"] = d.InstanceID
	if resource != 0 {
		row["WorkloadResourceInstanceID"] = resource
	}
	return row
}

// labelOf returns the label that Threeport adds to the objects of a workload.
func labelOf(d upstream.Deployed) (label, value string) {
	value = strconv.FormatInt(d.InstanceID, 10)
	if d.Type == v1alpha1.WorkloadTypeHelmInstance {
		return threeportsHelmLabel, value
	}
	return threeportsLabel, value
}

// deployAsThreeport deploys a workload as Threeport's controllers do: its objects and Pods have its label, and the name of the
// ThreeportWorkload has its ID.
func (w *agentWorld) deployAsThreeport(name string, typ v1alpha1.WorkloadType, manifests ...string) upstream.Deployed {
	w.Helper()
	d, err := w.Upstream.Register(w.Ctx, w.Workload(name, typ, manifests...))
	w.Must(err)
	label, value := labelOf(d)
	for _, obj := range d.Objects {
		obj.SetLabels(map[string]string{label: value})
		if obj.GetKind() == "Deployment" {
			w.Must(unstructured.SetNestedField(obj.Object, value, "spec", "template", "metadata", "labels", label))
		}
		w.CreateObject(obj)
	}
	d.Name = fmt.Sprintf("workload-instance-%d", d.InstanceID)
	if typ == v1alpha1.WorkloadTypeHelmInstance {
		d.Name = "helm-" + d.Name
	}
	w.declareAsThreeport(d)
	return d
}

// declareAsThreeport creates a ThreeportWorkload with all fields, as a client with the Go type of Threeport does.
func (w *agentWorld) declareAsThreeport(d upstream.Deployed) {
	w.Helper()
	listed := make([]any, 0, len(d.Resources))
	for _, r := range d.Resources {
		listed = append(listed, map[string]any{
			"group": r.Group, "version": r.Version, "kind": r.Kind, "name": r.Name, "namespace": r.Namespace, "threeportID": r.ThreeportID,
		})
	}
	obj := world.CustomResource(d)
	obj.Object["spec"] = map[string]any{
		"workloadType": string(d.Type), "workloadInstanceId": d.InstanceID, "workloadResourceInstances": listed,
	}
	obj.Object["status"] = map[string]any{}
	w.CreateObject(obj)
}
