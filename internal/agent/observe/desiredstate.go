package observe

import "github.com/threeport/threeport-agent/internal/agent/target"

// DesiredState is what the control plane should have of a workload's instance, read from the cluster at one moment.
type DesiredState struct {
	// Operations are those of the existing listed objects, with their bodies.
	Operations []Operation
	// Absent are the attributions of the listed resources that do not exist. Resources that cannot be read, because their
	// kind is forbidden or unavailable, are in neither.
	Absent []target.Attribution
	// Events are those that the cluster still has.
	Events []Event
	// Status has an empty Status field while the health is not known.
	Status Status
}
