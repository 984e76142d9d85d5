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

// Owner knows whose an instance is.
type InstanceClusters interface {
	// InstanceCluster is the UID of the cluster that an instance belongs to: the first that reported of it; empty if
	// none has. The type is one of those of [threeport.Instance]. It returns [store.ErrNotFound] if there is no such
	// instance any more that a cluster has or may get.
	InstanceCluster(ctx context.Context, instanceType string, id int64) (clusterUID string, err error)
}

// Touch is what a request does with rows of v0.
type RowAccess struct {
	// Object is the rows' type, such as WorkloadEvent.
	Object string
	// Fields are those that it sets; none if it only reads.
	Fields []string
	// Instances are those that the rows belong to, before the request and after it: a WorkloadInstance to itself, a
	// WorkloadResourceInstance to its WorkloadInstanceID, and a WorkloadEvent to the instances that it names, and to the
	// instance of the resource that it names.
	Instances []threeport.Instance
}

// agentFields are what an agent sets. It may set every field of a WorkloadEvent.
var agentFields = map[string][]string{
	"WorkloadInstance":         {"Status"},
	"HelmWorkloadInstance":     {"Status"},
	"WorkloadResourceInstance": {"LastOperation", "RuntimeDefinition"},
}

// AgentFields are the fields that agents set of rows of an object; none if they set no particular ones.
func AgentFields(object string) []string { return agentFields[object] }

// May is nil if the principal may touch these rows, and a [*Problem] if not, or if owner fails. Agents may touch rows of
// instances that are their cluster's or nobody's yet; the others may what their role may.
//
// What belongs to an instance that does not exist is not found: rows may outlive it, and no agent is to have them then.
// An instance may get a cluster between this and the write, and then the write is still done: it was as allowed as a
// moment earlier.
func (p Principal) Authorize(ctx context.Context, owner InstanceClusters, touch RowAccess) error {
	switch {
	case p.Role == RoleAdmin, p.Role == RoleViewer && len(touch.Fields) == 0:
		return nil
	case p.Role != RoleAgent || p.ClusterUID == "":
		return forbidden("this is not for your role")
	case len(touch.Instances) == 0 && len(touch.Fields) > 0:
		return forbidden("an agent's rows belong to an instance")
	}
	if err := checkAgentFields(touch); err != nil {
		return err
	}
	asked := make(map[threeport.Instance]bool, 1)
	for _, instance := range touch.Instances {
		if asked[instance] {
			continue
		}
		asked[instance] = true
		cluster, err := owner.InstanceCluster(ctx, instance.Type, int64(instance.ID))
		switch {
		case errors.Is(err, store.ErrNotFound):
			return newProblem(http.StatusNotFound, store.ErrNotFound.Error())
		case err != nil:
			return unavailable(fmt.Errorf("read whose an instance is: %w", err))
		case cluster != "" && cluster != p.ClusterUID:
			return forbidden("the row belongs to an instance of another cluster")
		}
	}
	return nil
}

func checkAgentFields(touch RowAccess) error {
	allowed, bounded := agentFields[touch.Object]
	if !bounded {
		return nil
	}
	for _, field := range touch.Fields {
		if !slices.Contains(allowed, field) {
			return forbidden("an agent may not set all of these fields")
		}
	}
	return nil
}
