package informers

import (
	"fmt"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// cachedPod is the form of a Pod in the cache: what trimPod keeps, encoded. A decoded Pod takes four times the memory. It is decoded
// in 4 µs when it has changed and when it is assessed.
type cachedPod struct {
	namespace       unique.Handle[string]
	name            string
	uid             types.UID
	resourceVersion string
	encoded         []byte // protobuf, without the fields above
}

func newCachedPod(pod *corev1.Pod) (*cachedPod, error) {
	out := &cachedPod{
		namespace: unique.Make(pod.Namespace), name: pod.Name, uid: pod.UID, resourceVersion: pod.ResourceVersion,
	}
	trimmed := trimPod(pod)
	trimmed.Namespace, trimmed.Name, trimmed.UID, trimmed.ResourceVersion = "", "", "", ""
	encoded, err := trimmed.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	out.encoded = encoded
	return out, nil
}

// pod returns the trimmed Pod.
func (p *cachedPod) pod() *corev1.Pod {
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(p.encoded); err != nil { // newCachedPod encoded it
		panic(fmt.Sprintf("decode Pod %s/%s: %v", p.namespace.Value(), p.name, err))
	}
	p.identify(&pod.ObjectMeta)
	return pod
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

// metadata returns the metadata of the trimmed Pod.
func (p *cachedPod) metadata() metav1.Object {
	o := decodeMetadata(p.encoded)
	p.identify(o)
	return o
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
