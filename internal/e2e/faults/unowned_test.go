package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/e2e/process"
)

const (
	unownedEvents = 40_000
	longMessage   = 60 << 10  // bytes, of every 20th Event: 117 MiB in all
	unownedMemory = 160 << 20 // bytes; 251 MiB were measured with whole messages in the cache, and 120 to 132 MiB without
)

// Somebody writes Events about Pods that do not exist. The agent has the shipped GOMEMLIMIT, and still reports an Event about a
// workload afterwards.
func TestEvents_Unowned_FitMemoryLimit(t *testing.T) {
	w := newWorldToMeasure(t)
	objects := w.deployWeb()
	w.awaitAgreement()

	begin := time.Now()
	n := w.flood(floodPatience, unownedEvents, func(i int) *corev1.Event {
		pod := &unstructured.Unstructured{}
		pod.SetAPIVersion("v1")
		pod.SetKind("Pod")
		pod.SetNamespace(w.Namespace)
		pod.SetName(fmt.Sprintf("ghost-66c6ccd947-%08d", i))
		pod.SetUID(types.UID(fmt.Sprintf("5c4d3e2f-4e5f-6a7b-8c9d-%012d", i)))
		ev := newEvent(pod, fmt.Sprintf("%s.%016x", pod.GetName(), i), corev1.EventTypeWarning, begin)
		if i%20 == 0 {
			ev.Message = strings.Repeat("x", longMessage)
		}
		return ev
	})
	w.createEvent(objects[0], "after-the-burst")
	w.awaitAgreement()
	peak, err := process.PeakResidentBytes(w.agent.PID())
	w.Must(err)
	t.Logf("the agent took up to %d MiB for %d Events that were written in %s", peak>>20, n, time.Since(begin).Round(time.Second))
	if n < unownedEvents {
		t.Errorf("%d Events were written, want %d", n, unownedEvents)
	}
	if peak > unownedMemory {
		t.Errorf("the agent took %d MiB, want at most %d", peak>>20, unownedMemory>>20)
	}
}
