package faults

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/threeport/threeport-agent/internal/e2e/world"
)

const (
	largeObjects   = 100
	largeData      = 900 << 10 // bytes, of each: 88 MiB in all
	largeMemory    = 130 << 20 // bytes
	selectorLabels = 18_000    // of each Service: a MiB of JSON
)

// A workload lists large ConfigMaps, and the control plane does not answer. The agent has the shipped GOMEMLIMIT, and keeps neither the
// objects nor their bodies in reports.
func TestObjects_Large_FitMemoryLimit(t *testing.T) {
	w := newWorldToMeasure(t)
	w.toAPI.down()
	var objects []*unstructured.Unstructured
	for i := range largeObjects {
		large := w.Object(world.ConfigMap(fmt.Sprint("large-", i)))
		large.Object["data"] = map[string]any{"key": strings.Repeat("x", largeData)}
		objects = append(objects, large)
	}
	w.expectFit(objects)
}

// The same with Services whose selectors are large.
func TestObjects_LargeSelectors_FitMemoryLimit(t *testing.T) {
	w := newWorldToMeasure(t)
	w.toAPI.down()
	selector := map[string]any{}
	for i := range selectorLabels {
		selector[fmt.Sprintf("example.org/a-label-with-a-name-%06d", i)] = "value"
	}
	var objects []*unstructured.Unstructured
	for i := range largeObjects {
		large := w.Object(fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: large-%d}, spec: {clusterIP: None}}", i))
		large.Object["spec"].(map[string]any)["selector"] = selector
		objects = append(objects, large)
	}
	w.expectFit(objects)
}

// expectFit declares a workload of large objects, and expects that the agent reports each of them without much memory.
func (w *faultWorld) expectFit(objects []*unstructured.Unstructured) {
	w.Helper()
	w.declareAll(objects)
	w.Eventually("all objects are to be reported", func() error {
		pending, err := w.agent.Metric(w.Ctx, `threeport_agent_reports_pending`)
		if err == nil && pending < largeObjects {
			err = fmt.Errorf("%v reports are pending", pending)
		}
		return err
	})
	w.expectPeakMemory(largeMemory)
}
