package informers

import (
	"fmt"
	"slices"
	"unique"

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
	own := fieldCodec{encoded: (*buffer)[:0]}
	eachOwnField(&trimmed, &own)
	out.own = string(own.encoded)
	*buffer = slices.Grow(own.encoded[:0], trimmed.Size())
	common := (*buffer)[:trimmed.Size()]
	if _, err := trimmed.MarshalToSizedBuffer(common); err != nil {
		return nil, fmt.Errorf("encode Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	out.common = unique.Make(string(common))
	return out, nil
}

// eachOwnField visits the fields of a trimmed Pod in which replicas differ, those of the metadata first. Replicas in the same state
// share the memory of all other fields.
func eachOwnField(pod *corev1.Pod, f *fieldCodec) {
	eachOwnTime(&pod.ObjectMeta, f)
	f.text(&pod.Spec.NodeName)
	if pod.Status.StartTime != nil {
		f.time(pod.Status.StartTime)
	}
	for i := range pod.Status.Conditions {
		f.time(&pod.Status.Conditions[i].LastTransitionTime)
	}
	for _, statuses := range [][]corev1.ContainerStatus{
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses,
	} {
		for i := range statuses {
			f.text(&statuses[i].ContainerID)
			eachOwnStateField(&statuses[i].State, f)
			eachOwnStateField(&statuses[i].LastTerminationState, f)
		}
	}
}

// eachOwnTime visits the times of the metadata of a trimmed Pod.
func eachOwnTime(o *metav1.ObjectMeta, f *fieldCodec) {
	f.time(&o.CreationTimestamp)
	if o.DeletionTimestamp != nil {
		f.time(o.DeletionTimestamp)
	}
}

func eachOwnStateField(state *corev1.ContainerState, f *fieldCodec) {
	if running := state.Running; running != nil {
		f.time(&running.StartedAt)
	}
	if ended := state.Terminated; ended != nil {
		f.text(&ended.ContainerID)
		f.time(&ended.StartedAt)
		f.time(&ended.FinishedAt)
	}
}

// pod returns the trimmed Pod.
func (p *cachedPod) pod() *corev1.Pod {
	pod := &corev1.Pod{}
	p.decode(pod)
	eachOwnField(pod, decoderOf([]byte(p.own)))
	p.identify(&pod.ObjectMeta)
	return pod
}

// metadata returns the metadata of the trimmed Pod.
func (p *cachedPod) metadata() *metav1.ObjectMeta {
	partial := &metav1.PartialObjectMetadata{} // has the metadata in the same field as a Pod, and skips the others
	p.decode(partial)
	eachOwnTime(&partial.ObjectMeta, decoderOf([]byte(p.own)))
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

// metadataOf returns the metadata of a cached object, with its owners and labels.
func metadataOf(obj any) (metav1.Object, error) {
	if p, ok := obj.(*cachedPod); ok {
		return p.metadata(), nil
	}
	return meta.Accessor(obj)
}
