package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// Workload returns a workload of manifests. Its name begins with the test's namespace.
func (w *World) Workload(name string, typ v1alpha1.WorkloadType, manifests ...string) upstream.Workload {
	w.Helper()
	out := upstream.Workload{Name: w.Namespace + "-" + name, Type: typ}
	for _, manifest := range manifests {
		out.Objects = append(out.Objects, w.Objects(manifest)...)
	}
	return out
}

// Deploy deploys a WorkloadInstance of manifests.
func (w *World) Deploy(name string, manifests ...string) upstream.Deployed {
	w.Helper()
	d, err := w.Upstream.Deploy(w.Ctx, w.Workload(name, v1alpha1.WorkloadTypeInstance, manifests...))
	w.Must(err)
	return d
}

// CustomResource returns an object with the name of a workload's ThreeportWorkload.
func CustomResource(d upstream.Deployed) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ThreeportWorkload"))
	obj.SetName(d.Name)
	return obj
}

// ThreeportWorkload returns the stored ThreeportWorkload of a workload; with an error, an empty one.
func (w *World) ThreeportWorkload(d upstream.Deployed) (*v1alpha1.ThreeportWorkload, error) {
	out := &v1alpha1.ThreeportWorkload{}
	obj := CustomResource(d)
	resource, err := w.Upstream.Resource(obj)
	if err != nil {
		return out, err
	}
	if obj, err = resource.Get(w.Ctx, d.Name, metav1.GetOptions{}); err != nil {
		return out, err
	}
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, out)
}

// ExpectCondition waits until a condition of a ThreeportWorkload has a status and a message with a text. The condition must
// belong to the current generation.
func (w *World) ExpectCondition(d upstream.Deployed, condition string, want metav1.ConditionStatus, message string) {
	w.Helper()
	w.Eventually(fmt.Sprintf("condition %s=%s %q of %s", condition, want, message, d.Name), func() error {
		workload, err := w.ThreeportWorkload(d)
		if err != nil {
			return err
		}
		got := meta.FindStatusCondition(workload.Status.Conditions, condition)
		if got == nil || got.Status != want || got.ObservedGeneration != workload.Generation || !strings.Contains(got.Message, message) {
			return fmt.Errorf("the conditions of generation %d are %+v", workload.Generation, workload.Status.Conditions)
		}
		return nil
	})
}

// ExpectState waits until the status of a listed resource has a state and a message with a text.
func (w *World) ExpectState(d upstream.Deployed, resource int, want v1alpha1.ResourceState, message string) {
	w.Helper()
	listed := d.Resources[resource]
	w.Eventually(fmt.Sprintf("state %s %q of %s %s in the workload's status", want, message, listed.Kind, listed.Name), func() error {
		workload, err := w.ThreeportWorkload(d)
		if err != nil {
			return err
		}
		resources := workload.Status.Resources
		if len(resources) != len(d.Resources) {
			return fmt.Errorf("the status has %d resources", len(resources))
		}
		if got := resources[resource]; got.State != want || !strings.Contains(got.Message, message) {
			return fmt.Errorf("the state is %s: %s", got.State, got.Message)
		}
		return nil
	})
}

// ExpectStatus waits until the row of a WorkloadInstance has a status, such as "Healthy".
func (w *World) ExpectStatus(d upstream.Deployed, want string) {
	w.Helper()
	w.expectStatus(upstream.WorkloadInstances, d, want)
}

// ExpectHelmStatus waits until the row of a HelmWorkloadInstance has a status.
func (w *World) ExpectHelmStatus(d upstream.Deployed, want string) {
	w.Helper()
	w.expectStatus(upstream.HelmWorkloadInstances, d, want)
}

func (w *World) expectStatus(collection string, d upstream.Deployed, want string) {
	w.Helper()
	w.Eventually(fmt.Sprintf("status %s of %s in the control plane", want, d.Name), func() error {
		status, err := w.Upstream.API.Status(w.Ctx, collection, d.InstanceID)
		if err == nil && status != want {
			err = fmt.Errorf("the status is %q", status)
		}
		return err
	})
}

// ExpectOperation waits until the row of a listed resource has a last operation.
func (w *World) ExpectOperation(d upstream.Deployed, resource int, want string) {
	w.Helper()
	listed := d.Resources[resource]
	w.Eventually(fmt.Sprintf("operation %s of %s %s in the control plane", want, listed.Kind, listed.Name), func() error {
		rows, err := w.Upstream.API.Resources(w.Ctx, nil)
		last := ""
		for _, row := range rows {
			if row.ID != nil && *row.ID == listed.ThreeportID && row.LastOperation != nil {
				last = *row.LastOperation
			}
		}
		if err == nil && last != want {
			err = fmt.Errorf("the last operation is %q", last)
		}
		return err
	})
}

// AwaitAgreement waits until the rows of the control plane match the observations of the oracle. The control plane must not
// have other workloads.
func (w *World) AwaitAgreement(workloads ...oracle.Expected) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Ctx, Timeout)
	defer cancel()
	begin := time.Now()
	if err := w.Oracle.Await(ctx, w.Upstream.API, workloads); err != nil {
		w.Fatalf("after %s: %v", time.Since(begin).Round(time.Second), err)
	}
}

// AwaitOracle waits until the oracle has observed a version of an object, so that its checks expect that version.
func (w *World) AwaitOracle(obj *unstructured.Unstructured) {
	w.Helper()
	w.Eventually(fmt.Sprintf("the oracle to observe %s %s", obj.GetKind(), obj.GetName()), func() error {
		if !w.Oracle.Observed(obj.GetUID(), obj.GetResourceVersion()) {
			return errors.New("the oracle has not observed version " + obj.GetResourceVersion())
		}
		return nil
	})
}

// Expected returns what the oracle expects of deployed workloads.
func Expected(deployed ...upstream.Deployed) []oracle.Expected {
	var out []oracle.Expected
	for _, d := range deployed {
		out = append(out, oracle.Expected{Deployed: d})
	}
	return out
}

// RowPath returns the path of a listed resource's row.
func RowPath(d upstream.Deployed, resource int) string {
	return fmt.Sprintf("/v0/%s/%d", upstream.WorkloadResourceInstances, d.Resources[resource].ThreeportID)
}

// OperationOf returns the LastOperation in the body of a write.
func OperationOf(write oracle.Write) string {
	var body struct{ LastOperation string }
	if err := json.Unmarshal(write.Body, &body); err != nil {
		return err.Error()
	}
	return body.LastOperation
}
