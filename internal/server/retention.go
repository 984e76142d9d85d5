package server

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// eventKeeper knows which Events are kept, and whose workloads are.
type eventKeeper interface {
	auth.InstanceClusters
	EventsKeptAfter(ctx context.Context, instance threeport.Instance, keep store.Retention) (time.Time, error)
}

// retention is the endpoint that tells an agent which Events it need not send again though they have no row.
type retention struct {
	events eventKeeper
	keep   store.Retention
}

func (r *retention) register(api huma.API) {
	huma.Register(api, readOperation("get-event-retention", "/v0/workloads/{type}/{id}/event-retention", tagReports,
		"Find out which Events of a workload are kept",
		"An Event that happened last at this time or before it, and has no row, was pruned or would be: it is not to be sent again. "+
			"An agent may ask of its own cluster's workloads, and of those that are nobody's."), r.get)
}

func (r *retention) get(ctx context.Context, request *struct{ InstancePath }) (*Body[threeport.EventRetention], error) {
	instance, err := request.instance()
	if err != nil {
		return nil, err
	}
	if err := auth.PrincipalFrom(ctx).Authorize(ctx, r.events, auth.RowAccess{Instances: []threeport.Instance{instance}}); err != nil {
		return nil, err
	}
	after, err := r.events.EventsKeptAfter(ctx, instance, r.keep)
	if err != nil {
		return nil, readProblem(ctx, err)
	}
	return &Body[threeport.EventRetention]{threeport.EventRetention{KeptAfter: after}}, nil
}
