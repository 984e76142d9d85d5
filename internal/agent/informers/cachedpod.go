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

// cachedPod is the form of a Pod in the cache: what trimPod keeps, encoded. Most replicas have equal common fields, and share their memory.
// A decoded Pod takes about ten times as much as one of them.
type cachedPod struct {
	namespace unique.Handle[string]
	name      string
	uid       types.UID
	common    unique.Handle[string] // protobuf of a corev1.Pod, without the fields above and those of own
	own       string                // the fields that eachPodField visits; a slice would take 16 bytes more
}

// newCachedPod returns the form of a Pod in the cache. It changes the Pod, which the caller must not use afterwards.
func newCachedPod(pod *corev1.Pod) (*cachedPod, error) {
	out := &cachedPod{namespace: unique.Make(pod.Namespace), name: pod.Name, uid: pod.UID}
	trimmed := trimPod(pod)
	trimmed.Namespace, trimmed.Name, trimmed.UID = "", "", ""
	buffer := getBuffer()
	defer buffers.Put(buffer)
	encoder := fieldCodec{encoded: (*buffer)[:0]}
	eachPodField(&trimmed, &encoder)
	out.own = string(encoder.encoded)
	*buffer = slices.Grow(encoder.encoded[:0], trimmed.Size())
	common := (*buffer)[:trimmed.Size()]
	if _, err := trimmed.MarshalToSizedBuffer(common); err != nil {
		return nil, fmt.Errorf("encode Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	out.common = unique.Make(string(common))
	return out, nil
}

// eachPodField visits the fields of a trimmed Pod in which replicas differ. It visits the messages of container states because the
// kubelet's message about a crash loop names the Pod.
func eachPodField(pod *corev1.Pod, f *fieldCodec) {
	f.decimal(&pod.ResourceVersion) // first, because resourceVersion reads no more
	f.time(&pod.CreationTimestamp)
	if pod.DeletionTimestamp != nil {
		f.time(pod.DeletionTimestamp)
	}
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
			f.number(&statuses[i].RestartCount)
			eachStateField(&statuses[i].State, f)
			eachStateField(&statuses[i].LastTerminationState, f)
		}
	}
}

func eachStateField(state *corev1.ContainerState, f *fieldCodec) {
	if waiting := state.Waiting; waiting != nil {
		f.text(&waiting.Message)
	}
	if running := state.Running; running != nil {
		f.time(&running.StartedAt)
	}
	if ended := state.Terminated; ended != nil {
		f.text(&ended.ContainerID)
		f.text(&ended.Message)
		f.time(&ended.StartedAt)
		f.time(&ended.FinishedAt)
	}
}

// podConditions is how many conditions a running Pod has. A list that grows to this length allocates three times as much.
const podConditions = 5

// pod returns the trimmed Pod.
func (p *cachedPod) pod() *corev1.Pod {
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: make([]corev1.PodCondition, 0, podConditions)}}
	p.decodeCommon(pod)
	eachPodField(pod, decoderOf(p.own))
	p.identify(&pod.ObjectMeta)
	return pod
}

// metadata returns the metadata of the trimmed Pod, without the times.
func (p *cachedPod) metadata() *metav1.ObjectMeta {
	partial := &metav1.PartialObjectMetadata{} // has the metadata in the same field as a Pod, and skips the others
	p.decodeCommon(partial)
	p.identify(&partial.ObjectMeta)
	partial.ResourceVersion = p.resourceVersion()
	return &partial.ObjectMeta
}

func (p *cachedPod) decodeCommon(into interface{ Unmarshal(data []byte) error }) {
	buffer := getBuffer()
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
	o := &metav1.ObjectMeta{ResourceVersion: p.resourceVersion()}
	p.identify(o)
	return o
}

// identify sets the fields that are not encoded.
func (p *cachedPod) identify(o *metav1.ObjectMeta) {
	o.Namespace, o.Name, o.UID = p.namespace.Value(), p.name, p.uid
}

func (p *cachedPod) resourceVersion() (version string) {
	decoderOf(p.own).decimal(&version)
	return version
}

// metadataOf returns the metadata of a cached object, with its owners and labels. That of a Pod has no times.
func metadataOf(obj any) (metav1.Object, error) {
	if p, ok := obj.(*cachedPod); ok {
		return p.metadata(), nil
	}
	return meta.Accessor(obj)
}
