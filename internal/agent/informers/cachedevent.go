package informers

import (
	"cmp"
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Limits of the texts of a cached Event, in bytes. The API server bounds neither the message nor the other fields of an Event
// of the core group, except for the size of the whole object, 1.5 MiB.
const (
	maxCachedMessage = 1 << 10
	maxCachedReason  = 128 // the limit of events.k8s.io
	maxIdentity      = 320 // an API version has at most 317 bytes, and a name 253
)

// cachedEvent is the form of an Event in the cache. It has the fields that reports and health read. A corev1.Event takes two and a
// half times the memory, and the cache has all Events of the cluster: most belong to no workload, and anybody may create them.
type cachedEvent struct {
	name            string
	uid             types.UID
	resourceVersion string
	involved        cachedReference

	// The fields that many Events have in common are shared.
	namespace, eventType, reason, component unique.Handle[string]

	message   string
	series    *corev1.EventSeries
	count     int32
	shortened bool // the Event has a longer reason or message
	times     cachedTimes
}

// cachedReference is the involved object of a cachedEvent.
type cachedReference struct {
	name                        string
	uid                         types.UID
	apiVersion, kind, namespace unique.Handle[string]
}

// cachedTimes are the times of a cachedEvent in microseconds, the resolution of the API.
type cachedTimes struct{ created, first, last, event int64 }

func newCachedEvent(ev *corev1.Event) *cachedEvent {
	reason, message := shorten(ev.Reason, maxCachedReason), shorten(ev.Message, maxCachedMessage)
	return &cachedEvent{
		namespace:       unique.Make(ev.Namespace),
		name:            ev.Name,
		uid:             ev.UID,
		resourceVersion: ev.ResourceVersion,
		involved: cachedReference{
			name:       identity(ev.InvolvedObject.Name),
			uid:        types.UID(identity(string(ev.InvolvedObject.UID))),
			apiVersion: unique.Make(identity(ev.InvolvedObject.APIVersion)),
			kind:       unique.Make(identity(ev.InvolvedObject.Kind)),
			namespace:  unique.Make(identity(ev.InvolvedObject.Namespace)),
		},
		eventType: unique.Make(shorten(ev.Type, maxCachedReason)),
		reason:    unique.Make(reason),
		component: unique.Make(shorten(cmp.Or(ev.Source.Component, ev.ReportingController), maxCachedReason)),
		message:   message,
		shortened: reason != ev.Reason || message != ev.Message,
		series:    ev.Series,
		count:     ev.Count,
		times: cachedTimes{
			created: ev.CreationTimestamp.UnixMicro(),
			first:   ev.FirstTimestamp.UnixMicro(),
			last:    ev.LastTimestamp.UnixMicro(),
			event:   ev.EventTime.UnixMicro(),
		},
	}
}

// shorten returns the beginning of a text. The copy lets the memory of the whole text go.
func shorten(text string, length int) string {
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(strings.Clone(text[:length]), "")
}

// identity returns a field of a reference, or nothing if no object can have it.
func identity(text string) string {
	if len(text) > maxIdentity {
		return ""
	}
	return text
}

// event returns the Event with the fields that the cache has.
func (e *cachedEvent) event() *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     e.meta(),
		InvolvedObject: e.involved.reference(),
		Source:         corev1.EventSource{Component: e.component.Value()},
		Type:           e.eventType.Value(),
		Reason:         e.reason.Value(),
		Message:        e.message,
		Series:         e.series,
		Count:          e.count,
		FirstTimestamp: metav1.Time{Time: timeOf(e.times.first)},
		LastTimestamp:  metav1.Time{Time: timeOf(e.times.last)},
		EventTime:      metav1.MicroTime{Time: timeOf(e.times.event)},
	}
}

// timeOf returns a time of a cachedEvent. The zero time stays zero.
func timeOf(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

func (e *cachedEvent) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: e.namespace.Value(), Name: e.name, UID: e.uid, ResourceVersion: e.resourceVersion,
		CreationTimestamp: metav1.Time{Time: timeOf(e.times.created)},
	}
}

// GetObjectMeta returns the metadata from which client-go takes the key.
func (e *cachedEvent) GetObjectMeta() metav1.Object {
	meta := e.meta()
	return &meta
}

func (e *cachedEvent) namespacedName() types.NamespacedName {
	return types.NamespacedName{Namespace: e.namespace.Value(), Name: e.name}
}

// involvedObject returns the object that the Event is about.
func (e *cachedEvent) involvedObject() target.Identity {
	return observe.InvolvedObject(&corev1.Event{InvolvedObject: e.involved.reference()})
}

func (r *cachedReference) reference() corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: r.apiVersion.Value(), Kind: r.kind.Value(), Namespace: r.namespace.Value(), Name: r.name, UID: r.uid,
	}
}
