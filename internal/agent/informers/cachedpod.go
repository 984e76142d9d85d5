package informers

import (
	"fmt"
	"slices"
	"unique"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// cachedPod is the form of a Pod in the cache: what trimPod keeps, encoded. A decoded Pod takes ten times the memory. It is decoded
// in 4 µs when it has changed and when it is assessed.
type cachedPod struct {
	namespace       unique.Handle[string]
	name            string
	uid             types.UID
	resourceVersion string
	common          unique.Handle[string] // protobuf of a corev1.Pod, without the fields above and those of own
	own             string                // the fields that eachOwnField visits
}

func newCachedPod(pod *corev1.Pod) (*cachedPod, error) {
	out := &cachedPod{
		namespace: unique.Make(pod.Namespace), name: pod.Name, uid: pod.UID, resourceVersion: pod.ResourceVersion,
	}
	trimmed := trimPod(pod)
	trimmed.Namespace, trimmed.Name, trimmed.UID, trimmed.ResourceVersion = "", "", "", ""
	buffer := newBuffer()
	defer buffers.Put(buffer)
	own := ownFields((*buffer)[:0])
	eachOwnField(&trimmed, own.takeText, own.takeTime)
	out.own = string(own)
	*buffer = slices.Grow(own[:0], trimmed.Size())
	common := (*buffer)[:trimmed.Size()]
	if _, err := trimmed.MarshalToSizedBuffer(common); err != nil {
		return nil, fmt.Errorf("encode Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	out.common = unique.Make(string(common))
	return out, nil
}

// eachOwnField visits the fields of a trimmed Pod in which replicas differ, those of the metadata first. Replicas in the same state
// share the memory of all other fields.
func eachOwnField(pod *corev1.Pod, text func(*string), at func(*metav1.Time)) {
	eachOwnTime(&pod.ObjectMeta, at)
	text(&pod.Spec.NodeName)
	if pod.Status.StartTime != nil {
		at(pod.Status.StartTime)
	}
	for i := range pod.Status.Conditions {
		at(&pod.Status.Conditions[i].LastTransitionTime)
	}
	for _, statuses := range [][]corev1.ContainerStatus{
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses,
	} {
		for i := range statuses {
			text(&statuses[i].ContainerID)
			for _, state := range []*corev1.ContainerState{&statuses[i].State, &statuses[i].LastTerminationState} {
				if running := state.Running; running != nil {
					at(&running.StartedAt)
				}
				if ended := state.Terminated; ended != nil {
					text(&ended.ContainerID)
					at(&ended.StartedAt)
					at(&ended.FinishedAt)
				}
			}
		}
	}
}

// eachOwnTime visits the times of the metadata of a trimmed Pod.
func eachOwnTime(o *metav1.ObjectMeta, at func(*metav1.Time)) {
	at(&o.CreationTimestamp)
	if o.DeletionTimestamp != nil {
		at(o.DeletionTimestamp)
	}
}

// ownFields has encoded fields one after the other: a text with its length before it, a time as a number of seconds. Each method moves
// one field: the take methods to the end, the give methods from the beginning.
type ownFields []byte

func (f *ownFields) takeText(text *string) {
	*f = protowire.AppendString(*f, *text)
	*text = ""
}

func (f *ownFields) takeTime(at *metav1.Time) {
	number := uint64(0) // the zero time
	if !at.IsZero() {
		number = 1 + protowire.EncodeZigZag(at.Unix()) // the API has no fractions of a second
	}
	*f = protowire.AppendVarint(*f, number)
	*at = metav1.Time{}
}

func (f *ownFields) giveText(text *string) {
	value, size := protowire.ConsumeString(*f)
	*text, *f = value, (*f)[size:]
}

func (f *ownFields) giveTime(at *metav1.Time) {
	number, size := protowire.ConsumeVarint(*f)
	if *f = (*f)[size:]; number != 0 {
		*at = metav1.Unix(protowire.DecodeZigZag(number-1), 0)
	}
}

// pod returns the trimmed Pod.
func (p *cachedPod) pod() *corev1.Pod {
	pod := &corev1.Pod{}
	p.decode(pod)
	own := ownFields(p.own)
	eachOwnField(pod, own.giveText, own.giveTime)
	p.identify(&pod.ObjectMeta)
	return pod
}

// metadata returns the metadata of the trimmed Pod.
func (p *cachedPod) metadata() *metav1.ObjectMeta {
	partial := &metav1.PartialObjectMetadata{} // has the metadata in the same field as a Pod, and skips the others
	p.decode(partial)
	own := ownFields(p.own)
	eachOwnTime(&partial.ObjectMeta, own.giveTime)
	p.identify(&partial.ObjectMeta)
	return &partial.ObjectMeta
}

// decode decodes the fields of common.
func (p *cachedPod) decode(into interface{ Unmarshal(data []byte) error }) {
	buffer := newBuffer()
	defer buffers.Put(buffer)
	*buffer = append((*buffer)[:0], p.common.Value()...)
	if err := into.Unmarshal(*buffer); err != nil { // newCachedPod encoded it
		panic(fmt.Sprintf("decode Pod %s/%s: %v", p.namespace.Value(), p.name, err))
	}
}

// GetObjectKind implements runtime.Object, like DeepCopyObject.
func (*cachedPod) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the same Pod, which never changes.
func (p *cachedPod) DeepCopyObject() runtime.Object { return p }

// GetObjectMeta returns the identity and the version, which client-go needs.
func (p *cachedPod) GetObjectMeta() metav1.Object {
	o := &metav1.ObjectMeta{}
	p.identify(o)
	return o
}

// identify sets the fields that are not encoded.
func (p *cachedPod) identify(o *metav1.ObjectMeta) {
	o.Namespace, o.Name, o.UID, o.ResourceVersion = p.namespace.Value(), p.name, p.uid, p.resourceVersion
}

// decodeMetadata returns the metadata of an encoded object of the cache. PartialObjectMetadata has them in the same field as other
// kinds, and skips the other fields.
func decodeMetadata(encoded []byte) *metav1.ObjectMeta {
	partial := &metav1.PartialObjectMetadata{}
	if err := partial.Unmarshal(encoded); err != nil { // the agent encoded it
		panic(fmt.Sprintf("decode metadata: %v", err))
	}
	return &partial.ObjectMeta
}

// metadataOf returns the metadata of a cached object, with its owners and labels.
func metadataOf(obj any) (metav1.Object, error) {
	if p, ok := obj.(*cachedPod); ok {
		return p.metadata(), nil
	}
	return meta.Accessor(obj)
}
