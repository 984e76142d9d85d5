package server

import (
	"context"
	"errors"
	"net/http"
	"path"

	"github.com/danielgtaylor/huma/v2"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// clusterStore reads clusters and their objects.
type clusterStore interface {
	Clusters(ctx context.Context) ([]threeport.Cluster, error)
	DefinitionSize(ctx context.Context, clusterUID, uid string) (int64, error)
	Definition(ctx context.Context, clusterUID, uid string) (threeport.Definition, error)
	// DeleteCluster forgets a cluster and releases its workloads to other clusters: see [store.Store.DeleteCluster].
	DeleteCluster(ctx context.Context, uid string) (workloads int64, err error)
}

// clusters are the endpoints of clusters.
type clusters struct {
	store       clusterStore
	answers     answerMemory
	definitions *definitions
}

var (
	listClustersOperation = readOperation("list-clusters", tagWorkloads, "List clusters",
		"All clusters with an agent that has reported, with the delay of its reports.")
	getObjectOperation = itemOperation("get-object", tagWorkloads, "Read an object's definition",
		"The current version of a listed object, and the one before the latest change of its spec. Confidential values are redacted for everybody who is not an administrator.")
	releaseClusterOperation = huma.Operation{
		OperationID: "release-cluster",
		Tags:        []string{tagWorkloads}, Summary: "Delete a cluster",
		Description: "For a cluster that is gone, or was rebuilt with another UID. The next cluster that reports its workloads takes them " +
			"over. A cluster that still reports is created again with its next report set.",
		Errors: append([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity}, commonErrors...),
	}
)

func (c *clusters) list(ctx context.Context, _ *struct{}) (*Body[threeport.List[threeport.Cluster]], error) {
	if err := c.answers.forPage(ctx); err != nil {
		return nil, err
	}
	found, err := c.store.Clusters(ctx)
	return listAnswer(ctx, threeport.List[threeport.Cluster]{Items: found, Total: int64(len(found))}, err)
}

func (c *clusters) getObject(ctx context.Context, request *struct {
	ClusterUID string `path:"uid" minLength:"1" maxLength:"128" doc:"The cluster's UID."`
	ObjectUID  string `path:"objectUID" minLength:"1" maxLength:"128" doc:"The object's UID."`
},
) (*Body[threeport.Definition], error) {
	size, err := c.store.DefinitionSize(ctx, request.ClusterUID, request.ObjectUID)
	if err != nil {
		return nil, storeProblem(ctx, err)
	}
	if err := c.answers.reserve(ctx, definitionCopies*size); err != nil {
		return nil, err
	}
	definition, err := c.store.Definition(ctx, request.ClusterUID, request.ObjectUID)
	if err != nil {
		return nil, storeProblem(ctx, err)
	}
	auth.SetAuditObject(ctx, auth.AuditObject{
		Type: definition.Object.Kind, ID: request.ObjectUID, Name: path.Join(definition.Object.Namespace, definition.Object.Name),
	})
	view := c.definitions.view(ctx, answerOf(ctx).sender)
	definition.Current, definition.Previous = view.of(definition.Current), view.of(definition.Previous)
	return &Body[threeport.Definition]{definition}, nil
}

func (c *clusters) release(ctx context.Context, request *struct {
	UID string `path:"uid" minLength:"1" maxLength:"128" doc:"The cluster's UID."`
},
) (*Body[threeport.ReleasedCluster], error) {
	workloads, err := c.store.DeleteCluster(ctx, request.UID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, problem(http.StatusNotFound, "cluster not found")
	case err != nil:
		return nil, unavailable(ctx, "the database failed: ask again", err)
	}
	auth.SetAuditObject(ctx, auth.AuditObject{Type: "Cluster", ID: request.UID})
	return &Body[threeport.ReleasedCluster]{threeport.ReleasedCluster{ClusterUID: request.UID, Workloads: workloads}}, nil
}
