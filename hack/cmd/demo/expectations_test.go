package main

import (
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// IDs like those of the control plane: beyond 2^53, so that a float64 cannot distinguish them.
const (
	webID      = 1<<60 + 1
	resourceID = 1<<60 + 2
	chartID    = 1<<60 + 3
)

// The rows of the page.
var (
	webRow   = threeport.Instance{Type: string(v1alpha1.WorkloadTypeInstance), ID: webID}
	chartRow = threeport.Instance{Type: string(v1alpha1.WorkloadTypeHelmInstance), ID: chartID}
)

// asExpected returns a workload and a Helm workload, and matching rows of the control plane.
func asExpected() ([]deployed, content) {
	workloads := []deployed{
		{
			workload: workload{name: "web", typ: v1alpha1.WorkloadTypeInstance, status: "Healthy", reasons: []string{"Scheduled"}},
			Deployed: upstream.Deployed{InstanceID: webID, Resources: []v1alpha1.WorkloadResourceInstance{{ThreeportID: resourceID}}},
		},
		{
			workload: workload{name: "chart", typ: v1alpha1.WorkloadTypeHelmInstance, status: "Healthy", reasons: []string{"Started"}},
			Deployed: upstream.Deployed{InstanceID: chartID},
		},
	}
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	web := func(reason, message string, at time.Time) threeport.WorkloadEvent {
		return threeport.WorkloadEvent{
			WorkloadInstanceID: new(int64(webID)), Type: new("Normal"), Reason: &reason, Message: &message, Timestamp: &at,
		}
	}
	chart := web("Started", "Pod hook: about hook", at)
	chart.WorkloadInstanceID, chart.HelmWorkloadInstanceID = nil, new(int64(chartID))
	return workloads, content{
		statuses: map[string]string{"web": "Healthy", "chart": "Healthy"},
		workloads: map[threeport.Instance]threeport.Workload{
			webRow:   {Instance: webRow, Status: "Healthy"},
			chartRow: {Instance: chartRow, Status: "Healthy"},
		},
		History: oracle.History{
			Events: []threeport.WorkloadEvent{
				web("ScalingReplicaSet", "about web", at),
				web("Scheduled", "Pod web-1-a: one\nline", at.Add(time.Second)),
				chart,
			},
			Resources: map[int64]threeport.WorkloadResourceInstance{
				resourceID: {LastOperation: new(threeport.OperationModified)},
			},
		},
	}
}

func TestCheck_NamesDifferences(t *testing.T) {
	for _, c := range []struct {
		reason string
		change func(*content)
		want   string // all differences
	}{
		{reason: "no difference", change: func(*content) {}},
		{
			reason: "another status",
			change: func(found *content) { found.statuses["web"] = "Reconciling" },
			want:   `web: expected the agent to report the status Healthy, the API has "Reconciling"`,
		},
		{
			reason: "a Helm workload without a status",
			change: func(found *content) { delete(found.statuses, "chart") },
			want:   `chart: expected the agent to report the status Healthy, the API has ""`,
		},
		{
			reason: "a workload that the page does not show",
			change: func(found *content) { delete(found.workloads, chartRow) },
			want:   `chart: expected the page to show that it is Healthy, and why if not Healthy; it shows "" with the cause ""`,
		},
		{
			reason: "a cause of a healthy workload",
			change: func(found *content) {
				found.workloads[webRow] = threeport.Workload{Status: "Healthy", Cause: "Pod web"}
			},
			want: `web: expected the page to show that it is Healthy, and why if not Healthy; it shows "Healthy" with the cause "Pod web"`,
		},
		{
			reason: "a missing reason",
			change: func(found *content) { found.Events = found.Events[:2] },
			want:   "chart: expected the agent to report an Event with the reason Started, the API has none",
		},
	} {
		workloads, found := asExpected()
		c.change(&found)
		if got := strings.Join(check(workloads, found), "\n"); got != c.want {
			t.Errorf("%s: expected %q, got %q", c.reason, c.want, got)
		}
	}
}
