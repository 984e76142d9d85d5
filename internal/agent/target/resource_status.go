package target

import "time"

// State is what the informers know about a listed resource. Each state is temporary: the informers retry until the
// resource is Present or Absent.
type State string

// The states of a listed resource.
const (
	// Pending means that the API server has not answered yet.
	Pending State = "Pending"
	// Present means that the object exists and is watched.
	Present State = "Present"
	// Absent means that the kind is watched and the object does not exist.
	Absent State = "Absent"
	// KindNotInstalled means that the API server does not serve the kind.
	KindNotInstalled State = "KindNotInstalled"
	// Forbidden means that the agent lacks a permission.
	Forbidden State = "Forbidden"
	// Unavailable means that the API server fails requests for the kind.
	Unavailable State = "Unavailable"
)

// ResourceStatus is the observed status of one listed resource.
type ResourceStatus struct {
	// Resource is the resource as it is watched: in a served version, its namespace defaulted.
	Resource
	State State
	// Message explains the state to a person; empty if there is nothing to explain.
	Message string
	// Health is the verdict on the resource, Reason its machine-readable reason.
	Health, Reason string
	// Cause explains the verdict to a person: the chain from the resource to the object at fault. Empty if it is Healthy.
	Cause string
	// Since is when the health became what it is, as the cluster records it, or else when the agent saw it.
	Since time.Time
	// Pods counts the resource's pods: its descendants, or the resource itself.
	Pods Count
}

// Count is a number of objects, and the number of Healthy ones among them.
type Count struct{ Total, Healthy int }
