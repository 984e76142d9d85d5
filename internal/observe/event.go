package observe

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/target"
)

// Event is an Event of the cluster about an object of a workload, in its newest version: a repeat updates
// what was reported.
type Event struct {
	Workload target.Instance
	// ResourceID is the WorkloadResourceInstance that the involved object is or descends from; 0 if there
	// is none.
	ResourceID int64
	UID        types.UID
	// ResourceVersion changes with every repeat.
	ResourceVersion string
	// Involved is the object that the Event is about.
	Involved target.Ref
	// Type is Normal or Warning.
	Type    string
	Reason  string
	Message string
	// Time is when it happened last; never zero.
	Time time.Time
	// Early is true if the Event was there before this process watched: another may have reported it.
	Early bool
}

// NewEvent returns the report of an Event about an object with a claim.
func NewEvent(ev *corev1.Event, claim target.Claim) Event {
	involved := InvolvedObject(ev)
	message := ev.Message
	if !claim.Listed {
		// v0 of the control-plane API has no field for the involved object.
		message = fmt.Sprintf("%s %s: %s", involved.Kind, involved.Name, ev.Message)
	}
	return Event{
		Workload:        claim.Instance,
		ResourceID:      claim.Resource.ID,
		UID:             ev.UID,
		ResourceVersion: ev.ResourceVersion,
		Involved:        involved.Ref,
		Type:            cmp.Or(ev.Type, corev1.EventTypeNormal),
		Reason:          ev.Reason,
		Message:         message,
		Time:            EventTime(ev),
	}
}

// EventKey is the key of every report about an Event.
func EventKey(uid types.UID) Key { return Key("event/" + uid) }

// Key is the Event's UID.
func (e Event) Key() Key { return EventKey(e.UID) }

// Lane is the Event's own: Events are ordered by their time, not by their delivery.
func (e Event) Lane() Lane { return Lane(e.Key()) }

// Version changes with each repeat, and when the Event is found to belong elsewhere.
func (e Event) Version() string {
	return fmt.Sprintf("%s/%s/%d", e.ResourceVersion, instanceKey(e.Workload), e.ResourceID)
}

// Instance returns the workload.
func (e Event) Instance() target.Instance { return e.Workload }

func (e Event) String() string { return fmt.Sprintf("event %s of %s", e.Reason, e.Involved) }

// InvolvedObject returns the object that an Event is about. Some sources leave the API version or the UID
// empty.
func InvolvedObject(ev *corev1.Event) target.Identity {
	o := ev.InvolvedObject
	group := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).Group
	return target.Identity{
		Ref: target.Ref{Group: group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name},
		UID: o.UID,
	}
}

// EventTime returns when an Event happened last. lastTimestamp is null for Events that were written through
// events.k8s.io/v1, whose repeats are counted in a series.
func EventTime(ev *corev1.Event) time.Time {
	if ev.Series != nil && !ev.Series.LastObservedTime.IsZero() {
		return ev.Series.LastObservedTime.UTC()
	}
	for _, t := range []time.Time{
		ev.LastTimestamp.Time, ev.EventTime.Time, ev.FirstTimestamp.Time, ev.CreationTimestamp.Time,
	} {
		if !t.IsZero() {
			return t.UTC()
		}
	}
	return time.Time{} // the API server sets creationTimestamp on everything it stores
}
