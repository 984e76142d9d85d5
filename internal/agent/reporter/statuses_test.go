package reporter

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/agent/assess"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// emptyCluster has listed all kinds, and has no object.
type emptyCluster struct{}

func (emptyCluster) ResourceStatus(r target.Resource) target.ResourceStatus {
	return target.ResourceStatus{Resource: r, State: target.Absent}
}
func (emptyCluster) Follows(schema.GroupKind) bool   { return true }
func (emptyCluster) Complete([]target.Workload) bool { return true }

// The reports of an instance are withdrawn when its last workload is gone, also if that was never reconciled before.
func TestStatusReporter_InstanceOfTwoWorkloads_WithdrawnWithTheLast(t *testing.T) {
	targets, sink, none := target.NewRegistry(), &recorder{}, newTransitions()
	queues := newQueues(time.Hour)
	defer queues.shutDown()
	r := &statusReporter{
		targets: targets, cluster: emptyCluster{}, sink: sink, transitions: none, queues: queues,
		assessor: assess.New(assess.Config{StatusInterval: time.Second, Now: time.Now}, targets, emptyCluster{}, none,
			assess.NewMetrics(prometheus.NewRegistry()), logr.Discard()),
		changed: func(string) {}, instances: map[string]target.Instance{},
	}
	instance := target.Instance{Type: target.WorkloadInstance, ID: 1}
	status, tree := observe.Status{Workload: instance}.Key(), observe.Tree{Workload: instance}.Key()
	reconcile := func(workload string, withdrawn bool) {
		t.Helper()
		if err := r.reconcile(t.Context(), workload); err != nil {
			t.Fatal(err)
		}
		for _, key := range []observe.Key{status, tree} {
			if sink.isCancelled(key) != withdrawn || sink.forgotten(key) != withdrawn {
				t.Errorf("%s is cancelled: %t, forgotten: %t; want %t", key, sink.isCancelled(key), sink.forgotten(key), withdrawn)
			}
		}
	}
	for _, name := range []string{"first", "second"} {
		targets.Track(target.Workload{Name: name, Instance: instance})
	}
	reconcile("first", false)
	if sink.versions[status] == "" || sink.versions[tree] == "" {
		t.Errorf("offered are %v, want a status and a tree", sink.versions)
	}
	targets.Forget("first")
	reconcile("first", false)
	targets.Forget("second")
	reconcile("second", true)
	for what, n := range r.assessor.Sizes() {
		if n > 0 {
			t.Errorf("%d %s are left", n, what)
		}
	}
	if len(r.instances) > 0 {
		t.Errorf("instances of %v are left", r.instances)
	}
}
