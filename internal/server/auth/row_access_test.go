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
	for _, tc := range []struct {
		reason string
		who    Principal
		touch  RowAccess
		want   int // 0 means allowed
	}{
		{"reads a row of its cluster", agent, RowAccess{"WorkloadEvent", nil, of(own)}, 0},
		{"reads a row without a cluster", agent, RowAccess{"WorkloadEvent", nil, of(nobodys, own, own)}, 0},
		{"reads a row of an unknown instance", agent, RowAccess{"WorkloadInstance", nil, of(missing)}, http.StatusNotFound},
		{"writes a row of an unknown instance", agent, RowAccess{"WorkloadEvent", []string{"Message"}, of(missing)}, http.StatusNotFound},
		{"reads an empty list", agent, RowAccess{"WorkloadEvent", nil, nil}, 0},
		// Another cluster.
		{"reads a row of another cluster", agent, RowAccess{"WorkloadInstance", nil, of(foreign)}, http.StatusForbidden},
		{"reads rows of its own and another cluster", agent, RowAccess{"WorkloadEvent", nil, of(own, nobodys, foreign)}, http.StatusForbidden},
		{"sets a status", agent, RowAccess{"WorkloadInstance", []string{"Status"}, of(own)}, 0},
		{"sets a status of another cluster", agent, RowAccess{"WorkloadInstance", []string{"Status"}, of(foreign)}, http.StatusForbidden},
		{"sets a name", agent, RowAccess{"WorkloadInstance", []string{"Status", "Name"}, of(own)}, http.StatusForbidden},
		{"sets a Helm status", agent, RowAccess{"HelmWorkloadInstance", []string{"Status"}, of(own)}, 0},
		{"sets a Helm name", agent, RowAccess{"HelmWorkloadInstance", []string{"Name"}, of(own)}, http.StatusForbidden},
		{"reports a resource", agent, RowAccess{"WorkloadResourceInstance", []string{"LastOperation", "RuntimeDefinition"}, of(own)}, 0},
		{"moves a resource", agent, RowAccess{"WorkloadResourceInstance", []string{"WorkloadInstanceID"}, of(own, foreign)}, http.StatusForbidden},
		{"creates an Event", agent, RowAccess{"WorkloadEvent", []string{"Message", "WorkloadInstanceID"}, of(nobodys)}, 0},
		{"moves an Event to another cluster", agent, RowAccess{"WorkloadEvent", []string{"WorkloadInstanceID"}, of(own, foreign)}, http.StatusForbidden},
		{"creates an Event without an instance", agent, RowAccess{"WorkloadEvent", []string{"Message"}, nil}, http.StatusForbidden},
		// Other outcomes.
		{"the store fails", agent, RowAccess{"WorkloadEvent", nil, of(broken)}, http.StatusServiceUnavailable},
		{"an agent of no cluster", Principal{Role: RoleAgent}, RowAccess{"WorkloadEvent", nil, of(nobodys)}, http.StatusForbidden},
		{"a viewer reads", Principal{Role: RoleViewer}, RowAccess{"WorkloadEvent", nil, of(foreign)}, 0},
		{"a viewer writes", Principal{Role: RoleViewer}, RowAccess{"WorkloadEvent", []string{"Message"}, of(own)}, http.StatusForbidden},
		{"an administrator writes", Principal{Role: RoleAdmin}, RowAccess{"WorkloadInstance", []string{"Name"}, of(foreign)}, 0},
		{"the zero principal reads", Principal{}, RowAccess{"WorkloadEvent", nil, of(own)}, http.StatusForbidden},
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
		{"own cluster", Principal{Role: RoleAgent, ClusterUID: "a"}, "a", true},
		{"another", Principal{Role: RoleAgent, ClusterUID: "a"}, "b", false},
		{"agent and report without a cluster", Principal{Role: RoleAgent}, "", false},
		{"an administrator", Principal{Role: RoleAdmin}, "b", true},
		{"a viewer", Principal{Role: RoleViewer}, "b", false},
		{"nobody", Principal{}, "", false},
	} {
		if got := tc.who.MayReportFor(tc.cluster); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.reason, got, tc.want)
		}
	}
}
