package server

import (
	"net/http"
	"slices"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
)

// hear notes that an agent is there, if what was set of a row is what agents set. What fails here is logged and is not the
// request's failure: its row is written.
func (a *api) hear(req *http.Request, r *store.Resource, set []any, o store.Row) {
	byAgent := false
	for i, f := range r.Fields {
		byAgent = byAgent || set[i] != nil && slices.Contains(auth.AgentFields(r.Object), f.Name)
	}
	if r.Object != "WorkloadEvent" && !byAgent {
		return
	}
	instances, err := a.instancesOf(req.Context(), r, o)
	if err == nil {
		err = a.store.RecordV0Report(req.Context(), instances)
	}
	if err != nil && req.Context().Err() == nil {
		a.log.Warn("Agent not noted as there", "method", req.Method, "path", req.URL.Path, "error", err)
	}
}
