package target

// State tells what the watch sees of a listed resource. Missing is a state, not an error: each of them
// heals by itself.
type State string

// The states of a listed resource.
const (
	// Pending means that the first answer of the API server is awaited.
	Pending State = "Pending"
	// Present means that the object exists and is watched.
	Present State = "Present"
	// Absent means that the kind is watched and there is no such object.
	Absent State = "Absent"
	// KindNotInstalled means that the API server does not serve the kind.
	KindNotInstalled State = "KindNotInstalled"
	// Forbidden means that a permission is missing.
	Forbidden State = "Forbidden"
	// Unavailable means that the API server fails to answer for the kind.
	Unavailable State = "Unavailable"
)

// ResourceStatus is what the watch sees of one listed resource.
type ResourceStatus struct {
	// Resource is the resource as it is watched: in a version that is served, its namespace defaulted.
	Resource
	State State
	// Message says why, for a person; empty if there is nothing to say.
	Message string
	// Health is the verdict on the resource, with its reason.
	Health, Reason string
	// Cause says why, for a person: the chain from the resource to the object at fault. Empty if it is Healthy.
	Cause string
	// Pods counts the pods that descend from the resource, or that it is.
	Pods Count
}

// Count tells how many objects there are, and how many of them are Healthy.
type Count struct{ Total, Healthy int }
