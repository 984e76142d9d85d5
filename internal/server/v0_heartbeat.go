package server

import (
	"slices"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
)

// recordHeartbeat counts a write as a heartbeat of the row's agent if it sets a field that only agents set. A failure here
// is logged and does not fail the request, whose row is already written.
func (v *v0API) recordHeartbeat(req *v0Request, set []any, row store.Row) {
	fromAgent := req.resource.Object == objectEvent
	for i, f := range req.resource.Fields {
		fromAgent = fromAgent || set[i] != nil && slices.Contains(auth.AgentFields(req.resource.Object), f.Name)
	}
	if !fromAgent {
		return
	}
	owners, err := v.ownersOf(req.Context(), req.resource, row)
	if err == nil {
		err = v.store.RecordV0Report(req.Context(), owners)
	}
	if err != nil && req.Context().Err() == nil {
		v.log.Warn("Heartbeat not recorded", "method", req.Method, "path", req.URL.Path, "error", err)
	}
}
