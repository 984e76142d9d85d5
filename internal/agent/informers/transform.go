package informers

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/redact"
)

// objectStub is what the cache keeps of an object that no workload lists, or that is large: its identity, its owners, and the labels
// that name a workload.
type objectStub struct{ metav1.ObjectMeta }

// lists has the objects that workloads list. *target.Registry is one.
type lists interface {
	IsListed(target.Ref) bool
	ListedCount() int
}

// transform returns a function that removes unused parts of an object before it enters the cache. It is called more than once for
// some objects.
//
// It redacts the objects that the cache keeps whole. It keeps no confidential field of others.
func transform(gvk schema.GroupVersionKind, lists lists, redaction *redact.Live) cache.TransformFunc {
	return func(obj any) (any, error) {
		switch o := obj.(type) {
		case *corev1.Event:
			return newCachedEvent(o), nil
		case *corev1.Pod:
			return newCachedPod(o)
		case *unstructured.Unstructured:
			if lists.IsListed(refOf(gvk.GroupKind(), o)) {
				observe.Trim(o, redaction.Current())
				return unlessLarge(o, lists.ListedCount()), nil
			}
			if gvk.GroupKind() == sliceKind {
				return trimSlice(o), nil
			}
			return newStub(o), nil
		case *metav1.PartialObjectMetadata:
			if isSecret(gvk.GroupKind()) && lists.IsListed(refOf(gvk.GroupKind(), o)) {
				o.SetGroupVersionKind(gvk)
				observe.Trim(o, redaction.Current())
				return unlessLarge(o, lists.ListedCount()), nil
			}
			return newStub(o), nil
		default: // already in this form
			return obj, nil
		}
	}
}

// unlessLarge returns a listed object, or its stub if it is large. WholeObject fetches it then.
func unlessLarge[O interface {
	runtime.Object
	metav1.Object
}](o O, listed int) any {
	if isLarge(o, listed) {
		return newStub(o)
	}
	return o
}

func newStub(o metav1.Object) *objectStub { return &objectStub{trimMeta(o)} }

func trimMeta(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:              o.GetName(),
		Namespace:         o.GetNamespace(),
		UID:               o.GetUID(),
		CreationTimestamp: o.GetCreationTimestamp(),
		ResourceVersion:   o.GetResourceVersion(),
		Labels:            instanceLabels(o.GetLabels()),
		Annotations:       eventsAnnotation(o.GetAnnotations()),
		OwnerReferences:   limitOwners(o.GetOwnerReferences()),
		DeletionTimestamp: o.GetDeletionTimestamp(),
	}
}

// trimmedSlice is what the cache keeps of an EndpointSlice that no workload lists.
type trimmedSlice struct{ *unstructured.Unstructured }

// trimSlice keeps the conditions of one endpoint, a ready one if there is any, and the fields of an objectStub. Health reads no more:
// whether there are endpoints, and whether one is ready.
func trimSlice(o *unstructured.Unstructured) trimmedSlice {
	out := trimmedSlice{&unstructured.Unstructured{Object: map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind()}}}
	kept := map[string]any{}
	metadata, _ := o.Object["metadata"].(map[string]any)
	for _, name := range []string{
		"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "finalizers", "ownerReferences",
	} {
		if v, ok := metadata[name]; ok {
			kept[name] = v
		}
	}
	out.Object["metadata"] = kept
	if owners := o.GetOwnerReferences(); len(owners) > maxOwners {
		out.SetOwnerReferences(limitOwners(owners))
	}
	if finalizers := o.GetFinalizers(); len(finalizers) > maxFinalizers {
		out.SetFinalizers(firstOf(finalizers, maxFinalizers))
	}
	if labels := instanceLabels(o.GetLabels()); labels != nil {
		out.SetLabels(labels)
	}
	if at, ok := o.GetAnnotations()[corev1.EndpointsLastChangeTriggerTime]; ok && len(at) <= len(time.RFC3339Nano) {
		out.SetAnnotations(map[string]string{corev1.EndpointsLastChangeTriggerTime: at})
	}
	if endpoints, ok := o.Object["endpoints"]; ok {
		out.Object["endpoints"] = trimEndpoints(endpoints)
	}
	return out
}

// trimEndpoints keeps the endpoint that decides: the first that is ready or malformed, or else the first that does not terminate, or
// else the first.
func trimEndpoints(value any) any {
	endpoints, ok := value.([]any)
	if !ok {
		return value
	}
	trimmed, stays := []any{}, false
	for _, item := range endpoints {
		endpoint, ok := item.(map[string]any)
		if !ok {
			return []any{item}
		}
		kept := []any{map[string]any{"conditions": endpoint["conditions"]}}
		conditions, ok := endpoint["conditions"].(map[string]any)
		if !ok || conditions["ready"] != false {
			return kept
		}
		if terminates := conditions["terminating"] == true; len(trimmed) == 0 || !terminates && !stays {
			trimmed, stays = kept, !terminates
		}
	}
	return trimmed
}

// trimPod keeps the fields that health reads, and those of the reports about terminated containers and of the facts of a Pod. The trimmed
// Pod shares memory with the other one, which trimPod changes.
func trimPod(pod *corev1.Pod) corev1.Pod {
	out := corev1.Pod{ObjectMeta: trimMeta(pod)}
	if revision, ok := pod.Labels[appsv1.ControllerRevisionHashLabelKey]; ok {
		metav1.SetMetaDataLabel(&out.ObjectMeta, appsv1.ControllerRevisionHashLabelKey, revision)
	}
	out.DeletionTimestamp, out.DeletionGracePeriodSeconds = pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds
	out.GenerateName, out.Finalizers = pod.GenerateName, firstOf(pod.Finalizers, maxFinalizers)
	out.Spec.NodeName, out.Spec.RestartPolicy = pod.Spec.NodeName, pod.Spec.RestartPolicy
	out.Spec.InitContainers = trimPolicies(pod.Spec.InitContainers)
	out.Spec.Containers = trimPolicies(pod.Spec.Containers)
	if pod.Spec.NodeName == "" { // health names the claims that a pod waits for
		out.Spec.Volumes = trimVolumes(pod.Spec.Volumes)
	}
	out.Status.Phase = pod.Status.Phase
	out.Status.Reason, out.Status.Message = shorten(pod.Status.Reason, maxStatusText), shorten(pod.Status.Message, maxStatusText)
	out.Status.StartTime, out.Status.NominatedNodeName = pod.Status.StartTime, pod.Status.NominatedNodeName
	out.Status.Conditions = limitConditions(pod.Status.Conditions)
	out.Status.InitContainerStatuses = trimContainers(pod.Status.InitContainerStatuses, pod.Spec.InitContainers)
	out.Status.ContainerStatuses = trimContainers(pod.Status.ContainerStatuses, pod.Spec.Containers)
	out.Status.EphemeralContainerStatuses = trimContainers(pod.Status.EphemeralContainerStatuses, nil)
	return out
}

// trimVolumes keeps the names of the claims.
func trimVolumes(in []corev1.Volume) []corev1.Volume {
	var out []corev1.Volume
	for i := range in {
		v := corev1.Volume{Name: in[i].Name}
		switch claim := in[i].PersistentVolumeClaim; {
		case len(out) == maxVolumes:
			return out
		case claim != nil:
			v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: shorten(claim.ClaimName, maxIdentity)}
		case in[i].Ephemeral != nil:
			v.Ephemeral = &corev1.EphemeralVolumeSource{}
		default:
			continue
		}
		out = append(out, v)
	}
	return out
}

// trimPolicies keeps the containers with their own restart policy: sidecars.
func trimPolicies(in []corev1.Container) []corev1.Container {
	var out []corev1.Container
	for i := range in {
		if in[i].RestartPolicy != nil && len(out) < maxContainers {
			out = append(out, corev1.Container{Name: in[i].Name, RestartPolicy: in[i].RestartPolicy})
		}
	}
	return out
}

// trimContainers puts the image of the spec into each status. The image of a status is the name that the container runtime gives
// it, which may be a digest. A trimmed spec has no images, so a second trimming changes nothing.
func trimContainers(in []corev1.ContainerStatus, spec []corev1.Container) []corev1.ContainerStatus {
	in = in[:min(len(in), maxContainers)]
	for i, c := range in {
		in[i] = corev1.ContainerStatus{
			Name: c.Name, ContainerID: c.ContainerID, Image: shorten(imageOf(c, spec), maxImage),
			Ready: c.Ready, Started: c.Started, RestartCount: c.RestartCount,
			State: limitState(c.State), LastTerminationState: limitState(c.LastTerminationState),
		}
		trimContainerIDs(&in[i])
	}
	return in
}

// trimContainerIDs keeps the IDs only of a container that waits for a restart. If its ID is that of the last termination, the restart is
// not counted yet: see observe.ContainerTerminations. An ID of containerd has 77 bytes.
func trimContainerIDs(c *corev1.ContainerStatus) {
	if c.State.Terminated != nil {
		c.State.Terminated.ContainerID = ""
	}
	if last := c.LastTerminationState.Terminated; last == nil {
		c.ContainerID = ""
	} else if c.State.Waiting == nil {
		c.ContainerID, last.ContainerID = "", ""
	}
}

func imageOf(status corev1.ContainerStatus, spec []corev1.Container) string {
	for i := range spec {
		if spec[i].Name == status.Name && spec[i].Image != "" {
			return spec[i].Image
		}
	}
	return status.Image
}
