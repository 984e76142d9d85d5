package faults

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

const (
	sharingWorkloads = 300
	sharedEvents     = 4000
	sharedMemory     = 250 << 20 // bytes; the shipped limit is 256 MiB, and 235 MiB were measured
)

// Before the agent starts, a user declares hundreds of registered instances that list the same object, which has thousands of Events. The
// agent has the shipped GOMEMLIMIT, and reports another workload meanwhile.
func TestWorkloads_ManyOnOneObject_FitMemoryLimit(t *testing.T) {
	w, launch := newIdleWorldToMeasure(t)
	objects := w.deployWeb()
	shared := w.Workload("shared", v1alpha1.WorkloadTypeInstance, world.ConfigMap("shared"))
	about := w.CreateObject(shared.Objects[0])
	for i := range sharingWorkloads {
		sharing := shared
		sharing.Name = fmt.Sprintf("%s-%d", shared.Name, i)
		d, err := w.Upstream.Register(w.Ctx, sharing)
		w.Must(err)
		w.Must(w.Upstream.Declare(w.Ctx, d))
	}
	begin := time.Now()
	n := w.flood(floodPatience, sharedEvents, func(i int) *corev1.Event {
		ev := newEvent(about, fmt.Sprintf("shared-%d", i), corev1.EventTypeNormal, begin)
		ev.Message = strings.Repeat("x", 900)
		return ev
	})
	ev := w.createEvent(objects[0], "of-web")
	begin = time.Now()
	launch()
	w.Eventually("the Event of the other workload to be reported", func() error {
		rows, err := w.Upstream.API.Events(w.Ctx, url.Values{"runtimeeventuid": {string(ev.UID)}})
		if err == nil && len(rows) != 1 {
			err = fmt.Errorf("it has %d rows", len(rows))
		}
		return err
	})
	t.Logf("beside %d workloads on one object with %d Events, another one was reported %s after the start", sharingWorkloads, n, time.Since(begin).Round(time.Second))
	w.EventuallyWithin(15*time.Minute, "all reports to be delivered", func() error {
		pending, err := w.agent.Metric(w.Ctx, "threeport_agent_reports_pending")
		if err == nil && pending > 0 {
			err = fmt.Errorf("%v are pending", pending)
		}
		return err
	})
	w.expectPeakMemory(sharedMemory)
}
