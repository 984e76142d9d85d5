package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// InstanceClusters looks up the cluster of an instance.
type InstanceClusters interface {
	// InstanceCluster returns the UID of the cluster that an instance belongs to; empty if it is not assigned to one.
	// It returns [store.ErrNotFound] if the instance does not exist, or was deleted without a cluster.
	InstanceCluster(ctx context.Context, instanceType string, id int64) (clusterUID string, err error)
}

// RowAccess describes how a request uses v0 rows.
type RowAccess struct {
	// Object is the type of the rows, such as WorkloadEvent.
	Object string
	// Fields are the fields that it sets; empty for a read.
	Fields []string
	// Instances are the instances that the rows belong to, before and after the request. A WorkloadInstance belongs to
	// itself, and a WorkloadResourceInstance to its WorkloadInstanceID. A WorkloadEvent belongs to the instances that it
	// names, and to that of the resource that it names.
	Instances []threeport.Instance
	// AllowUnassigned permits instances without a cluster.
	AllowUnassigned bool
}

// agentFields are the fields that an agent may set. It may set all fields of a WorkloadEvent.
var agentFields = map[string][]string{
	"WorkloadInstance":         {"Status"},
	"HelmWorkloadInstance":     {"Status"},
	"WorkloadResourceInstance": {"LastOperation", "RuntimeDefinition"},
}

// AgentFields returns the fields of an object that only agents usually set; empty if there are none.
func AgentFields(object string) []string { return agentFields[object] }

// Authorize returns nil if the principal may access the rows, and otherwise a [*Problem]. An agent may access rows of
// instances of its cluster, and of instances without a cluster if AllowUnassigned is set. Other roles need no check of rows.
//
// An agent gets 404 for the rows of a missing instance: such rows may exist, but no agent may access them. An instance
// may be assigned to another cluster between the check and the write. The write then still happens, as if it had come a moment
// earlier.
func (p Principal) Authorize(ctx context.Context, owner InstanceClusters, access RowAccess) error {
	switch {
	case p.Role == RoleAdmin, p.Role == RoleViewer && len(access.Fields) == 0:
		return nil
	case p.Role != RoleAgent || p.ClusterUID == "":
		return forbidden("this is not for your role")
	case len(access.Instances) == 0 && len(access.Fields) > 0:
		return forbidden("an agent may only write rows that belong to an instance")
	}
	if err := checkAgentFields(access); err != nil {
		return err
	}
	checked := make(map[threeport.Instance]bool, 1)
	for _, instance := range access.Instances {
		if checked[instance] {
			continue
		}
		checked[instance] = true
		cluster, err := owner.InstanceCluster(ctx, instance.Type, int64(instance.ID))
		switch {
		case errors.Is(err, store.ErrNotFound):
			return newProblem(http.StatusNotFound, store.ErrNotFound.Error())
		case err != nil:
			return unavailable(fmt.Errorf("read cluster of instance: %w", err))
		case cluster == "" && access.AllowUnassigned:
		case cluster != p.ClusterUID:
			return NotAssigned(store.NotAssigned(instance, cluster, p.ClusterUID))
		}
	}
	return nil
}

func checkAgentFields(access RowAccess) error {
	allowed, bounded := agentFields[access.Object]
	if !bounded {
		return nil
	}
	for _, field := range access.Fields {
		if !slices.Contains(allowed, field) {
			return forbidden("an agent may not set some of these fields")
		}
	}
	return nil
}
