package watch

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/threeport/threeport-agent/internal/observe"
	"github.com/threeport/threeport-agent/internal/target"
)

// stub is what the cache keeps of an object that nobody lists: identity, owners, and the labels that name a
// workload.
type stub struct{ metav1.ObjectMeta }

// transform cuts every object down to what is used before it enters the cache. It is given some objects
// twice.
func (w *Watcher) transform(gvk schema.GroupVersionKind) cache.TransformFunc {
	return func(obj any) (any, error) {
		switch o := obj.(type) {
		case *corev1.Event:
			return trimEvent(o), nil
		case *corev1.Pod:
			return trimPod(o), nil
		case *unstructured.Unstructured:
			observe.Trim(o)
			if w.targets.Lists(refOf(gvk.GroupKind(), o)) {
				return o, nil
			}
			return newStub(o), nil
		case *metav1.PartialObjectMetadata:
			observe.Trim(o)
			if gvk == secretKind && w.targets.Lists(refOf(gvk.GroupKind(), o)) {
				o.SetGroupVersionKind(gvk)
				return o, nil
			}
			return newStub(o), nil
		default: // a stub, or a tombstone
			return obj, nil
		}
	}
}

func refOf(kind schema.GroupKind, o metav1.Object) target.Ref {
	return target.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

func newStub(o metav1.Object) *stub {
	return &stub{trimMeta(o)}
}

func trimMeta(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:              o.GetName(),
		Namespace:         o.GetNamespace(),
		UID:               o.GetUID(),
		ResourceVersion:   o.GetResourceVersion(),
		Labels:            instanceLabels(o.GetLabels()),
		OwnerReferences:   o.GetOwnerReferences(),
		DeletionTimestamp: o.GetDeletionTimestamp(),
	}
}

func trimEvent(ev *corev1.Event) *corev1.Event {
	out := &corev1.Event{
		InvolvedObject: ev.InvolvedObject,
		Reason:         ev.Reason,
		Message:        ev.Message,
		FirstTimestamp: ev.FirstTimestamp,
		LastTimestamp:  ev.LastTimestamp,
		Type:           ev.Type,
		EventTime:      ev.EventTime,
		Series:         ev.Series,
	}
	out.Name, out.Namespace, out.UID = ev.Name, ev.Namespace, ev.UID
	out.ResourceVersion, out.CreationTimestamp = ev.ResourceVersion, ev.CreationTimestamp
	return out
}

// trimPod keeps what health reads.
func trimPod(pod *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: trimMeta(pod)}
	out.Status.Phase, out.Status.Reason, out.Status.Message = pod.Status.Phase, pod.Status.Reason, pod.Status.Message
	out.Status.Conditions = pod.Status.Conditions
	out.Status.InitContainerStatuses = trimContainers(pod.Status.InitContainerStatuses)
	out.Status.ContainerStatuses = trimContainers(pod.Status.ContainerStatuses)
	return out
}

func trimContainers(in []corev1.ContainerStatus) []corev1.ContainerStatus {
	out := make([]corev1.ContainerStatus, len(in))
	for i, c := range in {
		out[i] = corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: c.Ready, RestartCount: c.RestartCount,
			State: c.State, LastTerminationState: c.LastTerminationState,
		}
	}
	return out
}

// eventIndexers find the Events about an object.
var eventIndexers = cache.Indexers{
	indexByUID: func(obj any) ([]string, error) {
		if ev, ok := obj.(*corev1.Event); ok && ev.InvolvedObject.UID != "" {
			return []string{string(ev.InvolvedObject.UID)}, nil
		}
		return nil, nil
	},
	indexByName: func(obj any) ([]string, error) {
		if ev, ok := obj.(*corev1.Event); ok {
			return []string{observe.InvolvedObject(ev).String()}, nil
		}
		return nil, nil
	},
}

// unwrap returns the object of a delete notification: itself, or the last state that was known of it when
// its deletion was missed.
func unwrap(obj any) (metav1.Object, error) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	return meta.Accessor(obj)
}
