package outbox

import (
	"maps"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// maxOperations bounds the operations that are kept of a workload. A ThreeportWorkload lists up to 2,000 resources. Beyond
// that, operations are deletions of resources that are no longer listed.
const maxOperations = 4096

// acceptedOperation is the last operation on a resource, with the key of the object that it was about.
type acceptedOperation struct {
	target.LastOperation
	key observe.Key
}

// operations are the last operations on the listed resources of a workload, by resource without its version.
type operations map[target.Resource]acceptedOperation

// operationSlot is the place of an operation in the accounts.
type operationSlot struct {
	instance target.Instance
	resource target.Resource // without its version
}

// slotOf returns the slot of a report; false if it is not an operation on a listed resource.
func slotOf(r observe.Report) (operationSlot, observe.Operation, bool) {
	op, ok := r.(observe.Operation)
	if !ok || !op.Attribution.Listed {
		return operationSlot{}, op, false
	}
	return operationSlot{op.Instance(), target.Resource{Ref: op.Object.Ref, ID: op.Attribution.Resource.ID}}, op, true
}

// set records an operation.
func (ops *operations) set(resource target.Resource, op acceptedOperation) {
	if *ops == nil {
		*ops = operations{}
	}
	if len(*ops) >= maxOperations {
		maps.DeleteFunc(*ops, func(_ target.Resource, op acceptedOperation) bool { return op.Deleted })
	}
	(*ops)[resource] = op
}

// addDeletion records a deletion that an earlier process delivered, unless a later operation is known.
func (ops *operations) addDeletion(op observe.Operation) {
	slot, _, ok := slotOf(op)
	if _, known := (*ops)[slot.resource]; ok && !known {
		ops.set(slot.resource, acceptedOperation{target.LastOperation{Deleted: true}, op.Key()})
	}
}

// has reports whether the control plane has an operation on a resource.
func (ops operations) has(resource int64) bool {
	for r := range ops {
		if r.ID == resource {
			return true
		}
	}
	return false
}

// list returns the operations without their keys.
func (ops operations) list() map[target.Resource]target.LastOperation {
	if len(ops) == 0 {
		return nil
	}
	out := make(map[target.Resource]target.LastOperation, len(ops))
	for resource, op := range ops {
		out[resource] = op.LastOperation
	}
	return out
}

// recordOperation records in the instance's account that the control plane has a report.
func (o *Outbox) recordOperation(e *entry, r observe.Report) {
	slot, op, ok := slotOf(r)
	a := o.accounts[slot.instance]
	if !ok || a == nil || !e.receipt.Accepted {
		return
	}
	last := target.LastOperation{ResourceVersion: op.ResourceVersion, Modified: e.modified}
	if op.Deleted {
		last = target.LastOperation{Deleted: true}
	}
	a.operations.set(slot.resource, acceptedOperation{last, e.key})
	e.operation = &slot
}

// correctOperation replaces the recorded operation of an entry by the one that the initial sync has found.
func (o *Outbox) correctOperation(e *entry) {
	if e.operation == nil {
		return
	}
	resource := e.operation.resource
	if a := o.accounts[e.operation.instance]; a != nil && a.operations[resource].key == e.key {
		a.operations.set(resource, acceptedOperation{target.LastOperation{ResourceVersion: e.version, Modified: e.modified}, e.key})
	}
}

// removeOperation removes the recorded operation of an entry whose row is gone, or which is no longer reported. A deletion
// stays.
func (o *Outbox) removeOperation(e *entry) {
	if e.operation == nil {
		return
	}
	slot := *e.operation
	e.operation = nil
	if a := o.accounts[slot.instance]; a != nil {
		if op := a.operations[slot.resource]; op.key == e.key && !op.Deleted {
			delete(a.operations, slot.resource)
		}
	}
}
