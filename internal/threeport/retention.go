package threeport

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// EventsKeptAfter asks up to which time a server does not keep Events of a workload, however often they are sent. It is
// zero for a server that does not tell: one of v0, and one that forbids agents what it does not know.
func (c *Client) EventsKeptAfter(ctx context.Context, instance Instance) (time.Time, error) {
	got, err := ask[EventRetention](ctx, c, request{
		op: "find event retention", method: http.MethodGet,
		path: fmt.Sprintf("/v0/workloads/%s/%d/event-retention", instance.Type, int64(instance.ID)),
	})
	switch StatusOf(err) {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusForbidden:
		return time.Time{}, nil
	}
	return got.KeptAfter, err
}
