package assess

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// stateCluster has a state for each kind.
type stateCluster map[string]target.State

func (c stateCluster) ResourceStatus(r target.Resource) target.ResourceStatus {
	return target.ResourceStatus{Resource: r, State: c[r.Kind], Message: "permission missing"}
}

func (stateCluster) Follows(schema.GroupKind) bool { return true }

func TestAssessor_Verdict_LeavesOutForbiddenSecrets(t *testing.T) {
	cluster := stateCluster{"Secret": target.Forbidden, "ConfigMap": target.Absent, "Service": target.Forbidden}
	for _, tt := range []struct {
		reason string
		kinds  []string
		want   health.Verdict
	}{
		{
			"a forbidden Secret is only counted",
			[]string{"Secret", "ConfigMap"},
			health.Verdict{Status: health.Down, Reason: "Absent", Message: "ConfigMap ns/x does not exist; 1 resource is not checked"},
		},
		{
			"another forbidden kind counts",
			[]string{"Secret", "Service"},
			health.Verdict{Status: health.Unknown, Reason: "Forbidden", Message: "permission missing; 1 resource is not checked"},
		},
		{
			"nothing else is listed",
			[]string{"Secret"},
			health.Verdict{Status: health.Unknown, Reason: health.NotChecked, Message: "permission missing"},
		},
	} {
		targets := target.NewRegistry()
		a := New(Config{Now: time.Now}, targets, cluster, noTransitions{}, NewMetrics(prometheus.NewRegistry()), logr.Discard())
		wl := target.Workload{Name: "web", Instance: target.Instance{Type: target.WorkloadInstance, ID: 1}}
		for _, kind := range tt.kinds {
			wl.Resources = append(wl.Resources, target.Resource{
				Ref: target.Ref{Kind: kind, Namespace: "ns", Name: "x"}, Version: "v1",
			})
		}
		targets.Track(wl)
		if got, ok := a.undamped("web"); !ok || got != tt.want {
			t.Errorf("%s: the verdict is %+v, %t, want %+v", tt.reason, got, ok, tt.want)
		}
		statuses, _ := a.ResourceStatuses("web")
		if got := statuses[0]; got.Kind == "Secret" &&
			(got.State != target.Forbidden || got.Health != string(health.Unknown) || got.Reason != health.NotChecked) {
			t.Errorf("%s: the Secret is %s %s %s, want Forbidden Unknown NotChecked", tt.reason, got.State, got.Health, got.Reason)
		}
	}
}

// The status of an instance that several workloads declare names the others.
func TestAssessor_Status_NamesOtherWorkload(t *testing.T) {
	targets, instance := target.NewRegistry(), target.Instance{Type: target.WorkloadInstance, ID: 1}
	a := New(Config{Now: time.Now}, targets, stateCluster{"ConfigMap": target.Absent}, noTransitions{}, NewMetrics(prometheus.NewRegistry()), logr.Discard())
	for _, name := range []string{"one", "two"} {
		ref := target.Ref{Kind: "ConfigMap", Namespace: "ns", Name: name}
		targets.Track(target.Workload{Name: name, Instance: instance, Resources: []target.Resource{{Ref: ref, Version: "v1"}}})
	}
	const want = "ConfigMap ns/one does not exist; ThreeportWorkload two is not Healthy"
	if got, ok := a.Status(instance); !ok || got.Status != "Down" || got.Cause != want {
		t.Errorf("the status is %s for %q, %t, want Down for %q", got.Status, got.Cause, ok, want)
	}
}
