package controller

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// etcdLimit is the default size limit of a request.
const etcdLimit = 1_572_864

// arbitraryText is a possible text of a custom resource: invalid UTF-8, and characters that take six bytes in JSON.
var arbitraryText = strings.Repeat("ü€😀\xff<&\x00\u2028", 20_000)

// observedStatuses returns a status with the given health for each resource of a workload.
func observedStatuses(wl *v1alpha1.ThreeportWorkload, health, text string) []target.ResourceStatus {
	var out []target.ResourceStatus
	for _, r := range workloadOf(wl, wl.Spec.WorkloadResourceInstances).Resources {
		out = append(out, target.ResourceStatus{
			Resource: r, State: target.Present, Health: health, Reason: text, Message: text, Cause: text,
			Pods: target.Count{Total: 500, Healthy: 499},
		})
	}
	return out
}

func operationsOf(wl *v1alpha1.ThreeportWorkload) map[target.Resource]target.LastOperation {
	out := map[target.Resource]target.LastOperation{}
	for _, r := range workloadOf(wl, wl.Spec.WorkloadResourceInstances).Resources {
		out[target.Resource{Ref: r.Ref, ID: r.ID}] = target.LastOperation{Modified: true, ResourceVersion: "1234567890"}
	}
	return out
}

// named returns a name of a length that ends in a number.
func named(length, n int) string {
	number := fmt.Sprint(n)
	return strings.Repeat("n", max(length-len(number), 0)) + number
}

// The API server must accept the status of every spec that it accepts.
func TestReconcile_LargeWorkload_StatusIsStored(t *testing.T) {
	for i, c := range []struct {
		reason       string
		resources    int
		length       int // of the names
		health, text string
		minListed    int
		minVersions  int // with reported versions
	}{
		{reason: "1,000 Healthy resources", resources: 1000, length: 40, health: "Healthy", minListed: 1000, minVersions: 1000},
		{
			reason:      "1,000 resources with arbitrary texts",
			resources:   1000,
			length:      40,
			health:      "Down",
			text:        arbitraryText,
			minListed:   1000,
			minVersions: 1000,
		},
		{reason: "2,000 Healthy resources", resources: 2000, length: 30, health: "Healthy", minListed: 2000, minVersions: 1500},
		{
			reason:    "2,000 resources with arbitrary texts",
			resources: 2000,
			length:    40,
			health:    "Down",
			text:      arbitraryText,
			minListed: 1900,
		},
		{
			reason:    "as many resources with the longest names as a spec can list",
			resources: 1150,
			length:    253,
			health:    "Down",
			text:      arbitraryText,
			minListed: 50,
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			w := newWorld(t)
			var names []string
			for n := range c.resources {
				names = append(names, named(c.length, n))
			}
			wl := workload(fmt.Sprintf("fits-%d", i), names...)
			if c.length == 253 {
				for i := range wl.Spec.WorkloadResourceInstances {
					r := &wl.Spec.WorkloadResourceInstances[i]
					r.Namespace, r.Group = strings.Repeat("s", 63), strings.Repeat("g", 100)
				}
			}
			w.create(wl)
			w.verdict("Down", c.text, c.text)
			w.reporter.set(func(f *fakeReporter) {
				f.statuses, f.baseKindErrors = observedStatuses(wl, c.health, c.text), []string{c.text, c.text, c.text}
			})
			progress := target.DeliveryProgress{Pending: 1, LastError: c.text, Rejected: 20, Dropped: 9, Operations: operationsOf(wl)}
			for range 10 {
				progress.Rejections = append(progress.Rejections, target.Rejection{Report: c.text, Reason: c.text, Time: time.Now()})
			}
			w.delivery.set(progress)
			w.reconcile(wl.Name)
			stored := w.stored(wl.Name)
			s := stored.Status
			t.Logf("the workload takes %d bytes, its status %d; %d resources are listed and %d omitted",
				jsonBytes(stored), jsonBytes(s), len(s.Resources), s.ResourcesOmitted)
			if got := jsonBytes(stored); got > maxObjectBytes+10_000 && jsonBytes(s) > minStatusBytes || got > etcdLimit*9/10 {
				t.Errorf("the workload takes %d bytes", got)
			}
			versions := 0
			for _, r := range s.Resources {
				if r.ReportedResourceVersion != "" {
					versions++
				}
			}
			if len(s.Resources) < c.minListed || versions < c.minVersions || len(s.Resources)+int(s.ResourcesOmitted) != c.resources {
				t.Errorf("%d resources are listed, %d with versions, %d omitted; want at least %d and %d of %d",
					len(s.Resources), versions, s.ResourcesOmitted, c.minListed, c.minVersions, c.resources)
			}
			if want := fmt.Sprintf("/%d", c.resources); !strings.HasSuffix(s.Ready, want) || s.ResourceCount.Total != int32(c.resources) {
				t.Errorf("ready is %s, the count is %+v; want %d resources", s.Ready, s.ResourceCount, c.resources)
			}
		})
	}
}

func TestTruncateToSize_KeepsUnhealthyResources(t *testing.T) {
	wl := workload("order")
	for n := range 2000 {
		wl.Spec.WorkloadResourceInstances = append(wl.Spec.WorkloadResourceInstances, v1alpha1.WorkloadResourceInstance{
			Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: named(200, n), ThreeportID: int64(n + 1),
		})
	}
	statuses := observedStatuses(wl, "Healthy", "")
	for i := range statuses {
		if i%10 == 0 {
			statuses[i].Health, statuses[i].Cause = "Down", strings.Repeat("why ", 100)
		}
	}
	status := v1alpha1.ThreeportWorkloadStatus{Resources: resourceStatuses(statuses, operationsOf(wl), nil)}
	before := jsonBytes(status)
	truncateToSize(&status, jsonBytes(wl))
	budget := maxObjectBytes - jsonBytes(v1alpha1.ThreeportWorkload{Spec: wl.Spec})
	if got := jsonBytes(status); before <= budget || got > budget || got < budget/2 {
		t.Errorf("%d bytes became %d, want at most %d and not much less", before, got, budget)
	}
	down := 0
	for _, r := range status.Resources {
		if r.Health == "Down" {
			down++
		}
	}
	if down != 200 || status.ResourcesOmitted == 0 || len(status.Resources)+int(status.ResourcesOmitted) != 2000 {
		t.Errorf("%d resources are Down, %d are omitted, %d remain; want all 200 that are Down", down, status.ResourcesOmitted, len(status.Resources))
	}
	small := v1alpha1.ThreeportWorkloadStatus{Resources: resourceStatuses(statuses[:20], operationsOf(wl), nil)}
	same := small.DeepCopy()
	truncateToSize(&small, jsonBytes(wl))
	if urgencyOf(small, *same) != unchanged {
		t.Error("a small status was changed")
	}
}

// A status without resources always fits, whatever the spec is.
func TestStatus_WithoutResources_IsSmall(t *testing.T) {
	w := newWorld(t)
	w.verdict(arbitraryText, arbitraryText, arbitraryText)
	w.reporter.set(func(f *fakeReporter) {
		f.baseKindErrors = []string{arbitraryText, arbitraryText}
		f.statuses = []target.ResourceStatus{}
	})
	w.delivery.durableErr = fmt.Errorf("%s", arbitraryText)
	wl := workload("small")
	wl.Annotations = map[string]string{v1alpha1.AnnotationRetryRejected: arbitraryText}
	progress := target.DeliveryProgress{Pending: 1, LastError: arbitraryText, Since: w.clock.Add(-time.Hour), Rejected: 20, Dropped: 9}
	for range 10 {
		progress.Rejections = append(progress.Rejections, target.Rejection{Report: arbitraryText, Reason: arbitraryText})
	}
	if got := jsonBytes(w.reconciler.status(wl, progress, w.reconciler.verdict(wl.Name))); got > minStatusBytes/2 {
		t.Errorf("the status takes %d bytes, want at most %d", got, minStatusBytes/2)
	}
}

func BenchmarkStatusOf2000Resources(b *testing.B) {
	wl := workload("bench")
	for n := range 2000 {
		wl.Spec.WorkloadResourceInstances = append(wl.Spec.WorkloadResourceInstances, v1alpha1.WorkloadResourceInstance{
			Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: named(40, n), ThreeportID: int64(n + 1),
		})
	}
	r := New(nil, nil, NewResourceLists(math.MaxInt64), target.NewRegistry(), &fakeDelivery{}, &fakeDelivery{})
	r.SetReporter(&fakeReporter{health: "Healthy", statuses: observedStatuses(wl, "Healthy", "")})
	progress := target.DeliveryProgress{Operations: operationsOf(wl)}
	for b.Loop() {
		status := r.status(wl, progress, verdict{status: "Healthy"})
		urgencyOf(status, wl.Status)
	}
}
