package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// etcd takes no more by default.
const etcdLimit = 1_572_864

// hostile is what a custom resource may put into its texts: not UTF-8, and characters that take six bytes in JSON.
var hostile = strings.Repeat("ü€😀\xff<&\x00\u2028", 20_000)

// sightsOf are of the resources that a workload lists, with the given health.
func sightsOf(wl *v1alpha1.ThreeportWorkload, health, text string) []target.ResourceStatus {
	var out []target.ResourceStatus
	for _, r := range workloadOf(wl).Resources {
		out = append(out, target.ResourceStatus{
			Resource: r, State: target.Present, Health: health, Reason: text, Message: text, Cause: text,
			Pods: target.Count{Total: 500, Healthy: 499},
		})
	}
	return out
}

func operationsOf(wl *v1alpha1.ThreeportWorkload) map[target.Resource]Operation {
	out := map[target.Resource]Operation{}
	for _, r := range workloadOf(wl).Resources {
		out[target.Resource{Ref: r.Ref, ID: r.ID}] = Operation{Name: "MODIFIED", ResourceVersion: "1234567890"}
	}
	return out
}

// named is a name of a length, with a number at its end.
func named(length, n int) string {
	number := fmt.Sprint(n)
	return strings.Repeat("n", max(length-len(number), 0)) + number
}

// The API server stores the status of every workload that it stores the spec of.
func TestAStatusFitsWhateverIsInIt(t *testing.T) {
	for i, c := range []struct {
		reason         string
		resources      int
		length         int // of the names
		health, text   string
		listed, counts int // at least, and with their versions
	}{
		{"1,000 that are well", 1000, 40, "Healthy", "", 1000, 1000},
		{"1,000 with anything for texts", 1000, 40, "Down", hostile, 1000, 1000},
		{"2,000 that are well", 2000, 30, "Healthy", "", 2000, 1500},
		{"2,000 with anything for texts", 2000, 40, "Down", hostile, 1900, 0},
		{"as many with the longest names as can be listed", 1150, 253, "Down", hostile, 50, 0},
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
			w.watcher.set(func(f *fakeWatcher) {
				f.sights, f.troubles = sightsOf(wl, c.health, c.text), []string{c.text, c.text, c.text}
			})
			progress := Progress{Pending: 1, LastError: c.text, Rejected: 20, Dropped: 9, Operations: operationsOf(wl)}
			for range 10 {
				progress.Rejections = append(progress.Rejections, v1alpha1.Rejection{Report: c.text, Reason: c.text, Time: metav1.Now()})
			}
			w.delivery.set(progress)
			w.reconcile(wl.Name)
			stored := w.stored(wl.Name)
			s := stored.Status
			t.Logf("the workload takes %d bytes, its status %d; %d resources are listed and %d omitted",
				size(stored), size(s), len(s.Resources), s.ResourcesOmitted)
			if got := size(stored); got > mostStored+10_000 && size(s) > leastStatus || got > etcdLimit*9/10 {
				t.Errorf("it takes %d bytes", got)
			}
			versions := 0
			for _, r := range s.Resources {
				if r.ReportedResourceVersion != "" {
					versions++
				}
			}
			if len(s.Resources) < c.listed || versions < c.counts || len(s.Resources)+int(s.ResourcesOmitted) != c.resources {
				t.Errorf("listed are %d, %d with versions, %d omitted; expected %d and %d of %d",
					len(s.Resources), versions, s.ResourcesOmitted, c.listed, c.counts, c.resources)
			}
			if want := fmt.Sprintf("/%d", c.resources); !strings.HasSuffix(s.Ready, want) || s.ResourceCount.Total != int32(c.resources) {
				t.Errorf("ready are %s, %+v", s.Ready, s.ResourceCount)
			}
		})
	}
}

func TestWhatIsGivenUpFirst(t *testing.T) {
	wl := workload("order")
	for n := range 2000 {
		wl.Spec.WorkloadResourceInstances = append(wl.Spec.WorkloadResourceInstances, v1alpha1.WorkloadResourceInstance{
			Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: named(200, n), ThreeportID: int64(n + 1),
		})
	}
	sights := sightsOf(wl, "Healthy", "")
	for i := range sights {
		if i%10 == 0 {
			sights[i].Health, sights[i].Cause = "Down", strings.Repeat("why ", 100)
		}
	}
	status := v1alpha1.ThreeportWorkloadStatus{Resources: resourceStatuses(sights, operationsOf(wl), nil)}
	before := size(status)
	fit(&status, wl)
	budget := mostStored - size(v1alpha1.ThreeportWorkload{Spec: wl.Spec})
	if got := size(status); before <= budget || got > budget || got < budget/2 {
		t.Errorf("%d bytes became %d, expected %d at most, and not much less", before, got, budget)
	}
	down := 0
	for _, r := range status.Resources {
		if r.Health == "Down" {
			down++
		}
	}
	if down != 200 || status.ResourcesOmitted == 0 || len(status.Resources)+int(status.ResourcesOmitted) != 2000 {
		t.Errorf("%d resources are Down, %d are omitted, %d are left; expected all 200 that are Down", down, status.ResourcesOmitted, len(status.Resources))
	}
	small := v1alpha1.ThreeportWorkloadStatus{Resources: resourceStatuses(sights[:20], operationsOf(wl), nil)}
	same := small.DeepCopy()
	fit(&small, wl)
	if weigh(small, *same) != none {
		t.Error("a small status was changed")
	}
}

// Without resources every status is small, so that one can be written whatever the spec is.
func TestAStatusWithoutResourcesIsSmall(t *testing.T) {
	w := newWorld(t)
	w.verdict(hostile, hostile, hostile)
	w.watcher.set(func(f *fakeWatcher) { f.troubles = []string{hostile, hostile}; f.sights = []target.ResourceStatus{} })
	w.delivery.lost = fmt.Errorf("%s", hostile)
	wl := workload("small")
	wl.Annotations = map[string]string{v1alpha1.AnnotationRetryRejected: hostile}
	progress := Progress{Pending: 1, LastError: hostile, Since: w.clock.Add(-time.Hour), Rejected: 20, Dropped: 9}
	for range 10 {
		progress.Rejections = append(progress.Rejections, v1alpha1.Rejection{Report: hostile, Reason: hostile})
	}
	if got := size(w.reconciler.status(wl, progress, w.reconciler.verdict(wl.Name))); got > leastStatus/2 {
		t.Errorf("it takes %d bytes, expected %d at most", got, leastStatus/2)
	}
}

func BenchmarkStatusOf2000Resources(b *testing.B) {
	wl := workload("bench")
	for n := range 2000 {
		wl.Spec.WorkloadResourceInstances = append(wl.Spec.WorkloadResourceInstances, v1alpha1.WorkloadResourceInstance{
			Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: named(40, n), ThreeportID: int64(n + 1),
		})
	}
	r := New(nil, target.NewRegistry(), &fakeDelivery{})
	r.Watch(&fakeWatcher{health: "Healthy", sights: sightsOf(wl, "Healthy", "")})
	progress := Progress{Operations: operationsOf(wl)}
	for b.Loop() {
		status := r.status(wl, progress, verdict{status: "Healthy"})
		weigh(status, wl.Status)
	}
}
