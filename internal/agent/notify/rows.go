package notify

import (
	"context"
	"fmt"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// OperationRow returns the fields that an operation sets in the row of its resource. The argument known is true if the
// control plane has an earlier report of the same object.
func OperationRow(op observe.Operation, known bool) (threeport.WorkloadResourceInstance, error) {
	definition, err := op.Definition()
	if err != nil {
		return threeport.WorkloadResourceInstance{}, err
	}
	last := lastOperation(op, known)
	return threeport.WorkloadResourceInstance{LastOperation: &last, RuntimeDefinition: definition}, nil
}

// load returns an operation with its body. The error is [ErrNotReady] if the body cannot be read now.
func load(ctx context.Context, op observe.Operation) (observe.Operation, error) {
	op, err := op.Load(ctx)
	if err != nil {
		return op, fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return op, nil
}

// lastOperation is the word for an operation: the first report of an object is ADDED.
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
	if ev.Derived { // v0 has no field for the involved object
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

// EventUpdate returns the fields that an Event sets in an existing row. The row stays with the instance that it was created
// for: v0 cannot clear a reference, so another instance would get the row in addition.
func EventUpdate(ev observe.Event, receipt outbox.Receipt) threeport.WorkloadEvent {
	out := EventRow(ev)
	if receipt.Instance != ev.Workload {
		out.WorkloadInstanceID, out.HelmWorkloadInstanceID, out.WorkloadResourceInstanceID = nil, nil, nil
	}
	return out
}

// EventChanges returns the names of the fields in which a row differs from an Event. The row may be from v0 or from a report
// set, in which the message does not name the involved object.
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
