package informers

import (
	"bytes"
	"cmp"
	"strings"
	"unique"

	"github.com/google/uuid"
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
// five times the memory, and the cache has all Events of the cluster: most belong to no workload, and anybody may create them.
type cachedEvent struct {
	common unique.Handle[commonFields]
	name   string
	own    []byte // the fields that eachEventField visits, with short forms: see shortUID and shortName
	hashes eventHashes
	places eventPlaces // changed by the indexes of the store
}

// commonFields are the fields that many Events have in common.
type commonFields struct {
	namespace, eventType, reason, component             string
	involvedAPIVersion, involvedKind, involvedNamespace string
	shortened                                           bool // the Event has a longer reason or message
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
			UID: shortUID(ev.UID), ResourceVersion: ev.ResourceVersion, CreationTimestamp: ev.CreationTimestamp,
		},
		InvolvedObject: corev1.ObjectReference{
			Name: shortName(involved.Name, ev.Name), UID: shortUID(involved.UID),
		},
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
	return &cachedEvent{common: unique.Make(common), name: ev.Name, own: bytes.Clone(encoder.encoded), hashes: hashesOf(involved)}
}

// eachEventField visits the fields that few Events have in common, those of the metadata first.
func eachEventField(ev *corev1.Event, f *fieldCodec) {
	eachEventMetadata(&ev.ObjectMeta, f)
	f.text(&ev.InvolvedObject.Name)
	f.text((*string)(&ev.InvolvedObject.UID))
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

func eachEventMetadata(o *metav1.ObjectMeta, f *fieldCodec) {
	f.text((*string)(&o.UID))
	f.text(&o.ResourceVersion)
	f.time(&o.CreationTimestamp)
}

// anyEvent and isWarning select Events without decoding them.
func anyEvent(*cachedEvent) bool { return true }

func (e *cachedEvent) isWarning() bool { return e.common.Value().eventType == corev1.EventTypeWarning }

// event returns the Event with the fields that the cache has.
func (e *cachedEvent) event() *corev1.Event {
	ev, common := &corev1.Event{}, e.common.Value()
	eachEventField(ev, decoderOf(e.own))
	e.restore(&ev.ObjectMeta)
	ev.Type, ev.Reason, ev.Source.Component = common.eventType, common.reason, common.component
	involved := &ev.InvolvedObject
	involved.APIVersion, involved.Kind, involved.Namespace = common.involvedAPIVersion, common.involvedKind, common.involvedNamespace
	involved.Name, involved.UID = wholeName(involved.Name, ev.Name), wholeUID(involved.UID)
	return ev
}

// restore restores the metadata of the decoded Event.
func (e *cachedEvent) restore(o *metav1.ObjectMeta) {
	o.Namespace, o.Name, o.UID = e.common.Value().namespace, e.name, wholeUID(o.UID)
}

// GetObjectKind implements runtime.Object, like DeepCopyObject.
func (*cachedEvent) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the same Event: what others read of it never changes.
func (e *cachedEvent) DeepCopyObject() runtime.Object { return e }

// GetObjectMeta implements metav1.ObjectMetaAccessor. It returns the metadata that the cache has.
func (e *cachedEvent) GetObjectMeta() metav1.Object {
	meta := &metav1.ObjectMeta{}
	eachEventMetadata(meta, decoderOf(e.own))
	e.restore(meta)
	return meta
}

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

// Prefixes of short UIDs.
const (
	asBytes = "b" // the 16 bytes of a UUID follow
	asText  = "t"
)

// shortUID returns a UID in the form that takes the least memory.
func shortUID(uid types.UID) types.UID {
	if id, err := uuid.Parse(string(uid)); err == nil && id.String() == string(uid) {
		return types.UID(asBytes + string(id[:]))
	}
	return asText + uid
}

// wholeUID returns the UID of which shortUID returned the short form.
func wholeUID(short types.UID) types.UID {
	if id, ok := strings.CutPrefix(string(short), asBytes); ok {
		return types.UID(uuid.UUID([]byte(id)).String())
	}
	return types.UID(strings.TrimPrefix(string(short), asText))
}

// asEvent replaces the name of an object after which its Event is named. No object has this name.
const asEvent = "."

// shortName returns the name of an involved object in the form that takes the least memory. By convention the name of an Event is that
// of its object, a dot, and a word that makes it unique.
func shortName(involved, event string) string {
	switch {
	case involved == asEvent:
		return ""
	case involved == namedAfter(event):
		return asEvent
	}
	return involved
}

// wholeName returns the name of which shortName returned the short form.
func wholeName(short, event string) string {
	if short == asEvent {
		return namedAfter(event)
	}
	return short
}

// namedAfter returns the name of the object after which an Event is named; empty if there is none.
func namedAfter(event string) string { return event[:max(strings.LastIndexByte(event, '.'), 0)] }
