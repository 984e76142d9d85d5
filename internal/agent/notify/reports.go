package notify

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// reportOf returns an item as a report of a set. Without a version in the cluster it gets a local one, from the clock.
func reportOf(ctx context.Context, item outbox.Item, c *clock) (out threeport.Report, localVersion bool, err error) {
	at := item.Report.Instance()
	out.Instance = threeport.Instance{Type: string(at.Type), ID: threeport.ID(at.ID)}
	if out.Version = versionOf(item); out.Version == 0 {
		out.Version, localVersion = c.next(), true
	}
	switch r := item.Report.(type) {
	case observe.Operation:
		if r, err = load(ctx, r); err != nil {
			return out, localVersion, err
		}
		definition, err := r.Definition()
		if err != nil { // a retry would not help
			return out, localVersion, &threeport.Error{Op: "send report", Unsendable: true, Err: err}
		}
		out.Operation = operationReport(r, definition, item.Receipt.Accepted)
	case observe.Event:
		out.Event = eventReport(r)
	case observe.Status:
		out.Status = statusReport(r)
	case observe.Tree:
		out.Tree = treeReport(r)
	default:
		return out, localVersion, fmt.Errorf("send %s: a set has no place for a %T", r, r)
	}
	out, err = out.Clean()
	return out, localVersion, err
}

// minVersion is that of a deletion without a known resource version. It is older than any object, so that it does not
// replace a later object of the same name.
const minVersion threeport.ID = 1

// versionOf returns the version of the object or Event in the cluster; 0 if it has none. Resource versions are growing
// decimal numbers (KEP-5504: they can be compared from Kubernetes 1.35 on).
func versionOf(item outbox.Item) threeport.ID {
	version := ""
	switch r := item.Report.(type) {
	case observe.Operation:
		if version = r.ResourceVersion; r.Deleted && version == "" {
			version = item.Settled
			if _, err := strconv.ParseInt(version, 10, 64); err != nil {
				return minVersion
			}
		}
	case observe.Event:
		if !r.Synthetic {
			version = r.ResourceVersion
		}
	}
	if n, err := strconv.ParseInt(version, 10, 64); err == nil && n > 0 {
		return threeport.ID(n)
	}
	return 0
}

func operationReport(op observe.Operation, definition []byte, known bool) *threeport.OperationReport {
	object := objectRef(op.Object, op.Attribution.Resource.Version)
	if op.Body != nil {
		if version := op.Body.GetObjectKind().GroupVersionKind().Version; version != "" {
			object.Version = version
		}
	}
	return &threeport.OperationReport{
		ResourceInstanceID: threeport.ID(op.Attribution.Resource.ID),
		Object:             object,
		Operation:          lastOperation(op, known),
		Definition:         definition,
	}
}

func objectRef(id target.Identity, version string) threeport.ObjectRef {
	return threeport.ObjectRef{
		Group: id.Group, Version: version, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name, UID: string(id.UID),
	}
}

func eventReport(ev observe.Event) *threeport.EventReport {
	out := &threeport.EventReport{
		UID:                string(ev.UID),
		ResourceInstanceID: threeport.ID(ev.ResourceID),
		Involved:           objectRef(target.Identity{Ref: ev.Involved, UID: ev.InvolvedUID}, ev.InvolvedVersion),
		Derived:            ev.Derived,
		Type:               ev.Type,
		Reason:             ev.Reason,
		Message:            ev.Message,
		Time:               ev.Time,
		FirstTime:          timeOrNil(ev.FirstTime),
		Count:              ev.Count,
	}
	if g := ev.Dropped; g != nil {
		out.Gap = &threeport.Gap{Normal: g.Normal, Warning: g.Warning, First: g.First, Last: g.Last}
	}
	return out
}

func statusReport(s observe.Status) *threeport.StatusReport {
	return &threeport.StatusReport{
		Status: s.Status, Reason: s.Reason, Cause: s.Cause, Since: timeOrNil(s.Since), CauseSince: timeOrNil(s.CauseSince),
	}
}

func treeReport(t observe.Tree) *threeport.TreeReport {
	out := &threeport.TreeReport{Objects: make([]threeport.TreeObject, len(t.Objects)), Filtered: int64(t.Filtered)}
	for i, o := range t.Objects {
		out.Objects[i] = threeport.TreeObject{
			Object: objectRef(o.Object, o.Version), Owner: string(o.Owner), Listed: o.Listed,
			ResourceInstanceID: threeport.ID(o.ResourceID), State: string(o.State),
			Health: o.Health, Reason: o.Reason, Cause: o.Cause, Pod: podFacts(o.Pod), Since: timeOrNil(o.Since),
		}
	}
	return out
}

// podFacts returns a copy of the facts of a Pod; nil for none.
func podFacts(f *observe.PodFacts) *threeport.PodFacts {
	if f == nil {
		return nil
	}
	out := &threeport.PodFacts{Node: f.Node, Containers: make([]threeport.ContainerFacts, len(f.Containers))}
	for i, c := range f.Containers {
		out.Containers[i] = threeport.ContainerFacts{
			Name: c.Name, Type: c.Type, Image: c.Image, State: c.State, Reason: c.Reason, Ready: c.Ready, Restarts: int64(c.Restarts),
		}
		if exit := c.LastExit; exit.Known {
			out.Containers[i].LastExit = &threeport.ContainerExit{Code: int64(exit.Code), Reason: exit.Reason, Time: timeOrNil(exit.At)}
		}
	}
	return out
}

// timeOrNil returns a time, or nil if it is zero.
func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// sizeOf estimates the bytes of a report in a set.
func sizeOf(r threeport.Report) int {
	const fixed = 512 // field names, IDs and references
	switch {
	case r.Operation != nil:
		return fixed + len(r.Operation.Definition)
	case r.Event != nil:
		return fixed + len(r.Event.Message)
	case r.Status != nil:
		return fixed + len(r.Status.Cause)
	case r.Tree != nil:
		size := fixed
		for _, o := range r.Tree.Objects {
			size += fixed + len(o.Cause) + sizeOfPod(o.Pod)
		}
		return size
	}
	return fixed
}

func sizeOfPod(f *threeport.PodFacts) (size int) {
	if f == nil {
		return 0
	}
	const fixed = 192 // field names, numbers and words
	for i := range f.Containers {
		size += fixed + len(f.Containers[i].Name) + len(f.Containers[i].Image)
	}
	return size + len(f.Node)
}
