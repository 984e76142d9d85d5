package faults

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	longLists  = 30
	listLength = 2000      // the longest list that the CRD accepts
	listMemory = 235 << 20 // bytes
)

// A user who may create ThreeportWorkloads creates many with the longest lists. The agent has the shipped GOMEMLIMIT.
func TestLists_ManyLong_FitMemoryLimit(t *testing.T) {
	w := newWorldToMeasure(t)
	var created []*unstructured.Unstructured
	for i := range longLists {
		wl := w.Object(fmt.Sprintf("{apiVersion: control-plane.threeport.io/v1alpha1, kind: ThreeportWorkload, metadata: {name: long-%d}}", i))
		resources := make([]any, listLength)
		for j := range resources {
			resources[j] = map[string]any{
				"version": "v1", "kind": "ConfigMap", "namespace": w.Namespace, "name": fmt.Sprintf("%d-%d-%s", i, j, strings.Repeat("x", 230)),
			}
		}
		wl.Object["spec"] = map[string]any{
			"workloadType": "WorkloadInstance", "workloadInstanceId": int64(i + 1), "workloadResourceInstances": resources,
		}
		created = append(created, w.CreateObject(wl))
	}
	for _, wl := range created {
		w.Eventually(wl.GetName()+" has conditions", func() error {
			if conditions, _, err := unstructured.NestedSlice(w.Get(wl).Object, "status", "conditions"); err != nil || len(conditions) > 0 {
				return err
			}
			return errors.New("there are none")
		})
	}
	if excluded, err := w.agent.Metric(w.Ctx, "threeport_agent_excluded_workloads"); err != nil || excluded == 0 || excluded == longLists {
		t.Errorf("%v ThreeportWorkloads are not watched, want some: %v", excluded, err)
	}
	w.expectPeakMemory(listMemory)
}
