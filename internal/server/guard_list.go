package server

import (
	"context"
	"net/http"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
)

// guardList refuses an agent a list of which it may not have each row, before it is made: the total, and what is on no
// page, would tell of the others. So an agent's list is that of an instance, or of a resource, that is its cluster's or
// nobody's; or of the one Event that has a UID, whatever other filters the list has.
func (a *api) guardList(ctx context.Context, r *store.Resource, sel store.Selection) error {
	if auth.PrincipalFrom(ctx).Role != auth.RoleAgent {
		return nil
	}
	asked := store.Row{Values: make([]any, len(r.Fields))}
	for _, f := range sel.Filters {
		asked.Values[f.Field] = f.Value
	}
	of, err := a.instancesOf(ctx, r, asked)
	if err != nil {
		return err
	}
	if len(of) > 0 {
		return a.guard(ctx, r, nil, asked)
	}
	for _, f := range sel.Filters {
		if r.Fields[f.Field].Name != "RuntimeEventUID" || f.Value == "" { // several may have none
			continue
		}
		rows, _, err := a.store.List(ctx, r, store.Selection{Page: 1, Size: 1, Filters: []store.Filter{f}})
		if err != nil {
			return err
		}
		return a.guard(ctx, r, nil, rows...)
	}
	return &failure{http.StatusForbidden, "an agent lists what belongs to an instance or to a resource, or an Event by its UID"}
}
