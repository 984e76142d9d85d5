package observe

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
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
	// Involved is the object that the Event is about, with its UID and the version of its API, as far as the Event tells.
	Involved        target.Ref
	InvolvedUID     types.UID `json:",omitempty"`
	InvolvedVersion string    `json:",omitempty"`
	// Derived is true if that is not a listed object, but descends from one or bears a workload's label.
	Derived bool `json:",omitempty"`
	// Type is Normal or Warning.
	Type    string
	Reason  string
	Message string
	// Time is when it happened last; never zero.
	Time time.Time
	// FirstTime is when it happened first, and Count how often it did; zero if the Event does not tell.
	FirstTime time.Time `json:",omitzero"`
	Count     int64     `json:",omitzero"`
	// Dropped is set if it tells of Events that were lost.
	Dropped *DroppedRange `json:",omitempty"`
	// Preexisting is true if the Event was there before this process watched: another may have reported it.
	Preexisting bool
}

// DroppedRange counts Events that were dropped because no more may be kept, and says when the first and the last of them had
// happened.
type DroppedRange struct {
	Normal, Warning int64
	First, Last     time.Time
}

// NewEvent returns the report of an Event about an object with a claim.
func NewEvent(ev *corev1.Event, claim target.Attribution) Event {
	involved := InvolvedObject(ev)
	return Event{
		Workload:        claim.Instance,
		ResourceID:      claim.Resource.ID,
		UID:             ev.UID,
		ResourceVersion: ev.ResourceVersion,
		Involved:        involved.Ref,
		InvolvedUID:     involved.UID,
		InvolvedVersion: schema.FromAPIVersionAndKind(ev.InvolvedObject.APIVersion, "").Version,
		Derived:         !claim.Listed,
		Type:            cmp.Or(ev.Type, corev1.EventTypeNormal),
		Reason:          ev.Reason,
		Message:         ev.Message,
		Time:            EventTime(ev),
		FirstTime:       firstTime(ev),
		Count:           countOf(ev),
	}
}

// countOf returns how often an Event happened. A series counts for those that were written through events.k8s.io/v1.
func countOf(ev *corev1.Event) int64 {
	if ev.Series != nil {
		return int64(max(ev.Series.Count, ev.Count))
	}
	return int64(ev.Count)
}

// firstTime returns when an Event happened first.
func firstTime(ev *corev1.Event) time.Time {
	for _, t := range []time.Time{ev.FirstTimestamp.Time, ev.EventTime.Time, ev.CreationTimestamp.Time} {
		if !t.IsZero() {
			return t.UTC()
		}
	}
	return time.Time{}
}

// EventKey is the key of every report about an Event.
func EventKey(uid types.UID) Key { return Key("event/" + uid) }

// Key is the Event's UID.
func (e Event) Key() Key { return EventKey(e.UID) }

// OrderingKey is the Event's own: Events are ordered by their time, not by their delivery.
func (e Event) OrderingKey() OrderingKey { return OrderingKey(e.Key()) }

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
