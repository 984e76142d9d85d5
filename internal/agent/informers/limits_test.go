package informers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// allListed reports whether workloads list all objects, or none.
type allListed bool

func (a allListed) IsListed(target.Ref) bool { return bool(a) }
func (allListed) ListedCount() int           { return 1 }

// The API server accepts metadata and containers up to the size of the whole object. Everybody who may create Pods chooses them.
func TestPodCache_LongLists_TakeLittleMemory(t *testing.T) {
	const n, limit = 10, 200 << 10 // bytes per Pod
	for name, extend := range map[string]func(pod *corev1.Pod, i int){
		"owners": func(pod *corev1.Pod, i int) { pod.OwnerReferences = append(pod.OwnerReferences, otherOwner(i)) },
		"owners with long names": func(pod *corev1.Pod, i int) {
			if i < 30 {
				owner := otherOwner(i)
				owner.Name = strings.Repeat("n", 30<<10)
				pod.OwnerReferences = append(pod.OwnerReferences, owner)
			}
		},
		"finalizers": func(pod *corev1.Pod, i int) {
			pod.Finalizers = append(pod.Finalizers, fmt.Sprintf("example.org/finalizer-%d", i))
		},
		"sidecars": func(pod *corev1.Pod, i int) {
			always := corev1.ContainerRestartPolicyAlways
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "x", RestartPolicy: &always})
		},
		"container statuses": func(pod *corev1.Pod, i int) {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: fmt.Sprintf("c%d", i), State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
			})
		},
		"images": func(pod *corev1.Pod, i int) {
			if i < 20 {
				name := fmt.Sprintf("c%d", i)
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Image: strings.Repeat("x", 50<<10)})
				pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: name})
			}
		},
		"volumes": func(pod *corev1.Pod, _ int) {
			name := strings.Repeat("v", 1<<10)
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
			}})
		},
		"messages": func(pod *corev1.Pod, i int) {
			if i < 10 {
				long := strings.Repeat("m", 30<<10)
				pod.Status.Message = long
				pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Message: long})
				pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
					State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Message: long}},
					LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: long}},
				})
			}
		},
		"conditions": func(pod *corev1.Pod, i int) {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodConditionType(fmt.Sprintf("c%d", i))})
		},
	} {
		t.Run(name, func(t *testing.T) {
			do := transform(podKind, allListed(false), nil)
			registry := target.NewRegistry()
			var kept []any
			before := heapBytes()
			for p := range n {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: fmt.Sprintf("p%d", p), UID: types.UID(fmt.Sprint("pod-", p))}}
				for i := range 20_000 {
					extend(pod, i)
				}
				cached, err := do(decoded(t, pod))
				if err != nil {
					t.Fatal(err)
				}
				kept = append(kept, cached)
				registry.Upsert(objectOf(podKind.GroupKind(), accessor(t, cached)))
			}
			each := (heapBytes() - before) / n
			t.Logf("%d bytes per Pod", each)
			if each > limit {
				t.Errorf("a Pod takes %d bytes, want at most %d", each, limit)
			}
			for p, cached := range kept {
				id := identityOf(podKind.GroupKind(), accessor(t, cached))
				if unresolved := len(registry.UnresolvedOwners(id)); unresolved > maxOwners {
					t.Errorf("Pod %d needs the look-up of %d owners, want at most %d", p, unresolved, maxOwners)
				}
			}
		})
	}
}

// Everybody who may create objects chooses their owners. The registry has all of them in its indexes.
func TestOwners_LongReferences_TakeLittleMemory(t *testing.T) {
	const n, limit = 200, 10 << 10 // bytes per object
	long := strings.Repeat("x", maxIdentity-20)
	first := func(text string, n int) string { return text[:min(len(text), n)] }
	registry := target.NewRegistry()
	before := heapBytes()
	for i := range n {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: fmt.Sprint("web-", i), UID: types.UID(fmt.Sprint("u", i))}}
		for j := range 16 {
			unique := fmt.Sprintf("%d-%d", i, j)
			o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{
				APIVersion: "g" + unique + "." + long + "/v1", Kind: first("K"+unique+long, maxKind), Name: "n" + unique + long, UID: types.UID(first("u"+unique+long, maxUID)),
			})
			if j%2 == 0 { // as long as they can be
				o.OwnerReferences[j].Kind, o.OwnerReferences[j].UID = "K"+unique+long, types.UID("u"+unique+long)
			}
		}
		cached, err := transform(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, allListed(false), nil)(o)
		if err != nil {
			t.Fatal(err)
		}
		registry.Upsert(objectOf(schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, accessor(t, cached)))
	}
	each := (heapBytes() - before) / n
	t.Logf("%d bytes per object", each)
	if each > limit {
		t.Errorf("an object takes %d bytes, want at most %d", each, limit)
	}
	if owners := len(registry.AllUnresolvedOwners()); owners > n*maxOwners {
		t.Errorf("%d owners need a look-up, want at most %d of each object", owners, maxOwners)
	}
}

func otherOwner(i int) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "b", UID: types.UID(fmt.Sprintf("0a1b2c3d-4e5f-6a7b-8c9d-%012d", i))}
}

func accessor(t *testing.T, obj any) metav1.Object {
	t.Helper()
	o, err := metadataOf(obj)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// The controller counts wherever it is in the list, and so do the first owners. This holds for each form of an object in a cache, and
// for an object that a look-up reads.
func TestOwners_BeyondLimit_DoNotCount(t *testing.T) {
	controller := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "controller", Controller: new(true)}
	var owners []metav1.OwnerReference
	want := []types.UID{controller.UID}
	for i := range 20_000 {
		owners = append(owners, otherOwner(i))
		if i < maxOwners {
			want = append(want, owners[i].UID)
		}
	}
	owners = append(owners, controller)
	metadata := metav1.ObjectMeta{Namespace: "app", Name: "web-1", UID: "u", OwnerReferences: owners}
	forms := map[string]struct {
		kind   schema.GroupVersionKind
		object runtime.Object
	}{
		"pod":           {podKind, &corev1.Pod{ObjectMeta: metadata}},
		"replica set":   {schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, &metav1.PartialObjectMetadata{ObjectMeta: metadata}},
		"secret":        {secretKind, &metav1.PartialObjectMetadata{ObjectMeta: metadata}},
		"other kind":    {schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, unstructuredOwned(owners)},
		"EndpointSlice": {schema.GroupVersionKind{Group: sliceKind.Group, Version: "v1", Kind: sliceKind.Kind}, unstructuredOwned(owners)},
	}
	for name, form := range forms {
		for _, isListed := range []bool{false, true} {
			cached, err := transform(form.kind, allListed(isListed), nil)(form.object.DeepCopyObject())
			if err != nil {
				t.Fatal(err)
			}
			o := accessor(t, cached)
			var got []types.UID
			for _, owner := range objectOf(form.kind.GroupKind(), o).Owners {
				got = append(got, owner.UID)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, listed %t: the %d owners are %.10q…, want %q", name, isListed, len(got), got, want)
			}
			if cachedOwners := len(o.GetOwnerReferences()); !isListed && cachedOwners != maxOwners+1 {
				t.Errorf("%s: the cache keeps %d owners, want %d", name, cachedOwners, maxOwners+1)
			}
		}
	}
}

func unstructuredOwned(owners []metav1.OwnerReference) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetNamespace("app")
	u.SetName("web-1")
	u.SetUID("u")
	u.SetOwnerReferences(owners)
	return u
}

// A reference with a longer field than any object has does not use up the limit.
func TestLimitOwners_ImpossibleReference_IsOmitted(t *testing.T) {
	impossible := otherOwner(0)
	impossible.Kind = strings.Repeat("k", maxIdentity+1)
	if got := limitOwners([]metav1.OwnerReference{impossible, otherOwner(1)}); len(got) != 1 || got[0].UID != otherOwner(1).UID {
		t.Errorf("the owners are %+v", got)
	}
}
