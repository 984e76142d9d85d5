package faults

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/threeport/threeport-agent/internal/e2e/world"
)

const (
	largeObjects = 100
	largeData    = 900 << 10 // bytes, of each: 88 MiB in all
	largeMemory  = 130 << 20 // bytes
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
	w.declareConfigMaps(objects)
	w.Eventually("all objects are to be reported", func() error {
		pending, err := w.agent.Metric(w.Ctx, `threeport_agent_reports_pending`)
		if err == nil && pending < largeObjects {
			err = fmt.Errorf("%v reports are pending", pending)
		}
		return err
	})
	t.Logf("the workload lists %d objects of %d KiB", largeObjects, largeData>>10)
	w.expectPeakMemory(largeMemory)
}
