package target

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// HealthTransition is the latest change of a workload's status, as the status of its ThreeportWorkload has it. That is the log of
// changes: what is told of one can be told again.
type HealthTransition struct {
	// UID is that of the ThreeportWorkload.
	UID types.UID
	// From is the status before; empty if it is the first.
	From string
	// To, Reason and Message are the status since, as [Sight.Health] and its fellows tell of a resource.
	To, Reason, Message string
	// At is when it changed, as the ThreeportWorkload's status has it.
	At time.Time
}
