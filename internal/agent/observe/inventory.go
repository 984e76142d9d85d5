package observe

import "github.com/threeport/threeport-agent/internal/agent/target"

// DesiredState is all that the control plane is to hold of a workload's instance, as the cluster has it at one moment.
type DesiredState struct {
	// Operations are those of the listed objects that exist, with their bodies.
	Operations []Operation
	// Absent are the claims of the listed resources that are known not to exist. What cannot be seen, because its kind
	// is forbidden or does not answer, is in neither.
	Absent []target.Attribution
	// Events are those that the cluster still has.
	Events []Event
	// Status is the verdict; its Status is empty while there is none.
	Status Status
}
