package controlplane

import (
	"encoding/json"
	"time"
)

// Workload is a row of the board.
type Workload struct {
	Instance
	Name        string `json:"name"`
	ClusterUID  string `json:"clusterUID,omitempty"`
	ClusterName string `json:"clusterName,omitempty"`
	// Status is what is to be shown: Unknown if the agent has fallen silent.
	Status string `json:"status"`
	// Said is what was reported last; it differs from Status while the agent is silent.
	Said   string `json:"said,omitempty"`
	Reason string `json:"reason,omitempty"`
	Cause  string `json:"cause,omitempty"`
	// Since is when the status became what it is, SaidAt when the agent told of it last.
	Since  *time.Time `json:"since,omitempty"`
	SaidAt *time.Time `json:"saidAt,omitempty"`
	// HeardAt is when the cluster's agent was heard last, DelaySeconds its delay of delivery then; nil and 0 for agents
	// that know v0 only.
	HeardAt      *time.Time `json:"heardAt,omitempty"`
	DelaySeconds float64    `json:"delaySeconds"`
	Silent       bool       `json:"silent,omitempty"`
	Pending      int64      `json:"pending,omitempty"`
	Rejected     int64      `json:"rejected,omitempty"`
	Dropped      int64      `json:"dropped,omitempty"`
	// Changed grows with each change of the row; microseconds since 1970.
	Changed ID `json:"changed"`
	// Gone is true in a watch if the workload is deleted, or does not match the filter any more.
	Gone bool `json:"gone,omitempty"`
}

// List is a page of rows. Next is the cursor of the next page; empty on the last.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
	// Total counts the rows on all pages.
	Total int64 `json:"total"`
}

// Object is a node of a workload's tree.
type Object struct {
	TreeObject
	// Since is when its health became what it is, Gone when it was found to be gone.
	Since *time.Time `json:"since,omitempty"`
	Gone  *time.Time `json:"gone,omitempty"`
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
	ID ID `json:"id"`
	EventReport
}

// Definition is an object as its cluster has it, and as it was before its latest change.
type Definition struct {
	Instance  Instance  `json:"instance"`
	Object    ObjectRef `json:"object"`
	Operation string    `json:"operation"`
	Version   ID        `json:"version"`
	// At is when the current one came, PreviousAt when the one before it did.
	At         time.Time       `json:"at"`
	PreviousAt *time.Time      `json:"previousAt,omitempty"`
	Current    json.RawMessage `json:"current,omitempty"`
	Previous   json.RawMessage `json:"previous,omitempty"`
}

// Cluster is one whose agent has been heard.
type Cluster struct {
	Agent
	HeardAt   time.Time `json:"heardAt"`
	Silent    bool      `json:"silent"`
	Workloads int64     `json:"workloads"`
}
