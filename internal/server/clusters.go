package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// clusterReleaser makes a cluster's workloads nobody's: see [store.Store.ReleaseCluster].
type clusterDeleter interface {
	DeleteCluster(ctx context.Context, uid string) (workloads int64, err error)
}

// retirement is the operation by which an administrator says that a cluster is no more.
type retirement struct{ clusters clusterDeleter }

func (r *retirement) register(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "release-cluster", Method: http.MethodDelete, Path: "/v0/clusters/{uid}",
		Tags: []string{tagBoard}, Summary: "Forget a cluster",
		Description: "For one that is no more, or was built anew and has another UID. Its workloads are nobody's then: the next " +
			"cluster that reports of them has them. If it still reports, it is back with its next report set.",
		Errors: append([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity}, commonErrors...),
	}, r.release)
}

func (r *retirement) release(ctx context.Context, request *struct {
	UID string `path:"uid" minLength:"1" maxLength:"128" doc:"The cluster's UID."`
},
) (*Body[threeport.ReleasedCluster], error) {
	workloads, err := r.clusters.DeleteCluster(ctx, request.UID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, problem(http.StatusNotFound, "there is no such cluster")
	case err != nil:
		return nil, unavailable(ctx, "the database failed: ask again", err)
	}
	return &Body[threeport.ReleasedCluster]{threeport.ReleasedCluster{ClusterUID: request.UID, Workloads: workloads}}, nil
}
