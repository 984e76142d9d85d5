package server

import (
	"context"
	"net/http"
	"slices"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// authorizeRead refuses rows that the principal may not read: agents read rows of their own cluster's workloads and, without
// --require-assignment, of workloads without a cluster.
func (v *v0API) authorizeRead(ctx context.Context, r *store.Resource, rows ...store.Row) error {
	principal := auth.PrincipalFrom(ctx)
	if principal.Role != auth.RoleAgent { // the route alone decides for the others
		return nil
	}
	access, err := v.accessTo(ctx, r, nil, rows...)
	if err != nil {
		return err
	}
	access.AllowUnassigned = !v.claims.required
	return principal.Authorize(ctx, v.store, access)
}

// authorizeWrite refuses values to set, and the rows to set them in, that the principal may not access: agents write rows of their own
// cluster's workloads. Without --require-assignment the write claims workloads without a cluster. The claim is nil for none.
func (v *v0API) authorizeWrite(ctx context.Context, r *store.Resource, set []any, rows ...store.Row) (*store.Claim, error) {
	principal := auth.PrincipalFrom(ctx)
	if principal.Role != auth.RoleAgent {
		return nil, nil
	}
	access, err := v.accessTo(ctx, r, set, rows...)
	if err != nil {
		return nil, err
	}
	if err := principal.Authorize(ctx, v.store, access); v.claims.required || !auth.IsNotAssigned(err) {
		return nil, err
	}
	access.AllowUnassigned = true
	if err := principal.Authorize(ctx, v.store, access); err != nil {
		return nil, err
	}
	return v.claimOf(ctx, principal, access.Instances)
}

// accessTo describes the use of rows by a request of an agent. set is nil if the rows are only read.
func (v *v0API) accessTo(ctx context.Context, r *store.Resource, set []any, rows ...store.Row) (auth.RowAccess, error) {
	access := auth.RowAccess{Object: r.Object}
	for i, f := range r.Fields {
		if set != nil && set[i] != nil {
			access.Fields = append(access.Fields, f.Name)
		}
	}
	for _, row := range rows {
		owners, err := v.ownersOf(ctx, r, row)
		if err != nil {
			return access, err
		}
		if len(owners) == 0 {
			return access, &httpError{http.StatusForbidden, "the row belongs to no instance"}
		}
		access.Instances = append(access.Instances, owners...)
	}
	if set != nil {
		owners, err := v.ownersOf(ctx, r, store.Row{Values: set})
		if err != nil {
			return access, err
		}
		access.Instances = append(access.Instances, owners...)
	}
	return access, nil
}

// authorizeList refuses a list before it is read, unless the agent may access every row of it: the total and the rows of
// other pages would reveal them. So an agent lists by an instance or a resource, or by the UID of an Event. A list by UID is restricted
// to the rows that the agent may read: a refusal would reveal that the Event of another cluster exists.
func (v *v0API) authorizeList(ctx context.Context, r *store.Resource, selection *store.Selection) error {
	principal := auth.PrincipalFrom(ctx)
	if principal.Role != auth.RoleAgent {
		return nil
	}
	filtered := store.Row{Values: make([]any, len(r.Fields))}
	for _, f := range selection.Filters {
		filtered.Values[f.Field] = f.Value
	}
	owners, err := v.ownersOf(ctx, r, filtered)
	if err != nil {
		return err
	}
	if len(owners) > 0 {
		return v.authorizeRead(ctx, r, filtered)
	}
	byUID := func(f store.Filter) bool { return r.Fields[f.Field].Name == "RuntimeEventUID" && f.Value != "" } // many Events may have an empty UID
	if slices.ContainsFunc(selection.Filters, byUID) {
		selection.Readable = &store.Readable{Cluster: principal.ClusterUID, Unassigned: !v.claims.required}
		return nil
	}
	return &httpError{http.StatusForbidden, "an agent lists rows of one instance or one resource, or an Event by its UID: add such a filter"}
}

// ownersOf returns the instances that own a row: the row itself if it is an instance, those that it names, and the one of
// the resource that it names.
func (v *v0API) ownersOf(ctx context.Context, r *store.Resource, row store.Row) ([]threeport.Instance, error) {
	if r.Object == threeport.TypeWorkloadInstance || r.Object == threeport.TypeHelmWorkloadInstance {
		if row.ID == 0 {
			return nil, nil // values to set in an instance that is among the rows
		}
		return []threeport.Instance{{Type: r.Object, ID: threeport.ID(row.ID)}}, nil
	}
	var owners []threeport.Instance
	for i, f := range r.Fields {
		id, named := row.Values[i].(int64)
		if !named {
			continue
		}
		switch f.Name {
		case "WorkloadInstanceID":
			owners = append(owners, threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: threeport.ID(id)})
		case "HelmWorkloadInstanceID":
			owners = append(owners, threeport.Instance{Type: threeport.TypeHelmWorkloadInstance, ID: threeport.ID(id)})
		case "WorkloadResourceInstanceID":
			owner, err := v.store.ResourceOwner(ctx, id)
			if err != nil {
				return nil, err
			}
			owners = append(owners, owner)
		}
	}
	return owners, nil
}
