package outbox

import (
	"maps"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// LastOperation is the latest operation on a listed resource that the control plane has accepted.
type LastOperation struct {
	// ResourceVersion is that of the object; empty if it is deleted.
	ResourceVersion string
	Deleted         bool
	// Modified is true if the control plane had an earlier version of the object; else it was added, or is deleted.
	Modified bool
}

// mostOperated bounds of how many resources of a workload it is known. A ThreeportWorkload lists up to 2,000; what is
// beyond that was deleted and is not listed any more.
const mostOperated = 4096

// operated is Operated in a workload's account.
type operated struct {
	LastOperation
	key observe.Key // of the incarnation
}

// operand is where a workload's account tells of the operations of an entry.
type operand struct {
	instance target.Instance
	resource target.Resource // without its version
}

// operandOf returns where to tell of a report; false if it is not an operation on a listed resource.
func operandOf(r observe.Report) (operand, observe.Operation, bool) {
	op, ok := r.(observe.Operation)
	if !ok || !op.Attribution.Listed {
		return operand{}, op, false
	}
	return operand{op.Instance(), target.Resource{Ref: op.Object.Ref, ID: op.Attribution.Resource.ID}}, op, true
}

// note tells a workload's account that the control plane has a report; with mu held.
func (o *Outbox) note(e *entry, r observe.Report) {
	at, op, ok := operandOf(r)
	in := o.instances[at.instance]
	if !ok || in == nil || !e.receipt.Accepted {
		return
	}
	known := LastOperation{ResourceVersion: op.ResourceVersion, Modified: e.modified}
	if op.Deleted {
		known = LastOperation{Deleted: true}
	}
	in.know(at.resource, operated{known, e.key})
	e.operand = &at
}

// know files what was accepted of a resource.
func (in *instance) know(resource target.Resource, known operated) {
	if len(in.operated) >= mostOperated {
		maps.DeleteFunc(in.operated, func(_ target.Resource, known operated) bool { return known.Deleted })
	}
	if in.operated == nil {
		in.operated = map[target.Resource]operated{}
	}
	in.operated[resource] = known
}

// deleted files a deletion that an earlier process told of, unless more is known by now.
func (in *instance) deleted(op observe.Operation) {
	at, _, ok := operandOf(op)
	if _, known := in.operated[at.resource]; ok && !known {
		in.know(at.resource, operated{LastOperation{Deleted: true}, op.Key()})
	}
}

// correct files what an adoption found of an entry that was filed before; with mu held.
func (o *Outbox) correct(e *entry) {
	if e.operand == nil {
		return
	}
	if in := o.instances[e.operand.instance]; in != nil && in.operated[e.operand.resource].key == e.key {
		in.know(e.operand.resource, operated{LastOperation{ResourceVersion: e.version, Modified: e.modified}, e.key})
	}
}

// unnote takes an entry out of its workload's account: its row is gone, or it is not to be reported about any more. That
// an object is deleted stays; with mu held.
func (o *Outbox) unnote(e *entry) {
	if e.operand == nil {
		return
	}
	at := *e.operand
	e.operand = nil
	if in := o.instances[at.instance]; in != nil {
		if known := in.operated[at.resource]; known.key == e.key && !known.Deleted {
			delete(in.operated, at.resource)
		}
	}
}

// operations returns what was accepted of each resource.
func (in *instance) operations() map[target.Resource]LastOperation {
	if len(in.operated) == 0 {
		return nil
	}
	out := make(map[target.Resource]LastOperation, len(in.operated))
	for resource, known := range in.operated {
		out[resource] = known.LastOperation
	}
	return out
}
