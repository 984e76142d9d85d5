package notify

import (
	"fmt"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// OperationRow returns what an operation says in its resource's row. Known is whether the control plane has an earlier
// report of the same incarnation.
func OperationRow(op observe.Operation, known bool) (threeport.WorkloadResourceInstance, error) {
	definition, err := op.Definition()
	if err != nil {
		return threeport.WorkloadResourceInstance{}, err
	}
	last := lastOperation(op, known)
	return threeport.WorkloadResourceInstance{LastOperation: &last, RuntimeDefinition: definition}, nil
}

// OperationName returns the control plane's word for an accepted operation.
func OperationName(op outbox.LastOperation) string {
	switch {
	case op.Deleted:
		return threeport.OperationDeleted
	case op.Modified:
		return threeport.OperationModified
	}
	return threeport.OperationAdded
}

// lastOperation is the word for an operation: the first report of an incarnation is ADDED.
func lastOperation(op observe.Operation, known bool) string {
	switch {
	case op.Deleted:
		return threeport.OperationDeleted
	case known:
		return threeport.OperationModified
	default:
		return threeport.OperationAdded
	}
}

// EventRow returns the row of an Event.
func EventRow(ev observe.Event) threeport.WorkloadEvent {
	uid := string(ev.UID)
	at := ev.Time.UTC().Truncate(time.Microsecond)
	message := ev.Message
	if ev.Derived { // v0 has no field for the involved object, and the row of a resource tells only of that
		message = fmt.Sprintf("%s %s: %s", ev.Involved.Kind, ev.Involved.Name, message)
	}
	out := threeport.WorkloadEvent{
		RuntimeEventUID: &uid,
		Type:            &ev.Type,
		Reason:          &ev.Reason,
		Message:         &message,
		Timestamp:       &at,
	}
	if ev.Workload.Type == target.HelmWorkloadInstance {
		out.HelmWorkloadInstanceID = &ev.Workload.ID
	} else {
		out.WorkloadInstanceID = &ev.Workload.ID
	}
	if ev.ResourceID > 0 {
		out.WorkloadResourceInstanceID = &ev.ResourceID
	}
	return out
}

// EventUpdate returns what of an Event changes in a row that exists. The row stays with the instance that it was made
// for: v0 cannot take it from one, so an Event whose object is claimed by another workload now would be both's.
func EventUpdate(ev observe.Event, receipt outbox.Receipt) threeport.WorkloadEvent {
	out := EventRow(ev)
	if receipt.Instance != ev.Workload {
		out.WorkloadInstanceID, out.HelmWorkloadInstanceID, out.WorkloadResourceInstanceID = nil, nil, nil
	}
	return out
}

// EventChanges returns the names of the fields in which a row is not as an Event is reported: by itself, or as part of a
// set, in which its message does not name the involved object.
func EventChanges(ev observe.Event, receipt outbox.Receipt, row threeport.WorkloadEvent) []string {
	differs := EventUpdate(ev, receipt).Changes(row)
	if len(differs) == 0 || !ev.Derived {
		return differs
	}
	ev.Derived = false
	if len(EventUpdate(ev, receipt).Changes(row)) == 0 {
		return nil
	}
	return differs
}
