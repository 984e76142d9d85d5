package threeport

import (
	"context"
	"net/http"
	"strconv"
)

const (
	workloadInstancesPath         = "/v0/workload-instances"
	helmWorkloadInstancesPath     = "/v0/helm-workload-instances"
	workloadResourceInstancesPath = "/v0/workload-resource-instances"
	workloadEventsPath            = "/v0/workload-events"
)

func row(path string, id int64) string { return path + "/" + strconv.FormatInt(id, 10) }

// acknowledged is the part of an updated object that is decoded. Its RuntimeDefinition is skipped.
type acknowledged struct {
	ID *int64 `json:"ID"`
}

// patch updates one row. The server keeps the values of omitted fields. A repeat does no harm.
func (c *Client) patch(ctx context.Context, op, path string, id int64, body any) error {
	q := request{op: op + " " + strconv.FormatInt(id, 10), method: http.MethodPatch, path: row(path, id), body: body}
	got, _, err := sendOne[acknowledged](ctx, c, q)
	if err != nil {
		return err
	}
	if got.ID == nil || *got.ID != id {
		return malformed(q, http.StatusOK)
	}
	return nil
}

// UpdateWorkloadInstanceStatus sets the instance's status. Upstream controllers
// may be notified of each update, so call it only when the status changed.
func (c *Client) UpdateWorkloadInstanceStatus(ctx context.Context, id int64, status string) error {
	return c.patch(ctx, "update workload instance", workloadInstancesPath, id,
		WorkloadInstance{Status: new(cleanText(status))})
}

// UpdateHelmWorkloadInstanceStatus is [Client.UpdateWorkloadInstanceStatus] for
// a Helm workload.
func (c *Client) UpdateHelmWorkloadInstanceStatus(ctx context.Context, id int64, status string) error {
	return c.patch(ctx, "update helm workload instance", helmWorkloadInstancesPath, id,
		HelmWorkloadInstance{Status: new(cleanText(status))})
}

// UpdateWorkloadResourceInstance sets the fields of patch that are not nil:
// LastOperation and RuntimeDefinition. A JSON null counts as nil.
func (c *Client) UpdateWorkloadResourceInstance(ctx context.Context, id int64, patch WorkloadResourceInstance) error {
	const op = "update workload resource instance"
	patch, err := patch.clean()
	if err != nil {
		return &Error{Op: op, Unsendable: true, Err: err}
	}
	return c.patch(ctx, op, workloadResourceInstancesPath, id, patch)
}

// read gets one row. An answer with another ID is an error.
func read[T any](ctx context.Context, c *Client, op, path string, id int64, idOf func(T) *int64) (T, error) {
	q := request{op: op + " " + strconv.FormatInt(id, 10), method: http.MethodGet, path: row(path, id)}
	got, _, err := sendOne[T](ctx, c, q)
	if err != nil {
		return got, err
	}
	if found := idOf(got); found == nil || *found != id {
		var none T
		return none, malformed(q, http.StatusOK)
	}
	return got, nil
}

// GetWorkloadInstance reads one row.
func (c *Client) GetWorkloadInstance(ctx context.Context, id int64) (WorkloadInstance, error) {
	return read(ctx, c, "get workload instance", workloadInstancesPath, id,
		func(r WorkloadInstance) *int64 { return r.ID })
}

// GetHelmWorkloadInstance reads one row.
func (c *Client) GetHelmWorkloadInstance(ctx context.Context, id int64) (HelmWorkloadInstance, error) {
	return read(ctx, c, "get helm workload instance", helmWorkloadInstancesPath, id,
		func(r HelmWorkloadInstance) *int64 { return r.ID })
}

// unread is a field of an answer that is not decoded.
type unread struct{}

// UnmarshalJSON ignores the value.
func (*unread) UnmarshalJSON([]byte) error { return nil }

// GetWorkloadResourceInstance reads one row, without its JSONDefinition: that of a Secret has the data, which must not stay in
// memory. [WorkloadResourceInstance.Changes] compares the other fields.
func (c *Client) GetWorkloadResourceInstance(ctx context.Context, id int64) (WorkloadResourceInstance, error) {
	type reported struct {
		WorkloadResourceInstance
		JSONDefinition unread `json:"JSONDefinition"` // in place of the embedded one
	}
	got, err := read(ctx, c, "get workload resource instance", workloadResourceInstancesPath, id,
		func(r reported) *int64 { return r.ID })
	return got.WorkloadResourceInstance, err
}

// CreateWorkloadEvent creates a row and returns its ID. Created is false if RuntimeEventUID is unique on the server, and the
// server answered with an existing row, which it did not change. Nil strings among the required fields are sent as empty
// ones. Timestamp must be set. This request alone is not idempotent: a failed
// one may have created the row.
func (c *Client) CreateWorkloadEvent(ctx context.Context, event WorkloadEvent) (id int64, created bool, err error) {
	q := request{op: "create workload event", method: http.MethodPost, path: workloadEventsPath}
	event, err = event.clean()
	if err == nil {
		event, err = event.complete()
	}
	if err != nil {
		return 0, false, &Error{Op: q.op, Unsendable: true, Err: err}
	}
	q.body = event
	got, status, err := sendOne[acknowledged](ctx, c, q)
	if err != nil {
		return 0, false, err
	}
	if got.ID == nil {
		return 0, false, malformed(q, http.StatusCreated)
	}
	return *got.ID, status == http.StatusCreated, nil
}

// UpdateWorkloadEvent sets the fields of event that are not nil.
func (c *Client) UpdateWorkloadEvent(ctx context.Context, id int64, event WorkloadEvent) error {
	const op = "update workload event"
	event, err := event.clean()
	if err != nil {
		return &Error{Op: op, Unsendable: true, Err: err}
	}
	return c.patch(ctx, op, workloadEventsPath, id, event)
}

// FindWorkloadEvent looks for the row of a Kubernetes Event. v0 may have several rows for one UID. The oldest one is returned,
// so that all callers use the same.
//
// A server ignores unknown filters and answers with any rows. Such an answer is a permanent error.
func (c *Client) FindWorkloadEvent(ctx context.Context, runtimeEventUID string) (id int64, found bool, err error) {
	q := request{op: "find workload event", method: http.MethodGet, path: workloadEventsPath}
	uid := cleanText(runtimeEventUID)
	if uid == "" {
		// An empty filter value selects everything.
		return 0, false, &Error{Op: q.op, Unsendable: true, Message: "RuntimeEventUID is empty"}
	}
	// No page or size: the first 50 rows, oldest first, are the default.
	q.query = map[string]string{"runtimeeventuid": uid}
	answer, _, err := send[struct {
		ID              *int64
		RuntimeEventUID *string
	}](ctx, c, q)
	if err != nil {
		return 0, false, err
	}
	for _, row := range answer.Data {
		if row.ID == nil || row.RuntimeEventUID == nil || *row.RuntimeEventUID != uid {
			continue
		}
		if !found || *row.ID < id {
			id, found = *row.ID, true
		}
	}
	if !found && len(answer.Data) > 0 {
		return 0, false, unfiltered(q, "runtimeeventuid")
	}
	return id, found, nil
}

// unfiltered is the error of an answer with rows that do not match a filter.
func unfiltered(q request, filter string) *Error {
	return &Error{Op: q.op, Unsendable: true, Message: "the server does not filter by " + filter}
}

// EventFilter selects the rows of Events that match all values that are not zero. At least one has to be set.
type EventFilter struct {
	RuntimeEventUID        string
	WorkloadInstanceID     int64
	HelmWorkloadInstanceID int64
}

// query returns the filter as the query of a list.
func (f EventFilter) query() map[string]string {
	query := map[string]string{}
	if f.RuntimeEventUID != "" {
		query["runtimeeventuid"] = cleanText(f.RuntimeEventUID)
	}
	if f.WorkloadInstanceID != 0 {
		query["workloadinstanceid"] = strconv.FormatInt(f.WorkloadInstanceID, 10)
	}
	if f.HelmWorkloadInstanceID != 0 {
		query["helmworkloadinstanceid"] = strconv.FormatInt(f.HelmWorkloadInstanceID, 10)
	}
	return query
}

// ignored returns the name of a filter that a row does not match, or "".
func (f EventFilter) ignored(row WorkloadEvent) string {
	is := func(id *int64, want int64) bool { return want == 0 || id != nil && *id == want }
	switch uid := row.RuntimeEventUID; {
	case f.RuntimeEventUID != "" && (uid == nil || *uid != cleanText(f.RuntimeEventUID)):
		return "runtimeeventuid"
	case !is(row.WorkloadInstanceID, f.WorkloadInstanceID):
		return "workloadinstanceid"
	case !is(row.HelmWorkloadInstanceID, f.HelmWorkloadInstanceID):
		return "helmworkloadinstanceid"
	}
	return ""
}

// ListWorkloadEvents returns one page of the rows that match a filter, by ascending ID, and the number of rows on all pages.
// Pages count from 1. Every row has an ID. The rows of a server that ignored the filter are a permanent error, as in
// [Client.FindWorkloadEvent].
func (c *Client) ListWorkloadEvents(
	ctx context.Context, filter EventFilter, page, size int,
) (rows []WorkloadEvent, total int64, err error) {
	q := request{op: "list workload events", method: http.MethodGet, path: workloadEventsPath, query: filter.query()}
	if len(q.query) == 0 {
		return nil, 0, &Error{Op: q.op, Unsendable: true, Message: "no filter is given"}
	}
	q.query["page"], q.query["size"] = strconv.Itoa(page), strconv.Itoa(size)
	answer, _, err := send[WorkloadEvent](ctx, c, q)
	if err != nil {
		return nil, 0, err
	}
	for _, row := range answer.Data {
		if row.ID == nil {
			return nil, 0, malformed(q, http.StatusOK)
		}
		if name := filter.ignored(row); name != "" {
			return nil, 0, unfiltered(q, name)
		}
	}
	if answer.Meta.TotalCount < int64(len(answer.Data)) {
		return nil, 0, malformed(q, http.StatusOK)
	}
	return answer.Data, answer.Meta.TotalCount, nil
}
