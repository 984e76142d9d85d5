package threeport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// ID is a row's ID, or a version. A JSON number in a browser cannot hold its 64 bits, so it is a string in the report sets
// and in everything that a page reads. In v0 it is a number.
type ID int64

// MarshalText writes the ID in decimal.
func (id ID) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(id), 10), nil }

// maxDigits is how many a decimal of 64 bits has at most.
const maxDigits = 19

// UnmarshalText reads a decimal of 64 bits, with an optional minus and at most 19 digits.
func (id *ID) UnmarshalText(text []byte) error {
	digits := bytes.TrimPrefix(text, []byte("-"))
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || digits[0] == '+' || len(digits) > maxDigits {
		return fmt.Errorf("%q is not a decimal integer of 64 bits", shorten(string(text)))
	}
	*id = ID(n)
	return nil
}

// The types of an [Instance].
const (
	TypeWorkloadInstance     = "WorkloadInstance"
	TypeHelmWorkloadInstance = "HelmWorkloadInstance"
)

// Instance names a workload's row.
type Instance struct {
	Type string `json:"type" enum:"WorkloadInstance,HelmWorkloadInstance"`
	// ID is the ID of the row, the same as in v0.
	ID ID `json:"id"`
}

// ReportSet has the reports that an agent sends in one request. It is also a heartbeat, so it may be empty.
//
// Each report has a key and a version, and is taken only if it is newer than the stored one. So a set can be sent again
// in whole or in part, by any agent, any number of times. A repeat duplicates nothing, and restores no earlier state.
type ReportSet struct {
	Agent Agent `json:"agent"`
	// Reports are answered one by one, in this order. Among several with one key the newest counts, at any position: the
	// others are answered as if it had been stored before.
	Reports []Report `json:"reports" maxItems:"1000"`
}

// Agent is the sender of a report set, and its delay.
type Agent struct {
	// ClusterUID is the UID of the cluster's namespace kube-system.
	ClusterUID string `json:"clusterUID" minLength:"1" maxLength:"128"`
	// ClusterName is the name that people gave the cluster.
	ClusterName string `json:"clusterName,omitempty" maxLength:"253"`
	// Version is the agent's.
	Version string `json:"version,omitempty" maxLength:"128"`
	// Time is the agent's clock.
	Time time.Time `json:"time"`
	// DelaySeconds is the age of the oldest report that is not delivered; 0 if all are. Reports do not count that wait because their
	// instance or resource is unknown or not assigned.
	DelaySeconds float64 `json:"delaySeconds" minimum:"0"`
	// Pending counts the reports that are not delivered.
	Pending int64 `json:"pending" minimum:"0"`
	// DeadLetters counts those that were rejected.
	DeadLetters int64 `json:"deadLetters" minimum:"0"`
	// Dropped counts the Events that were dropped since the agent started because no more may be kept.
	Dropped int64 `json:"dropped" minimum:"0"`
}

// Report is an operation, an Event, a status or a tree: exactly one of its last four fields is set.
type Report struct {
	// Instance is the workload of the report. It must exist, and must not belong to another cluster.
	Instance Instance `json:"instance"`
	// Version orders the reports of one key.
	Version ID `json:"version"`
	// Traceparent is the trace of a sampled report, as in the header of that name in W3C Trace Context. The server ignores an invalid
	// one. Agents send it only if the versions of report sets list the feature traceparent.
	Traceparent string `json:"traceparent,omitempty" maxLength:"256"`

	Operation *OperationReport `json:"operation,omitempty"`
	Event     *EventReport     `json:"event,omitempty"`
	Status    *StatusReport    `json:"status,omitempty"`
	Tree      *TreeReport      `json:"tree,omitempty"`
}

// ObjectRef names an object of a cluster.
type ObjectRef struct {
	// Group is that of its API; empty for the core group.
	Group   string `json:"group,omitempty" maxLength:"253"`
	Version string `json:"version,omitempty" maxLength:"63"`
	Kind    string `json:"kind" maxLength:"253"`
	// Namespace is empty for an object of the whole cluster.
	Namespace string `json:"namespace,omitempty" maxLength:"253"`
	Name      string `json:"name" maxLength:"253"`
	// UID is empty if the object does not exist.
	UID string `json:"uid,omitempty" maxLength:"128"`
}

// OperationReport is the newest state of a listed object. Its key is the cluster and the object's UID, its version the
// object's resource version.
//
// Deletion is the end of a UID, whatever its version: after it nothing of that UID is taken. Between two UIDs of one
// resource, which was deleted and created again, the version decides.
type OperationReport struct {
	// ResourceInstanceID is the resource's row; 0 for a resource of a Helm workload, which has none.
	ResourceInstanceID ID        `json:"resourceInstanceID,omitempty"`
	Object             ObjectRef `json:"object"`
	// Operation is ADDED, MODIFIED or DELETED.
	Operation string `json:"operation" enum:"ADDED,MODIFIED,DELETED"`
	// Definition is the object as JSON, of at most 4 MiB; none if it is deleted.
	Definition json.RawMessage `json:"definition,omitempty"`
}

// EventReport is an Event of the cluster, or one that the agent made, in its newest version: a repeat updates it. Its
// key is the Event's UID, its version the Event's resource version.
type EventReport struct {
	UID string `json:"uid" minLength:"1" maxLength:"256"`
	// ResourceInstanceID is the row of the listed resource that is the involved object, or its ancestor; 0 for none.
	ResourceInstanceID ID `json:"resourceInstanceID,omitempty"`
	// Involved is the object that the Event is about.
	Involved ObjectRef `json:"involved"`
	// Derived is true for an Event of the cluster about an object that is not listed itself. v0 has no field for the involved object, and
	// puts its kind and name before the message then.
	Derived bool `json:"derived,omitempty"`
	// Type is Normal or Warning.
	Type string `json:"type" maxLength:"64"`
	// Reason is a word.
	Reason  string `json:"reason" maxLength:"256"`
	Message string `json:"message" maxLength:"65536"`
	// Time is when it happened last.
	Time time.Time `json:"time"`
	// FirstTime is when it happened first.
	FirstTime *time.Time `json:"firstTime,omitempty"`
	// Count is how often it happened.
	Count int64 `json:"count,omitempty" minimum:"0"`
	// Gap is set if the Event counts other Events that are not reported: reason EventsDropped or EventsFiltered.
	Gap *Gap `json:"gap,omitempty"`
}

// Gap counts Events that were dropped because no more may be kept, or that a filter leaves out, and says when these had happened.
type Gap struct {
	// Normal counts those of type Normal.
	Normal int64 `json:"normal" minimum:"0"`
	// Warning counts those of type Warning.
	Warning int64 `json:"warning" minimum:"0"`
	// First is when the first of them had happened.
	First time.Time `json:"first"`
	// Last is when the last of them had happened.
	Last time.Time `json:"last"`
}

// StatusReport is the verdict on a workload. Its key is the workload, its version a time of the agent's in microseconds
// that only grows, at most 100 years from now.
type StatusReport struct {
	// Status is one word for all of the workload.
	Status string `json:"status" enum:"Healthy,Reconciling,Unhealthy,Down,Error,Unknown"`
	// Reason is a word for the cause.
	Reason string `json:"reason,omitempty" maxLength:"256"`
	// Cause is a sentence about the fault, along the chain of objects.
	Cause string `json:"cause,omitempty" maxLength:"65536"`
	// Since is when the status became what it is; none if that is not known.
	Since *time.Time `json:"since,omitempty"`
	// CauseSince is when the reason became what it is; none if that is not known.
	CauseSince *time.Time `json:"causeSince,omitempty"`
	// Pending counts the workload's reports that are not delivered.
	Pending int64 `json:"pending,omitempty" minimum:"0"`
	// Rejected counts those that were rejected.
	Rejected int64 `json:"rejected,omitempty" minimum:"0"`
	// Dropped counts its Events that were lost.
	Dropped int64 `json:"dropped,omitempty" minimum:"0"`
}

// TreeReport is all objects of a workload, listed and derived, at one moment, without ReplicaSets that have no Pods. Its key is
// the workload, its version like that of a status. An object of an earlier report that this one does not have is gone.
type TreeReport struct {
	// Objects are in no order.
	Objects []TreeObject `json:"objects" maxItems:"20000"`
	// Filtered counts the derived objects that a filter of the agent leaves out. Agents send it only if the versions of report sets
	// list the feature filtered.
	Filtered int64 `json:"filtered,omitempty" minimum:"0"`
}

// TreeObject is one object of a tree, with its health.
type TreeObject struct {
	Object ObjectRef `json:"object"`
	// Owner is the UID of the object in the tree above this one; empty at the top.
	Owner string `json:"owner,omitempty" maxLength:"128"`
	// Listed is true for the workload's own resources, false for objects that controllers created for them.
	Listed bool `json:"listed,omitempty"`
	// ResourceInstanceID is the row of a listed one; 0 for none. One that is not a workload resource instance of the
	// report's workload is left out: the object is kept without it.
	ResourceInstanceID ID `json:"resourceInstanceID,omitempty"`
	// State is Present, Absent, KindNotInstalled, Forbidden, Unavailable or Pending, for listed ones.
	State string `json:"state,omitempty" maxLength:"64"`
	// Health is the verdict on this object.
	Health string `json:"health" enum:"Healthy,Reconciling,Unhealthy,Down,Error,Unknown"`
	// Reason is a word for the cause.
	Reason string `json:"reason,omitempty" maxLength:"256"`
	// Cause is a sentence about the fault of the object. The server stores up to 4096 bytes of it.
	Cause string `json:"cause,omitempty" maxLength:"65536"`
	// Pod has the facts of a Pod. It is absent for other objects, and from earlier agents. Agents send it only if the versions
	// of report sets list the feature pods.
	Pod *PodFacts `json:"pod,omitempty"`
	// Since is when the health became what it is, as the cluster records it, or else when the agent saw it. It is absent if that is not
	// known, and from earlier agents. Agents send it only if the versions of report sets list the feature since.
	Since *time.Time `json:"since,omitempty"`
}

// The outcomes of a report.
const (
	OutcomeCreated   = "created"
	OutcomeUpdated   = "updated"
	OutcomeUnchanged = "unchanged" // this version is there already
	OutcomeStale     = "stale"     // a newer one is there: nothing was done
	OutcomeRejected  = "rejected"  // see the problem
)

// ReportSetAnswer has one item for each report of the set, in its order.
type ReportSetAnswer struct {
	Items []ReportAnswer `json:"items"`
}

// ReportAnswer is the outcome of a report.
type ReportAnswer struct {
	// Outcome is created or updated if the report was written, unchanged if its version is there already, stale if a newer
	// one is, and rejected if there is a problem.
	Outcome string `json:"outcome" enum:"created,updated,unchanged,stale,rejected"`
	// Version is the stored version if the outcome is stale.
	Version ID `json:"version,omitempty"`
	// Problem is why it was rejected.
	Problem *ReportProblem `json:"problem,omitempty"`
}

// The codes of a problem.
const (
	ProblemNotFound  = "not_found" // the workload or resource does not exist, or no longer
	ProblemForbidden = "forbidden" // it is not assigned to this cluster
	ProblemInvalid   = "invalid"   // the report itself is wrong, and always will be
	// ProblemQuota means that the cluster has used up its space. Send the report again later. Agents that do not know the code
	// handle it as ProblemInvalid.
	ProblemQuota = "quota_exceeded"
)

// ProblemHeader is a header of a 403. Its value [ProblemForbidden] means that the credential is valid, and that the instance is
// not assigned to the cluster of the agent.
const ProblemHeader = "Threeport-Problem"

// ClusterHeader is the header of a request that creates an instance. It has the UID of the cluster that the instance is
// assigned to.
const ClusterHeader = "Threeport-Cluster-UID"

// ReportProblem is why a report was rejected.
type ReportProblem struct {
	// Code is not_found if the workload or resource does not exist, or no longer. It is forbidden if the
	// workload is not assigned to the cluster of the agent, and quota_exceeded if the cluster has used up its space: send the
	// report again later. It is invalid if the report itself is wrong, and always will be.
	Code string `json:"code" enum:"not_found,forbidden,invalid,quota_exceeded"`
	// Detail names the field and what is accepted. It quotes no value.
	Detail string `json:"detail"`
}

// ReportSetVersions is the answer of GET /workload-report-sets/versions, by which an agent finds what it can send.
type ReportSetVersions struct {
	API      string   `json:"API"`
	Versions []string `json:"Versions"`
	// Encodings are those of request bodies: gzip, zstd.
	Encodings []string `json:"Encodings,omitempty"`
	// MaxReports bounds a set.
	MaxReports int `json:"MaxReports,omitempty"`
	// MaxBytes bounds its body before compression.
	MaxBytes int64 `json:"MaxBytes,omitempty"`
	// Features are the optional fields that the server accepts. The feature pods has those of Pods in a tree, and since the start of the
	// health of an object. The feature causeSince has the start of the cause of a status, and filtered the number of objects that a
	// filter leaves out. The feature traceparent has the trace of a report. A server refuses the fields of other features.
	Features []string `json:"Features,omitempty"`
}

// The features of the fields [TreeObject.Pod], [TreeObject.Since], [StatusReport.CauseSince], [TreeReport.Filtered] and
// [Report.Traceparent].
const (
	FeaturePods        = "pods"
	FeatureSince       = "since"
	FeatureCauseSince  = "causeSince"
	FeatureFiltered    = "filtered"
	FeatureTraceparent = "traceparent"
)

// Keep removes the fields of other features than these, and reports whether there were any. It changes the report, and the objects
// that it points to.
func (r *Report) Keep(features []string) (removed bool) {
	if r.Traceparent != "" && !slices.Contains(features, FeatureTraceparent) {
		r.Traceparent, removed = "", true
	}
	return r.keepBody(features) || removed
}

func (r *Report) keepBody(features []string) (removed bool) {
	switch {
	case r.Tree != nil:
		return r.Tree.keep(features)
	case r.Status != nil && r.Status.CauseSince != nil && !slices.Contains(features, FeatureCauseSince):
		r.Status.CauseSince = nil
		return true
	}
	return false
}

func (t *TreeReport) keep(features []string) (removed bool) {
	keepPods, keepSince := slices.Contains(features, FeaturePods), slices.Contains(features, FeatureSince)
	if t.Filtered != 0 && !slices.Contains(features, FeatureFiltered) {
		t.Filtered, removed = 0, true
	}
	for i := range t.Objects {
		o := &t.Objects[i]
		if !keepPods && o.Pod != nil {
			o.Pod, removed = nil, true
		}
		if !keepSince && o.Since != nil {
			o.Since, removed = nil, true
		}
	}
	return removed
}
