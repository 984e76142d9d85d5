package threeport

import (
	"encoding/json"
	"time"
)

// Workload is a row of the board.
type Workload struct {
	Instance
	Name string `json:"name"`
	// ClusterUID is the cluster that reports of it; none until one has.
	ClusterUID string `json:"clusterUID,omitempty"`
	// ClusterName is for people.
	ClusterName string `json:"clusterName,omitempty"`
	// Status is what is to be shown: Unknown if the agent has fallen silent.
	Status string `json:"status"`
	// Said is what was reported last; it differs from Status while the agent is silent.
	Said string `json:"said,omitempty"`
	// Reason is a word for the cause.
	Reason string `json:"reason,omitempty"`
	// Cause is a sentence: what is wrong, along the chain of objects.
	Cause string `json:"cause,omitempty"`
	// Since is when the status became what it is.
	Since *time.Time `json:"since,omitempty"`
	// SaidAt is when the agent told of the status last.
	SaidAt *time.Time `json:"saidAt,omitempty"`
	// HeardAt is when the cluster's agent was heard last; none for agents that know v0 only.
	HeardAt *time.Time `json:"heardAt,omitempty"`
	// DelaySeconds is the agent's delay of delivery when it was heard last.
	DelaySeconds float64 `json:"delaySeconds"`
	// Silent is true while the agent has not been heard for too long.
	Silent bool `json:"silent,omitempty"`
	// Pending counts the workload's reports that are not delivered.
	Pending int64 `json:"pending,omitempty"`
	// Rejected counts those that were refused for good.
	Rejected int64 `json:"rejected,omitempty"`
	// Dropped counts its Events that were lost.
	Dropped int64 `json:"dropped,omitempty"`
	// Changed grows with each change of the row; microseconds since 1970.
	Changed ID `json:"changed"`
	// Gone is true in a watch if the workload is deleted, or does not match the filter any more.
	Gone bool `json:"gone,omitempty"`
}

// List is a page of rows.
type List[T any] struct {
	Items []T `json:"items"`
	// Next is the cursor of the next page; none on the last.
	Next string `json:"next,omitempty"`
	// Total counts the rows on all pages.
	Total int64 `json:"total"`
}

// Object is a node of a workload's tree.
type Object struct {
	TreeObject
	// Since is when its health became what it is.
	Since *time.Time `json:"since,omitempty"`
	// Gone is when it was found to be gone.
	Gone *time.Time `json:"gone,omitempty"`
	// Defined is true if its definition can be read.
	Defined bool `json:"defined,omitempty"`
}

// WorkloadDetail is all of a workload but its Events and definitions.
type WorkloadDetail struct {
	Workload Workload `json:"workload"`
	Objects  []Object `json:"objects"`
}

// TimelineEvent is an Event as it is kept.
type TimelineEvent struct {
	// ID is that of the row in v0.
	ID ID `json:"id"`
	EventReport
}

// EventRetention says which Events of a workload are not kept.
type EventRetention struct {
	// KeptAfter is the time up to which they are not, by when they happened last: they are too old, or there are as many as
	// may be kept that are not older.
	KeptAfter time.Time `json:"keptAfter"`
}

// Definition is an object as its cluster has it, and as it was before its latest change.
type Definition struct {
	// Instance is the workload that it is of.
	Instance Instance  `json:"instance"`
	Object   ObjectRef `json:"object"`
	// Operation is the last one: ADDED, MODIFIED or DELETED.
	Operation string `json:"operation"`
	// Version is the object's resource version.
	Version ID `json:"version"`
	// At is when the current one came.
	At time.Time `json:"at"`
	// PreviousAt is when the one before it came.
	PreviousAt *time.Time `json:"previousAt,omitempty"`
	// Current is the object as JSON; none if it is deleted.
	Current json.RawMessage `json:"current,omitempty"`
	// Previous is the object before its latest change.
	Previous json.RawMessage `json:"previous,omitempty"`
}

// Cluster is one whose agent has been heard.
type Cluster struct {
	Agent
	// HeardAt is when the agent was heard last.
	HeardAt time.Time `json:"heardAt"`
	// Silent is true while the agent has not been heard for too long.
	Silent bool `json:"silent"`
	// Workloads counts those that are its.
	Workloads int64 `json:"workloads"`
}

// ReleasedCluster is one that was forgotten.
type ReleasedCluster struct {
	// ClusterUID is the UID of its namespace kube-system.
	ClusterUID string `json:"clusterUID"`
	// Workloads counts those that were its, and are nobody's now.
	Workloads int64 `json:"workloads"`
}
