package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// assignmentStore assigns workloads to clusters.
type assignmentStore interface {
	// AssignWorkload assigns a workload to a cluster, or releases it if the UID is empty: see [store.Store.AssignWorkload].
	AssignWorkload(ctx context.Context, instance threeport.Instance, clusterUID string) (before string, err error)
}

// assignments are the endpoints that assign workloads to clusters.
type assignments struct{ store assignmentStore }

var (
	assignWorkloadOperation = assignmentOperation("assign-workload", "Assign a workload to a cluster",
		"Only the agent of the workload's cluster may report it and read its definitions. The cluster need not have reported yet. "+
			"A workload of another cluster moves to this one. Assigning the same cluster again changes nothing.")
	releaseWorkloadOperation = assignmentOperation("release-workload", "Release a workload from its cluster",
		"The workload keeps its last status. Releasing a workload without a cluster changes nothing.")
)

func assignmentOperation(id, summary, description string) huma.Operation {
	op := itemOperation(id, tagAccess, summary, description)
	if id == "assign-workload" {
		op.Errors = append([]int{http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType}, op.Errors...)
	}
	return op
}

func (a *assignments) assign(ctx context.Context, request *struct {
	InstancePath
	Body threeport.AssignedCluster
},
) (*Body[threeport.Assignment], error) {
	return a.setCluster(ctx, request.InstancePath, request.Body.ClusterUID)
}

func (a *assignments) release(ctx context.Context, request *struct{ InstancePath }) (*Body[threeport.Assignment], error) {
	return a.setCluster(ctx, request.InstancePath, "")
}

// setCluster assigns a workload to a cluster, or releases it if the UID is empty.
func (a *assignments) setCluster(ctx context.Context, path InstancePath, clusterUID string) (*Body[threeport.Assignment], error) {
	instance, err := path.instance()
	if err != nil {
		return nil, err
	}
	before, err := a.store.AssignWorkload(ctx, instance, clusterUID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, problem(http.StatusNotFound, "there is no workload of this type and ID")
	case err != nil:
		return nil, unavailable(ctx, "the database failed: send it again", err)
	}
	named := clusterUID
	if named == "" {
		named = before
	}
	auth.SetAuditObject(ctx, auth.AuditObject{Type: instance.Type, ID: strconv.FormatInt(int64(instance.ID), 10), Name: named})
	return &Body[threeport.Assignment]{threeport.Assignment{Instance: instance, ClusterUID: clusterUID, PreviousClusterUID: before}}, nil
}
