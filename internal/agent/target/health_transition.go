package target

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// HealthTransition is the latest change of a workload's health, as stored in the status of its ThreeportWorkload. The
// status is the log of transitions, so reporting one of them again is safe.
type HealthTransition struct {
	// UID is the UID of the ThreeportWorkload.
	UID types.UID
	// From is the previous health; empty for the first.
	From string
	// To, Reason and Message are the new health, as in [ResourceStatus].
	To, Reason, Message string
	// At is the time of the transition, as the ThreeportWorkload's status records it.
	At time.Time
	// Cause is the current cause of the health, which may have followed another one since the transition.
	Cause Cause
}

// Cause is a reason for the health of a workload.
type Cause struct {
	// Reason is a word.
	Reason string
	// Since is when the cause became what it is, as the ThreeportWorkload's status records it; zero if that is not known.
	Since time.Time
}
