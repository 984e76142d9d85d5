package informers

import (
	"cmp"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Limits of the texts of a cached Event, in bytes. The API server bounds neither the message nor the other fields of an Event
// of the core group, except for the size of the whole object, 1.5 MiB.
const (
	maxCachedMessage = 1 << 10
	maxCachedReason  = 128 // the limit of events.k8s.io
)

// cachedEvent is the form of an Event in the cache: the fields that reports and health read, most of them encoded. A corev1.Event takes
// six times the memory, and the cache has all Events of the cluster: most belong to no workload, and anybody may create them.
type cachedEvent struct {
	common unique.Handle[commonFields]
	own    string // the fields that eachEventField visits
	hashes eventHashes
	places eventPlaces // changed by the set that has the Event
}

// commonFields are the fields that many Events have in common.
type commonFields struct {
	namespace, eventType, reason, component             string
	involvedAPIVersion, involvedKind, involvedNamespace string
	shortened                                           bool // the Event has a longer reason or message
	preexisting                                         bool // see CachedEvent; set by the store
}

func newCachedEvent(ev *corev1.Event) *cachedEvent {
	involved := limitReference(ev.InvolvedObject)
	common := commonFields{
		namespace:          ev.Namespace,
		eventType:          shorten(ev.Type, maxCachedReason),
		reason:             shorten(ev.Reason, maxCachedReason),
		component:          shorten(cmp.Or(ev.Source.Component, ev.ReportingController), maxCachedReason),
		involvedAPIVersion: involved.APIVersion,
		involvedKind:       involved.Kind,
		involvedNamespace:  involved.Namespace,
	}
	kept := corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name: ev.Name, UID: ev.UID, ResourceVersion: ev.ResourceVersion, CreationTimestamp: ev.CreationTimestamp,
		},
		InvolvedObject: corev1.ObjectReference{Name: involved.Name, UID: involved.UID},
		Message:        shorten(ev.Message, maxCachedMessage),
		Series:         ev.Series.DeepCopy(),
		Count:          ev.Count,
		FirstTimestamp: ev.FirstTimestamp,
		LastTimestamp:  ev.LastTimestamp,
		EventTime:      ev.EventTime,
	}
	common.shortened = common.reason != ev.Reason || kept.Message != ev.Message
	buffer := getBuffer()
	defer buffers.Put(buffer)
	encoder := fieldCodec{encoded: (*buffer)[:0]}
	eachEventField(&kept, &encoder)
	*buffer = encoder.encoded
	return &cachedEvent{common: unique.Make(common), own: string(encoder.encoded), hashes: hashesOf(nameOf(ev), involved)}
}

// eachEventField visits the fields that few Events have in common, those of the metadata first.
func eachEventField(ev *corev1.Event, f *fieldCodec) {
	eachEventMetadata(ev, f)
	f.uid(&ev.InvolvedObject.UID)
	f.text(&ev.Message)
	f.number(&ev.Count)
	f.time(&ev.FirstTimestamp)
	f.time(&ev.LastTimestamp)
	f.microTime(&ev.EventTime)
	if f.present(ev.Series != nil) {
		if ev.Series == nil {
			ev.Series = &corev1.EventSeries{}
		}
		f.number(&ev.Series.Count)
		f.microTime(&ev.Series.LastObservedTime)
	}
}

func eachEventMetadata(ev *corev1.Event, f *fieldCodec) {
	eachEventName(ev, f)
	f.uid(&ev.UID)
	f.decimal(&ev.ResourceVersion)
	f.time(&ev.CreationTimestamp)
}

// eachEventName visits the names of the Event and of its object. By convention the one of the Event begins with the other, and ends with
// hexadecimal digits.
func eachEventName(ev *corev1.Event, f *fieldCodec) {
	object, name := ev.InvolvedObject.Name, ev.Name
	if f.text(&ev.InvolvedObject.Name); f.decodes {
		object = ev.InvolvedObject.Name
	}
	suffix, hasPrefix := strings.CutPrefix(name, object+".")
	if ev.Name = ""; !f.present(hasPrefix) {
		f.text(&name)
		ev.Name = name
	} else if f.hexText(&suffix); f.decodes {
		ev.Name = object + "." + suffix
	}
}

// anyEvent and isWarning select Events without decoding them.
func anyEvent(*cachedEvent) bool { return true }

func (e *cachedEvent) isWarning() bool { return e.common.Value().eventType == corev1.EventTypeWarning }

// event returns the Event with the fields that the cache has.
func (e *cachedEvent) event() *corev1.Event {
	ev := &corev1.Event{}
	e.decode(ev)
	return ev
}

// decode decodes the Event into one without fields.
func (e *cachedEvent) decode(ev *corev1.Event) {
	common := e.common.Value()
	eachEventField(ev, decoderOf(e.own))
	ev.Namespace = common.namespace
	ev.Type, ev.Reason, ev.Source.Component = common.eventType, common.reason, common.component
	involved := &ev.InvolvedObject
	involved.APIVersion, involved.Kind, involved.Namespace = common.involvedAPIVersion, common.involvedKind, common.involvedNamespace
}

// metadata returns the metadata that the cache has.
func (e *cachedEvent) metadata() metav1.ObjectMeta {
	var ev corev1.Event
	eachEventMetadata(&ev, decoderOf(e.own))
	ev.Namespace = e.common.Value().namespace
	return ev.ObjectMeta
}

// name returns the name of the Event.
func (e *cachedEvent) name() types.NamespacedName {
	var ev corev1.Event
	eachEventName(&ev, decoderOf(e.own))
	return types.NamespacedName{Namespace: e.common.Value().namespace, Name: ev.Name}
}

// markPreexisting marks an Event that is part of the first list, or was preexisting before this change. before is nil if there was no object
// of its name. Other objects have no mark.
func markPreexisting(before, obj any, firstList bool) {
	ev, isEvent := obj.(*cachedEvent)
	if !isEvent {
		return
	}
	old, existed := before.(*cachedEvent)
	if !firstList && (!existed || !old.common.Value().preexisting || old.metadata().UID != ev.metadata().UID) {
		return
	}
	common := ev.common.Value()
	common.preexisting = true
	ev.common = unique.Make(common)
}

// GetObjectKind implements runtime.Object, like DeepCopyObject.
func (*cachedEvent) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the same Event: what others read of it never changes.
func (e *cachedEvent) DeepCopyObject() runtime.Object { return e }

// GetObjectMeta implements metav1.ObjectMetaAccessor. It returns the metadata that the cache has.
func (e *cachedEvent) GetObjectMeta() metav1.Object { return new(e.metadata()) }

// limitReference returns the fields of a reference that are kept, except those that no object can have.
func limitReference(ref corev1.ObjectReference) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: identity(ref.APIVersion), Kind: identity(ref.Kind), Namespace: identity(ref.Namespace), Name: identity(ref.Name),
		UID: types.UID(identity(string(ref.UID))),
	}
}

// identity returns a field of a reference, or nothing if no object can have it.
func identity(text string) string {
	if len(text) > maxIdentity {
		return ""
	}
	return text
}
