package faults

import (
	"fmt"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/process"
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
	var resources []string
	for i := range largeObjects {
		name := fmt.Sprint("large-", i)
		large := w.Object(world.ConfigMap(name))
		large.Object["data"] = map[string]any{"key": strings.Repeat("x", largeData)}
		w.CreateObject(large)
		resources = append(resources, fmt.Sprintf("{version: v1, kind: ConfigMap, namespace: %s, name: %s, threeportID: %d}", w.Namespace, name, i+1))
	}
	w.Create(fmt.Sprintf("{apiVersion: %s, kind: ThreeportWorkload, metadata: {name: %s}, spec: {workloadType: WorkloadInstance, workloadInstanceId: 1, workloadResourceInstances: [%s]}}",
		v1alpha1.GroupVersion, w.Namespace, strings.Join(resources, ", ")))
	w.Eventually("all objects are to be reported", func() error {
		pending, err := w.agent.Metric(w.Ctx, `threeport_agent_reports_pending`)
		if err == nil && pending < largeObjects {
			err = fmt.Errorf("%v reports are pending", pending)
		}
		return err
	})
	peak, err := process.PeakResidentBytes(w.agent.PID())
	w.Must(err)
	t.Logf("the agent took up to %d MiB for %d objects of %d KiB", peak>>20, largeObjects, largeData>>10)
	if peak > largeMemory {
		t.Errorf("the agent took %d MiB, want at most %d", peak>>20, largeMemory>>20)
	}
}
