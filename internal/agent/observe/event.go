package observe

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/attribution"
)

// Event is an Event about an object of a workload, in its newest version. A repeat has the same UID.
type Event struct {
	Workload target.Instance
	// ResourceID is the WorkloadResourceInstance that the involved object is or descends from; 0 if there is none.
	ResourceID int64
	// UID is that of the row: the Event's own, except in a report with a row of its own.
	UID types.UID
	// Source is the Event's own UID in a report with a row of its own; see [Event.WithOwnRow].
	Source types.UID `json:",omitempty"`
	// ResourceVersion changes with every repeat.
	ResourceVersion string
	// Involved is the object that the Event is about. Its UID and API version are empty if the Event does not have them.
	Involved        target.Ref
	InvolvedUID     types.UID `json:",omitempty"`
	InvolvedVersion string    `json:",omitempty"`
	// Derived is true for an Event of the cluster about an object that is not listed itself. v0 has no field for the involved object, and
	// puts its kind and name before the message then. The message of a synthetic Event has the name already.
	Derived bool `json:",omitempty"`
	// Type is Normal or Warning.
	Type    string
	Reason  string
	Message string
	// Time is when the Event happened last; never zero.
	Time time.Time
	// FirstTime is when it happened first, and Count how often it did; zero if the Event does not have them.
	FirstTime time.Time `json:",omitzero"`
	Count     int64     `json:",omitzero"`
	// Dropped is set in an Event about dropped Events.
	Dropped *DroppedRange `json:",omitempty"`
	// MayHaveRow is true if another process may have created the Event's row. The JSON name is that of existing state files.
	MayHaveRow bool `json:"Preexisting"`
	// Synthetic is true for an Event that the agent made. Its ResourceVersion is a digest, which has no order.
	Synthetic bool `json:",omitempty"`
	// Trace is that of a sampled report; nil for others.
	Trace *Trace `json:"-"`
}

// DroppedRange counts Events that were dropped to keep a bound, or by a filter, with the times of the first and the last of them.
type DroppedRange struct {
	Normal, Warning int64
	First, Last     time.Time
}

// Limits of the texts of an Event, in bytes. Events of events.k8s.io/v1 have at most 128 and 1,024; those of core/v1 have no limit, and
// thousands may be pending.
const (
	maxEventReason  = 256
	maxEventMessage = 4096
)

// cut returns the beginning of a text, up to a number of bytes, in memory of its own.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const sign = "…"
	return strings.ToValidUTF8(text[:most-len(sign)], "") + sign
}

// WithMessageCutTo returns the Event with at most so many bytes of its message.
func (e Event) WithMessageCutTo(bytes int) Event {
	e.Message = cut(e.Message, bytes)
	return e
}

// NewEvent returns the report of an Event about an object with an attribution.
func NewEvent(ev *corev1.Event, attribution target.Attribution) Event {
	involved := InvolvedObject(ev)
	return Event{
		Workload:        attribution.Instance,
		ResourceID:      attribution.Resource.ID,
		UID:             ev.UID,
		ResourceVersion: ev.ResourceVersion,
		Involved:        involved.Ref,
		InvolvedUID:     involved.UID,
		InvolvedVersion: schema.FromAPIVersionAndKind(ev.InvolvedObject.APIVersion, "").Version,
		Derived:         !attribution.Listed,
		Type:            cmp.Or(ev.Type, corev1.EventTypeNormal),
		Reason:          cut(ev.Reason, maxEventReason),
		Message:         cut(ev.Message, maxEventMessage),
		Time:            EventTime(ev),
		FirstTime:       firstTime(ev),
		Count:           countOf(ev),
	}
}

// WithOwnRow returns the report with a row that belongs to its workload alone. A row has one workload. If an object belongs to
// several, the row with the Event's UID is that of the workload that was declared first. The v0 API has only this row.
func (e Event) WithOwnRow() Event {
	e.Source = e.UID
	e.UID = types.UID(fmt.Sprintf("%s/%s", e.Source, instanceKey(e.Workload)))
	e.MayHaveRow = true // an earlier process may have created the row
	return e
}

// countOf returns how often an Event happened. Events of events.k8s.io/v1 have the count in a series.
func countOf(ev *corev1.Event) int64 {
	if ev.Series != nil {
		return int64(max(ev.Series.Count, ev.Count))
	}
	return int64(ev.Count)
}

// firstTime returns when an Event happened first.
func firstTime(ev *corev1.Event) time.Time {
	for _, t := range []time.Time{ev.FirstTimestamp.Time, ev.EventTime.Time, ev.CreationTimestamp.Time} {
		if isKnown(t) {
			return t.UTC()
		}
	}
	return time.Time{}
}

// isKnown reports whether a time of an object is set and can be encoded. The epoch stands for a container that never started. JSON and
// the control plane have no year above 9999. Anybody may write an Event in the last second of 9999 west of Greenwich, which is in the
// year 10000 in UTC.
func isKnown(t time.Time) bool { return t.Unix() > 0 && t.UTC().Year() <= 9999 }

const eventPrefix = "event/"

// EventKey is the key of every report about an Event.
func EventKey(uid types.UID) Key { return Key(eventPrefix + uid) }

// EventUID returns the UID of the Event whose key it is; false if it is the key of another report.
func (k Key) EventUID() (types.UID, bool) {
	uid, ok := strings.CutPrefix(string(k), eventPrefix)
	return types.UID(uid), ok
}

// Key is the Event's UID.
func (e Event) Key() Key { return EventKey(e.UID) }

// OrderingKey is the key: Events are ordered by their time, not by their delivery.
func (e Event) OrderingKey() OrderingKey { return OrderingKey(e.Key()) }

// Version changes with each repeat, and with the attribution.
func (e Event) Version() string {
	return EventVersion{e.ResourceVersion, e.Workload, e.ResourceID}.String()
}

// EventVersion has the parts of the version of an [Event].
type EventVersion struct {
	ResourceVersion string
	Workload        target.Instance
	ResourceID      int64
}

func (v EventVersion) String() string {
	return v.ResourceVersion + "/" + instanceKey(v.Workload) + "/" + strconv.FormatInt(v.ResourceID, 10)
}

// ParseEventVersion is the reverse of [EventVersion.String]. It returns false for another text.
func ParseEventVersion(text string) (v EventVersion, ok bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 4 {
		return v, false
	}
	id, err := strconv.ParseInt(parts[2], 10, 64)
	resource, resourceErr := strconv.ParseInt(parts[3], 10, 64)
	v = EventVersion{parts[0], target.Instance{Type: target.Type(parts[1]), ID: id}, resource}
	return v, err == nil && resourceErr == nil && v.String() == text
}

// Instance returns the workload.
func (e Event) Instance() target.Instance { return e.Workload }

func (e Event) String() string { return fmt.Sprintf("event %s of %s", e.Reason, e.Involved) }

// InvolvedObject returns the object that an Event is about. Some sources leave the API version or the UID empty.
func InvolvedObject(ev *corev1.Event) target.Identity {
	o := ev.InvolvedObject
	group := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).Group
	return target.Identity{
		Ref: target.Ref{Group: group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name},
		UID: o.UID,
	}
}

// InNamespaceOfObject reports whether the namespace of an Event suits its involved object.
func InNamespaceOfObject(ev *corev1.Event) bool {
	return attribution.InNamespaceOfObject(ev.Namespace, &ev.InvolvedObject)
}

// IsAbout reports whether an Event is about a known object.
func IsAbout(ev *corev1.Event, known target.Identity) bool {
	return attribution.IsAbout(ev.Namespace, &ev.InvolvedObject, attribution.Object{
		Group: known.Group, Kind: known.Kind, Namespace: known.Namespace, Name: known.Name, UID: known.UID,
	})
}

// EventTime returns when an Event happened last. Events of events.k8s.io/v1 have no lastTimestamp; their repeats are in a
// series.
func EventTime(ev *corev1.Event) time.Time {
	if ev.Series != nil && isKnown(ev.Series.LastObservedTime.Time) {
		return ev.Series.LastObservedTime.UTC()
	}
	for _, t := range []time.Time{
		ev.LastTimestamp.Time, ev.EventTime.Time, ev.FirstTimestamp.Time, ev.CreationTimestamp.Time,
	} {
		if isKnown(t) {
			return t.UTC()
		}
	}
	return time.Time{} // the API server sets creationTimestamp on everything it stores
}
