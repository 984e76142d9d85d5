package controlplane

import (
	"context"
	"fmt"
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

// acknowledged is the part of an updated object that is read: its
// RuntimeDefinition comes back with it and is skipped.
type acknowledged struct {
	ID *int64 `json:"ID"`
}

// patch updates one row; the server leaves omitted fields alone. Repeating it
// is harmless, so its errors are never ambiguous.
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

// GetWorkloadResourceInstance reads one row. Compare its RuntimeDefinition
// semantically: the server normalises it.
func (c *Client) GetWorkloadResourceInstance(ctx context.Context, id int64) (WorkloadResourceInstance, error) {
	q := request{
		op:     fmt.Sprintf("get workload resource instance %d", id),
		method: http.MethodGet,
		path:   row(workloadResourceInstancesPath, id),
	}
	got, _, err := sendOne[WorkloadResourceInstance](ctx, c, q)
	if err == nil && (got.ID == nil || *got.ID != id) {
		return WorkloadResourceInstance{}, malformed(q, http.StatusOK)
	}
	return got, err
}

// CreateWorkloadEvent creates a row and returns its ID. Created is false if a server
// on which RuntimeEventUID is unique answered with the row that it had already, and
// left as it was. Nil strings among the
// required fields are sent as empty ones; Timestamp must be set. It is the one
// request that is not idempotent: see [Ambiguous].
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

// FindWorkloadEvent looks for the row of a Kubernetes Event. v0 may hold several
// for one UID; the oldest wins, so that every caller settles on the same.
//
// A server ignores filters that it does not know, and then answers with any
// rows. Such an answer proves nothing, and is a permanent error.
func (c *Client) FindWorkloadEvent(ctx context.Context, runtimeEventUID string) (id int64, found bool, err error) {
	q := request{op: "find workload event", method: http.MethodGet, path: workloadEventsPath}
	uid := cleanText(runtimeEventUID)
	if uid == "" {
		// An empty filter value selects everything.
		return 0, false, &Error{Op: q.op, Unsendable: true, Message: "RuntimeEventUID is empty"}
	}
	// No page or size: the first 50 rows, oldest first, are the default.
	q.query = map[string]string{"runtimeeventuid": uid}
	rows, _, err := send[struct {
		ID              *int64
		RuntimeEventUID *string
	}](ctx, c, q)
	if err != nil {
		return 0, false, err
	}
	for _, row := range rows {
		if row.ID == nil || row.RuntimeEventUID == nil || *row.RuntimeEventUID != uid {
			continue
		}
		if !found || *row.ID < id {
			id, found = *row.ID, true
		}
	}
	if !found && len(rows) > 0 {
		return 0, false, &Error{Op: q.op, Unsendable: true, Message: "the server does not filter by runtimeeventuid"}
	}
	return id, found, nil
}
