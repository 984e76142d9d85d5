package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// guard refuses what whoever asks may not do with rows of v0, or set of them: agents may touch those of their own
// cluster's workloads, and of workloads that are nobody's yet. Set are a row's values, nil if it is only read.
func (a *api) guard(ctx context.Context, r *store.Resource, set []any, rows ...store.Row) error {
	who := auth.PrincipalFrom(ctx)
	if who.Role != auth.RoleAgent { // what the others may depends on the request alone
		return nil
	}
	touch := auth.RowAccess{Object: r.Object}
	for i, f := range r.Fields {
		if set != nil && set[i] != nil {
			touch.Fields = append(touch.Fields, f.Name)
		}
	}
	for _, row := range rows {
		instances, err := a.instancesOf(ctx, r, row)
		if err != nil {
			return err
		}
		if len(instances) == 0 {
			return &failure{http.StatusForbidden, "the row belongs to no instance"}
		}
		touch.Instances = append(touch.Instances, instances...)
	}
	if set != nil {
		instances, err := a.instancesOf(ctx, r, store.Row{Values: set})
		if err != nil {
			return err
		}
		touch.Instances = append(touch.Instances, instances...)
	}
	err := who.Authorize(ctx, a.store, touch)
	if problem, ok := errors.AsType[*auth.Problem](err); ok {
		return &failure{problem.Status, problem.Detail}
	}
	return err
}

// instancesOf returns those that a row belongs to: itself, those that it names, and that of the resource that it names.
func (a *api) instancesOf(ctx context.Context, r *store.Resource, row store.Row) ([]threeport.Instance, error) {
	var out []threeport.Instance
	if r.Object == threeport.TypeWorkloadInstance || r.Object == threeport.TypeHelmWorkloadInstance {
		if row.ID == 0 {
			return nil, nil // what is set of one that is among the rows
		}
		return append(out, threeport.Instance{Type: r.Object, ID: threeport.ID(row.ID)}), nil
	}
	for i, f := range r.Fields {
		id, named := row.Values[i].(int64)
		if !named {
			continue
		}
		switch f.Name {
		case "WorkloadInstanceID":
			out = append(out, threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: threeport.ID(id)})
		case "HelmWorkloadInstanceID":
			out = append(out, threeport.Instance{Type: threeport.TypeHelmWorkloadInstance, ID: threeport.ID(id)})
		case "WorkloadResourceInstanceID":
			of, err := a.store.ResourceOwner(ctx, id)
			if err != nil {
				return nil, err
			}
			out = append(out, of)
		}
	}
	return out, nil
}
