package auth

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// fakeClusters are the clusters of instances by ID.
type fakeClusters map[int64]string

// InstanceCluster implements InstanceClusters; instance 500 cannot be read.
func (o fakeClusters) InstanceCluster(_ context.Context, instanceType string, id int64) (string, error) {
	cluster, ok := o[id]
	switch {
	case id == 500:
		return "", errors.New("connection refused")
	case !ok || instanceType != threeport.TypeWorkloadInstance:
		return "", store.ErrNotFound
	}
	return cluster, nil
}

func TestAuthorize(t *testing.T) {
	const own, nobodys, foreign, missing, broken = 1, 2, 3, 4, 500
	rows := fakeClusters{own: clusterUID, nobodys: "", foreign: "another"}
	agent := Principal{Role: RoleAgent, ClusterUID: clusterUID}
	of := func(ids ...threeport.ID) (instances []threeport.Instance) {
		for _, id := range ids {
			instances = append(instances, threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: id})
		}
		return instances
	}
	access := func(object string, fields []string, instances []threeport.Instance) RowAccess {
		return RowAccess{Object: object, Fields: fields, Instances: instances}
	}
	unassigned := func(access RowAccess) RowAccess {
		access.AllowUnassigned = true
		return access
	}
	for _, tc := range []struct {
		reason string
		who    Principal
		touch  RowAccess
		want   int // 0 means allowed
	}{
		{reason: "reads a row of its cluster", who: agent, touch: access("WorkloadEvent", nil, of(own))},
		{
			reason: "reads a row without a cluster", who: agent, touch: access("WorkloadEvent", nil, of(own, nobodys)),
			want: http.StatusForbidden,
		},
		{
			reason: "writes a row without a cluster", who: agent, touch: access("WorkloadEvent", []string{"Message"}, of(nobodys)),
			want: http.StatusForbidden,
		},
		{
			reason: "reads a row without a cluster, which is allowed", who: agent,
			touch: unassigned(access("WorkloadEvent", nil, of(nobodys, own, own))),
		},
		{
			reason: "reads a row of another cluster while one without a cluster is allowed", who: agent,
			touch: unassigned(access("WorkloadEvent", nil, of(nobodys, foreign))), want: http.StatusForbidden,
		},
		{
			reason: "reads a row of an unknown instance", who: agent, touch: access("WorkloadInstance", nil, of(missing)),
			want: http.StatusNotFound,
		},
		{
			reason: "writes a row of an unknown instance", who: agent, touch: access("WorkloadEvent", []string{"Message"}, of(missing)),
			want: http.StatusNotFound,
		},
		{reason: "reads an empty list", who: agent, touch: access("WorkloadEvent", nil, nil)},
		// Another cluster.
		{
			reason: "reads a row of another cluster", who: agent, touch: access("WorkloadInstance", nil, of(foreign)),
			want: http.StatusForbidden,
		},
		{
			reason: "reads rows of its own and another cluster", who: agent,
			touch: access("WorkloadEvent", nil, of(own, nobodys, foreign)), want: http.StatusForbidden,
		},
		{reason: "sets a status", who: agent, touch: access("WorkloadInstance", []string{"Status"}, of(own))},
		{
			reason: "sets a status of another cluster", who: agent, touch: access("WorkloadInstance", []string{"Status"}, of(foreign)),
			want: http.StatusForbidden,
		},
		{
			reason: "sets a name", who: agent,
			touch: access("WorkloadInstance", []string{"Status", "Name"}, of(own)),
			want:  http.StatusForbidden,
		},
		{reason: "sets a Helm status", who: agent, touch: access("HelmWorkloadInstance", []string{"Status"}, of(own))},
		{reason: "sets a Helm name", who: agent, touch: access("HelmWorkloadInstance", []string{"Name"}, of(own)), want: http.StatusForbidden},
		{
			reason: "reports a resource", who: agent,
			touch: access("WorkloadResourceInstance", []string{"LastOperation", "RuntimeDefinition"}, of(own)),
		},
		{
			reason: "moves a resource", who: agent,
			touch: access("WorkloadResourceInstance", []string{"WorkloadInstanceID"}, of(own, foreign)),
			want:  http.StatusForbidden,
		},
		{reason: "creates an Event", who: agent, touch: access("WorkloadEvent", []string{"Message", "WorkloadInstanceID"}, of(own))},
		{
			reason: "moves an Event to another cluster", who: agent,
			touch: access("WorkloadEvent", []string{"WorkloadInstanceID"}, of(own, foreign)),
			want:  http.StatusForbidden,
		},
		{
			reason: "creates an Event without an instance", who: agent, touch: access("WorkloadEvent", []string{"Message"}, nil),
			want: http.StatusForbidden,
		},
		// Other outcomes.
		{reason: "the store fails", who: agent, touch: access("WorkloadEvent", nil, of(broken)), want: http.StatusServiceUnavailable},
		{
			reason: "an agent of no cluster", who: Principal{Role: RoleAgent}, touch: access("WorkloadEvent", nil, of(nobodys)),
			want: http.StatusForbidden,
		},
		{reason: "a viewer reads", who: Principal{Role: RoleViewer}, touch: access("WorkloadEvent", nil, of(foreign))},
		{
			reason: "a viewer writes", who: Principal{Role: RoleViewer}, touch: access("WorkloadEvent", []string{"Message"}, of(own)),
			want: http.StatusForbidden,
		},
		{reason: "an administrator writes", who: Principal{Role: RoleAdmin}, touch: access("WorkloadInstance", []string{"Name"}, of(foreign))},
		{reason: "the zero principal reads", who: Principal{}, touch: access("WorkloadEvent", nil, of(own)), want: http.StatusForbidden},
	} {
		err := tc.who.Authorize(t.Context(), rows, tc.touch)
		if (err == nil) != (tc.want == 0) || statusOf(err) != tc.want {
			t.Errorf("%s: %v, want %d", tc.reason, err, tc.want)
		}
	}
}

func TestMayReportFor(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		who     Principal
		cluster string
		want    bool
	}{
		{reason: "own cluster", who: Principal{Role: RoleAgent, ClusterUID: "a"}, cluster: "a", want: true},
		{reason: "an agent of another cluster", who: Principal{Role: RoleAgent, ClusterUID: "a"}, cluster: "b"},
		{reason: "agent and report without a cluster", who: Principal{Role: RoleAgent}},
		{reason: "an administrator", who: Principal{Role: RoleAdmin}, cluster: "b", want: true},
		{reason: "a viewer", who: Principal{Role: RoleViewer}, cluster: "b"},
		{reason: "no principal", who: Principal{}},
	} {
		if got := tc.who.MayReportFor(tc.cluster); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.reason, got, tc.want)
		}
	}
}
