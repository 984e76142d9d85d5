package threeport

import (
	"encoding/json"
	"time"
)

// Workload is a row of the list of workloads.
type Workload struct {
	Instance
	Name string `json:"name"`
	// ClusterUID is the cluster that reports on the workload; none before its first report.
	ClusterUID string `json:"clusterUID,omitempty"`
	// ClusterName is the name that people gave the cluster.
	ClusterName string `json:"clusterName,omitempty"`
	// Status is the status to show: Unknown while the agent is silent.
	Status string `json:"status"`
	// Said is the last reported status; it differs from Status while the agent is silent.
	Said string `json:"said,omitempty"`
	// Reason is a word for the cause.
	Reason string `json:"reason,omitempty"`
	// Cause is a sentence about the fault, along the chain of objects.
	Cause string `json:"cause,omitempty"`
	// Since is when the last reported status became what it is: that of Said, if it differs from Status.
	Since *time.Time `json:"since,omitempty"`
	// CauseSince is when the reason became what it is; the reasons of a crash loop are one. There is none without a reason, and if
	// an earlier release received the reason.
	CauseSince *time.Time `json:"causeSince,omitempty"`
	// Resources counts the listed objects, and Pods the Pods, of the last reported tree; none before the first.
	Resources *Count `json:"resources,omitempty"`
	Pods      *Count `json:"pods,omitempty"`
	// Filtered counts the derived objects that a filter of the agent leaves out of the tree.
	Filtered int64 `json:"filtered,omitempty"`
	// Namespaces are those of the listed objects, by name: the first 10.
	Namespaces []string `json:"namespaces,omitempty"`
	// SaidAt is when the agent last reported the status.
	SaidAt *time.Time `json:"saidAt,omitempty"`
	// HeardAt is when the cluster's agent last sent a report set; none for agents that know v0 only.
	HeardAt *time.Time `json:"heardAt,omitempty"`
	// DelaySeconds is the agent's delay of delivery in its last report set.
	DelaySeconds float64 `json:"delaySeconds"`
	// Silent is true while the agent has not reported for too long.
	Silent bool `json:"silent,omitempty"`
	// Pending counts the workload's reports that are not delivered.
	Pending int64 `json:"pending,omitempty"`
	// Rejected counts those that were rejected.
	Rejected int64 `json:"rejected,omitempty"`
	// Dropped counts its Events that were lost.
	Dropped int64 `json:"dropped,omitempty"`
	// Changed grows with each change of the row; microseconds since 1970.
	Changed ID `json:"changed"`
	// Gone is true in a watch if the workload is deleted, or no longer matches the filter.
	Gone bool `json:"gone,omitempty"`
}

// Count is a number of objects, and of the Healthy ones among them.
type Count struct {
	Total   int64 `json:"total"`
	Healthy int64 `json:"healthy"`
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
	// Created is when the cluster created it; none for an object without a definition.
	Created *time.Time `json:"created,omitempty"`
	// SpecChanged is when the API received the latest change of its spec; none if no change is known, and for a deleted object.
	SpecChanged *time.Time `json:"specChanged,omitempty"`
	// Deleted is when the API received its deletion; none for an object without a definition.
	Deleted *time.Time `json:"deleted,omitempty"`
	// Gone is when a tree first lacked it. It is deleted, unlisted, or a ReplicaSet without Pods.
	Gone *time.Time `json:"gone,omitempty"`
	// Defined is true if its definition can be read.
	Defined bool `json:"defined,omitempty"`
}

// WorkloadDetail is all of a workload but its Events and definitions.
type WorkloadDetail struct {
	Workload Workload `json:"workload"`
	// Silences are when the agent of its cluster did not report, at most 100, newest first. They do not include the present one.
	// Earlier ones can be older than the workload.
	Silences []Silence `json:"silences,omitempty"`
	Objects  []Object  `json:"objects"`
}

// Silence is a time without a report of an agent, from its last report to its next one.
type Silence struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// TimelineEvent is an Event as it is kept.
type TimelineEvent struct {
	// ID is that of the row in v0.
	ID ID `json:"id"`
	EventReport
}

// EventRetention says which Events of a workload are not kept.
type EventRetention struct {
	// KeptAfter is the time up to which Events are not kept, by their last occurrence. They are too old, or other Events that
	// are not older reach the limit.
	KeptAfter time.Time `json:"keptAfter"`
}

// Definition is an object of a cluster, now and before the latest change of its spec. The spec is everything but the status and
// the metadata that controllers write.
type Definition struct {
	// Instance is the workload of the object.
	Instance Instance  `json:"instance"`
	Object   ObjectRef `json:"object"`
	// Operation is the last one: ADDED, MODIFIED or DELETED.
	Operation string `json:"operation"`
	// Version is the object's resource version.
	Version ID `json:"version"`
	// At is when the API received the current definition.
	At time.Time `json:"at"`
	// ChangedAt is when the API first received the current spec, or the deletion. It is absent if an earlier release received it.
	ChangedAt *time.Time `json:"changedAt,omitempty"`
	// PreviousAt is when the API received the previous definition.
	PreviousAt *time.Time `json:"previousAt,omitempty"`
	// Current is the object as JSON; none if it is deleted.
	Current json.RawMessage `json:"current,omitempty"`
	// Previous is the object before the latest change of its spec, or before its deletion. Edits less than a minute apart are one change.
	// It is absent if no change is known.
	Previous json.RawMessage `json:"previous,omitempty"`
}

// Cluster is a cluster whose agent has reported.
type Cluster struct {
	Agent
	// HeardAt is when the agent last sent a report set.
	HeardAt time.Time `json:"heardAt"`
	// Silent is true while the agent has not reported for too long.
	Silent bool `json:"silent"`
	// Workloads counts the workloads of the cluster.
	Workloads int64 `json:"workloads"`
}

// ReleasedCluster is a cluster that was deleted from the control plane.
type ReleasedCluster struct {
	// ClusterUID is the UID of its namespace kube-system.
	ClusterUID string `json:"clusterUID"`
	// Workloads counts the workloads of the cluster. They now belong to no cluster.
	Workloads int64 `json:"workloads"`
}

// Assignment is the cluster of a workload.
type Assignment struct {
	Instance Instance `json:"instance"`
	// ClusterUID is the UID of its namespace kube-system. It is absent if the workload is not assigned to a cluster.
	ClusterUID string `json:"clusterUID,omitempty"`
	// PreviousClusterUID is the cluster before the request; absent if there was none.
	PreviousClusterUID string `json:"previousClusterUID,omitempty"`
}

// AssignedCluster is the cluster that a workload is to be assigned to.
type AssignedCluster struct {
	// ClusterUID is the UID of its namespace kube-system.
	ClusterUID string `json:"clusterUID" minLength:"1" maxLength:"128" pattern:"^[!-~]+$" patternDescription:"ASCII without spaces"`
}
