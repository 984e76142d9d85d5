package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// claims has the policy for instances without a cluster, and records claims. It is nil with strict v0, where every client is an
// administrator.
type claims struct {
	required bool // an administrator has to assign the instance
	access   *auth.Authenticator
	counter  prometheus.Counter
	log      *slog.Logger
}

// policy is the policy for the report sets of a principal. A report set of an administrator assigns workloads, because an
// administrator may assign them anyway.
func (c *claims) policy(p auth.Principal) store.ClaimPolicy {
	if p.Role == auth.RoleAgent && c.required {
		return store.ClaimsRefused
	}
	return store.ClaimsAllowed
}

// record makes the claims of an agent visible: no administrator decided on them.
func (c *claims) record(p auth.Principal, instances ...threeport.Instance) {
	if p.Role != auth.RoleAgent {
		return
	}
	for _, instance := range instances {
		c.counter.Inc()
		c.log.Warn("An agent claimed a workload without a cluster", "principal", p.String(), "cluster", p.ClusterUID,
			"type", instance.Type, "id", int64(instance.ID))
		c.access.RecordClaim(p, instance)
	}
}

// clusterOfNew is the cluster that a request to create an instance assigns it to; empty if the request has no such header. Strict
// v0 ignores the header.
func (v *v0API) clusterOfNew(req *v0Request) (string, error) {
	uid := req.Header.Get(threeport.ClusterHeader)
	if uid == "" || v.claims == nil || req.resource.Object != threeport.TypeWorkloadInstance && req.resource.Object != threeport.TypeHelmWorkloadInstance {
		return "", nil
	}
	if !auth.IsClusterUID(uid) {
		return "", &httpError{http.StatusBadRequest, threeport.ClusterHeader + ": must be the UID of a cluster: 1 to 128 ASCII characters without spaces"}
	}
	return uid, nil
}

// claimOf is the claim of the instances that do not belong to the cluster of the principal. If another cluster claims one meanwhile, the write
// fails.
func (v *v0API) claimOf(ctx context.Context, p auth.Principal, instances []threeport.Instance) (*store.Claim, error) {
	claim := &store.Claim{ClusterUID: p.ClusterUID}
	for _, instance := range instances {
		cluster, err := v.store.InstanceCluster(ctx, instance.Type, int64(instance.ID))
		if err != nil {
			return nil, err
		}
		if cluster != p.ClusterUID { // a deleted instance of the own cluster needs no claim
			claim.Instances = append(claim.Instances, instance)
		}
	}
	return claim, nil
}

// claimed records the claim of a write that has ended with err, and returns the error of the request.
func (v *v0API) claimed(ctx context.Context, claim *store.Claim, err error) error {
	if claim == nil {
		return err
	}
	if refused, ok := errors.AsType[*store.ClaimError](err); ok {
		return auth.NotAssigned(refused.Detail)
	}
	if err == nil {
		v.claims.record(auth.PrincipalFrom(ctx), claim.Claimed...)
	}
	return err
}

// withhold removes the definitions from a row that an agent reads, unless its cluster has the instance. An agent that finds no
// definition sends its own, which claims the instance.
func (v *v0API) withhold(ctx context.Context, r *store.Resource, row store.Row) error {
	p := auth.PrincipalFrom(ctx)
	if p.Role != auth.RoleAgent || r.Object != objectResource {
		return nil
	}
	owner, err := v.store.ResourceOwner(ctx, row.ID)
	if err != nil {
		return err
	}
	cluster, err := v.store.InstanceCluster(ctx, owner.Type, int64(owner.ID))
	if err != nil || cluster == p.ClusterUID {
		return err
	}
	for i, f := range r.Fields {
		if f.Kind == store.Document {
			row.Values[i] = nil
		}
	}
	return nil
}
