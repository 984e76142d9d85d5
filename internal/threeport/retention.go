package threeport

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// EventsKeptAfter returns the time up to which a server prunes Events of a workload, however often they are sent. It is zero
// for a server without that endpoint: one of v0, or one that forbids agents unknown paths.
func (c *Client) EventsKeptAfter(ctx context.Context, instance Instance) (time.Time, error) {
	got, err := ask[EventRetention](ctx, c, request{
		op: "find event retention", method: http.MethodGet,
		path:    fmt.Sprintf("/v0/workloads/%s/%d/event-retention", instance.Type, int64(instance.ID)),
		objects: 1, maxAnswer: 64 << 10,
	}, nil)
	switch StatusOf(err) {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusForbidden:
		return time.Time{}, nil
	}
	return got.KeptAfter, err
}
