package target

import "time"

// OverdueAfter is the minimum age of a pending report that counts as pending for users. A younger one is about to be delivered:
// showing it would cost two writes of the status, or two reports.
const OverdueAfter = 5 * time.Second

// DeliveryProgress is the state of the delivery of an instance's reports.
type DeliveryProgress struct {
	// Pending is the number of keys with a report that is not settled.
	Pending int
	// Since is when the oldest of them became pending; zero if there is none.
	Since time.Time
	// Accepted counts reports since the outbox was made.
	Accepted int64
	// Rejected is the number of reports that the control plane rejected.
	Rejected int64
	// Dropped counts the Events that were dropped to keep the bound.
	Dropped int64
	// Synced is true if the initial sync is done.
	Synced bool
	// LastError is the latest failure since the last success, or why a report could not be sent yet.
	LastError string
	// Refusal is why the control plane refuses pending reports of the instance for now; empty if it refuses none.
	Refusal Refusal
	// Removed are the rows that the control plane had and removed, so that reports about them are discarded: the IDs of
	// WorkloadResourceInstances, and 0 for the row of the instance.
	Removed []int64
	// Rejections are the latest rejected reports, newest first.
	Rejections []Rejection
	// Operations are the latest accepted ones, by listed resource without its version. Those of an earlier process are
	// known once their objects were offered again; deletions are not.
	Operations map[Resource]LastOperation
}

// Refusal is a reason why the control plane refuses a report until somebody changes something there. The report is kept.
type Refusal string

// The refusals. A row that the control plane had and removed is none: reports about it are discarded.
const (
	// NotAssigned means that the instance is not assigned to this cluster.
	NotAssigned Refusal = "NotAssigned"
	// UnknownInstance means that the control plane has no row of the instance, and had none before.
	UnknownInstance Refusal = "UnknownInstance"
	// UnknownResource means that it has no row of a listed resource, and had none before.
	UnknownResource Refusal = "UnknownResource"
	// QuotaExceeded means that the cluster has used up its space on the control plane.
	QuotaExceeded Refusal = "QuotaExceeded"
)

// IsOfWorkload reports whether a refusal is about one workload: its instance or a resource of it is unknown or not assigned. It is no
// delay of the cluster's deliveries.
func (r Refusal) IsOfWorkload() bool {
	return r == NotAssigned || r == UnknownInstance || r == UnknownResource
}

// Rejection is a report that the control plane rejected.
type Rejection struct {
	Report string
	Reason string
	Time   time.Time
}

// LastOperation is the latest operation on a listed resource that the control plane accepted.
type LastOperation struct {
	// ResourceVersion is that of the object; empty if it is deleted.
	ResourceVersion string
	Deleted         bool
	// Modified is true if the control plane had an earlier version of the object; else it was added, or is deleted.
	Modified bool
}
