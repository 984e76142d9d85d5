package threeport

import (
	"encoding/json"
	"time"
)

// The operations of [WorkloadResourceInstance.LastOperation].
const (
	OperationAdded    = "ADDED"
	OperationModified = "MODIFIED"
	OperationDeleted  = "DELETED"
)

// In every object a nil field is left out of the request, and the server then
// leaves the stored value alone. ID, CreatedAt and UpdatedAt belong to the
// server, which refuses a request that carries them: the client never sends
// them. IDs are int64 beyond 2^53 and must not pass through a float.

// WorkloadInstance is a deployed workload.
type WorkloadInstance struct {
	ID         *int64     `json:"ID,omitempty"`
	CreatedAt  *time.Time `json:"CreatedAt,omitempty"`
	UpdatedAt  *time.Time `json:"UpdatedAt,omitempty"`
	Name       *string    `json:"Name,omitempty"`
	Status     *string    `json:"Status,omitempty"`
	Reconciled *bool      `json:"Reconciled,omitempty"`
}

// HelmWorkloadInstance is a workload deployed from a Helm chart.
type HelmWorkloadInstance struct {
	ID         *int64     `json:"ID,omitempty"`
	CreatedAt  *time.Time `json:"CreatedAt,omitempty"`
	UpdatedAt  *time.Time `json:"UpdatedAt,omitempty"`
	Name       *string    `json:"Name,omitempty"`
	Status     *string    `json:"Status,omitempty"`
	Reconciled *bool      `json:"Reconciled,omitempty"`
}

// WorkloadResourceInstance is one Kubernetes resource of a [WorkloadInstance].
type WorkloadResourceInstance struct {
	ID        *int64     `json:"ID,omitempty"`
	CreatedAt *time.Time `json:"CreatedAt,omitempty"`
	UpdatedAt *time.Time `json:"UpdatedAt,omitempty"`

	// JSONDefinition is the resource as it was asked for. Required on create.
	JSONDefinition json.RawMessage `json:"JSONDefinition,omitempty"`

	// WorkloadInstanceID is the instance the resource belongs to. Required on
	// create.
	WorkloadInstanceID *int64 `json:"WorkloadInstanceID,omitempty"`

	// LastOperation is ADDED, MODIFIED or DELETED.
	LastOperation *string `json:"LastOperation,omitempty"`

	// RuntimeDefinition is the object in the cluster, as any JSON. The server
	// normalises its key order: compare it semantically.
	RuntimeDefinition json.RawMessage `json:"RuntimeDefinition,omitempty"`

	Reconciled           *bool      `json:"Reconciled,omitempty"`
	ScheduledForDeletion *time.Time `json:"ScheduledForDeletion,omitempty"`
}

// WorkloadEvent is one Kubernetes Event of a workload. The first five fields
// after UpdatedAt are required on create; the strings among them may be empty.
type WorkloadEvent struct {
	ID        *int64     `json:"ID,omitempty"`
	CreatedAt *time.Time `json:"CreatedAt,omitempty"`
	UpdatedAt *time.Time `json:"UpdatedAt,omitempty"`

	// RuntimeEventUID is the UID of the Kubernetes Event.
	RuntimeEventUID *string `json:"RuntimeEventUID,omitempty"`
	Type            *string `json:"Type,omitempty"`
	Reason          *string `json:"Reason,omitempty"`
	Message         *string `json:"Message,omitempty"`

	// Timestamp is when the Event happened last. It is sent as RFC 3339 in UTC
	// with its sub-second part.
	Timestamp *time.Time `json:"Timestamp,omitempty"`

	WorkloadInstanceID         *int64 `json:"WorkloadInstanceID,omitempty"`
	WorkloadResourceInstanceID *int64 `json:"WorkloadResourceInstanceID,omitempty"`
	HelmWorkloadInstanceID     *int64 `json:"HelmWorkloadInstanceID,omitempty"`
}

// Response is the envelope of every answer, success and error alike. The
// router's own 404 and 405 are the exception: a bare {"message":"Not Found"}.
type Response[T any] struct {
	Meta   Meta    `json:"Meta"`
	Type   string  `json:"Type"`
	Data   Rows[T] `json:"Data"`
	Status Status  `json:"Status"`
}

// Meta counts the rows of an answer; all zero on an error.
type Meta struct {
	Page       int   `json:"Page"`
	Size       int   `json:"Size"`
	TotalCount int64 `json:"TotalCount"`
}

// Status repeats the HTTP status; Error says what was wrong with the request.
type Status struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Error   string `json:"error"`
}
