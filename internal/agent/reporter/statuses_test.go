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

// newIdleStatusReporter returns a reporter of statuses without a worker.
func newIdleStatusReporter(t *testing.T) *statusReporter {
	t.Helper()
	targets, none, queues := target.NewRegistry(), newTransitions(), newQueues(time.Hour, Tracing{})
	t.Cleanup(queues.shutDown)
	return &statusReporter{
		targets: targets, cluster: emptyCluster{}, sink: &recorder{}, transitions: none, queues: queues,
		assessor: assess.New(assess.Config{StatusInterval: time.Second, Now: time.Now}, targets, emptyCluster{}, none,
			assess.NewMetrics(prometheus.NewRegistry()), logr.Discard()),
		changed: func(string) {}, instances: map[string]target.Instance{},
	}
}

// An instance without workloads is not watched. Its last report says so, unless a workload declares it again.
func TestStatusReporter_EndWatch(t *testing.T) {
	instance := target.Instance{Type: target.WorkloadInstance, ID: 1}
	end := observe.NewWatchEnd(instance, "ThreeportWorkload shop was deleted", time.Unix(1, 0))
	for _, tt := range []struct {
		reason   string
		declares string // the instance again
		ends     bool
	}{
		{"the workload is deleted", "", true},
		{"it is created again", "shop", false},
		{"another one has the instance", "other", false},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			r := newIdleStatusReporter(t)
			r.targets.Track(target.Workload{Name: "shop", Instance: instance})
			for _, do := range []func(){
				func() {},
				func() {
					r.targets.Forget("shop")
					if tt.declares != "" {
						r.targets.Track(target.Workload{Name: tt.declares, Instance: instance})
					}
					r.endWatch("shop", end)
				},
			} {
				do()
				if err := r.reconcile(t.Context(), "shop"); err != nil {
					t.Fatal(err)
				}
			}
			sink := r.sink.(*recorder)
			if last := sink.offered[len(sink.offered)-1]; (last == observe.Report(end)) != tt.ends {
				t.Errorf("the last report is %+v; want the end of the watch: %t", last, tt.ends)
			}
			if left := r.ended.takeAll(); len(left) > 0 {
				t.Errorf("%v is still to be offered", left)
			}
		})
	}
}

// A status has the start of its cause as the ThreeportWorkload records it, and none if it records another cause.
func TestStatusReporter_RecordTransition_CauseSince(t *testing.T) {
	r := newIdleStatusReporter(t)
	shop := target.Workload{
		Name: "shop", Instance: target.Instance{Type: target.WorkloadInstance, ID: 1},
		Resources: []target.Resource{{ID: 1, Ref: target.Ref{Kind: "ConfigMap", Namespace: "shop", Name: "conf"}}},
	}
	r.targets.Track(shop)
	status := func() observe.Status {
		t.Helper()
		r.assessor.Note(shop.Name)
		s, known := r.assessor.Status(shop.Instance)
		if !known {
			t.Fatal("the workload has no verdict")
		}
		return s
	}
	current := status()
	if current.Reason == "" {
		t.Fatalf("the status %+v has no reason", current)
	}
	at := time.Unix(9, 0).UTC()
	change := target.HealthTransition{UID: "cr", To: current.Status, At: time.Unix(1, 0)}
	for _, tt := range []struct {
		name  string
		to    string
		cause target.Cause
		want  time.Time
	}{
		{"its cause", current.Status, target.Cause{Reason: current.Reason, Since: at}, at},
		{"another cause", current.Status, target.Cause{Reason: "Other", Since: at}, time.Time{}},
		{"its cause, with the status before", "Unhealthy", target.Cause{Reason: current.Reason, Since: at}, at},
	} {
		change.To, change.Cause = tt.to, tt.cause
		r.recordTransition(shop.Name, change)
		if got := status().CauseSince; !got.Equal(tt.want) {
			t.Errorf("%s is recorded: the status has the start %v of its cause, want %v", tt.name, got, tt.want)
		}
	}
}

// A recorded start of a cause is reported at once, and once.
func TestStatusReporter_RecordTransition_ReportsCause(t *testing.T) {
	r := newIdleStatusReporter(t)
	r.targets.Track(target.Workload{Name: "shop", Instance: target.Instance{Type: target.WorkloadInstance, ID: 1}})
	change := target.HealthTransition{UID: "cr", To: "Down", At: time.Unix(1, 0)}
	for _, reason := range []string{"Absent", "Absent", "Other"} {
		r.queues = newQueues(0, Tracing{})
		t.Cleanup(r.queues.shutDown)
		before := change.Cause.Reason
		change.Cause = target.Cause{Reason: reason, Since: time.Unix(9, 0)}
		r.recordTransition("shop", change)
		if queued := r.queues.statuses.Len() > 0; queued != (reason != before) {
			t.Errorf("after %q the cause %q is recorded; the status is queued: %t", before, reason, queued)
		}
	}
}

// The reports of an instance are withdrawn when its last workload is gone, also if that was never reconciled before.
func TestStatusReporter_InstanceOfTwoWorkloads_WithdrawnWithTheLast(t *testing.T) {
	r := newIdleStatusReporter(t)
	targets, sink := r.targets, r.sink.(*recorder)
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

// A workload moves to the instance that another one leaves. The reports of both former instances are withdrawn, also if the first workload
// is gone before it is reconciled.
func TestStatusReporter_WorkloadMovesToInstanceThatAnotherLeaves_WithdrawsBoth(t *testing.T) {
	instance := func(id int64) target.Instance { return target.Instance{Type: target.WorkloadInstance, ID: id} }
	for _, isDeleted := range []bool{false, true} {
		r := newIdleStatusReporter(t)
		sink := r.sink.(*recorder)
		reconcile := func(workload string) {
			t.Helper()
			if err := r.reconcile(t.Context(), workload); err != nil {
				t.Fatal(err)
			}
		}
		for id, name := range map[int64]string{1: "leaves", 2: "moves"} {
			r.targets.Track(target.Workload{Name: name, Instance: instance(id)})
			reconcile(name)
		}
		r.targets.Track(target.Workload{Name: "leaves", Instance: instance(3)})
		r.targets.Track(target.Workload{Name: "moves", Instance: instance(1)})
		reconcile("leaves")
		if isDeleted {
			r.targets.Forget("moves")
		}
		reconcile("moves")
		for id, want := range map[int64]bool{1: isDeleted, 2: true, 3: false} {
			for _, key := range []observe.Key{observe.Status{Workload: instance(id)}.Key(), observe.Tree{Workload: instance(id)}.Key()} {
				if got := sink.forgotten(key); got != want {
					t.Errorf("the moved workload is deleted: %t; %s is forgotten: %t, want %t", isDeleted, key, got, want)
				}
			}
		}
	}
}
