package informers

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCachedPod_Replicas_ShareCommonFields(t *testing.T) {
	replica := func(name string, at time.Time, change func(*corev1.Pod)) *corev1.Pod {
		pod := runningPod()
		pod.Name, pod.UID, pod.ResourceVersion = name, "uid-"+pod.UID, name
		pod.CreationTimestamp, pod.Spec.NodeName = metav1.NewTime(at), "node of "+name
		pod.Status.StartTime = new(metav1.NewTime(at))
		for i := range pod.Status.Conditions {
			pod.Status.Conditions[i].LastTransitionTime = metav1.NewTime(at)
		}
		c := &pod.Status.ContainerStatuses[0]
		c.ContainerID, c.RestartCount = "id of "+name, int32(len(name))
		c.State.Running.StartedAt = metav1.NewTime(at)
		c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			Reason: "Error", ContainerID: "former ID of " + name, Message: "panic in " + name, StartedAt: metav1.NewTime(at), FinishedAt: metav1.NewTime(at),
		}
		change(pod)
		return pod
	}
	unchanged := func(*corev1.Pod) {}
	crashLoop := func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 5m0s restarting failed container=app pod=" + pod.Name},
		}
	}
	terminating := func(pod *corev1.Pod) { pod.DeletionTimestamp = pod.Status.StartTime.DeepCopy() }
	first, second := time.Unix(1_700_000_000, 0), time.Unix(1_700_000_100, 0)
	for _, tc := range []struct {
		reason     string
		one, other *corev1.Pod
		shared     bool
	}{
		{"two running Pods", replica("a", first, unchanged), replica("bb", second, unchanged), true},
		{"two Pods in a crash loop", replica("a", first, crashLoop), replica("bb", second, crashLoop), true},
		{"two terminating Pods", replica("a", first, terminating), replica("bb", second, terminating), true},
		{"a running one and one in a crash loop", replica("a", first, unchanged), replica("bb", second, crashLoop), false},
		{"a running and a terminating one", replica("a", first, unchanged), replica("bb", second, terminating), false},
	} {
		one, err := newCachedPod(tc.one)
		if err != nil {
			t.Fatal(err)
		}
		other, err := newCachedPod(tc.other)
		if err != nil {
			t.Fatal(err)
		}
		if shared := one.common == other.common; shared != tc.shared {
			t.Errorf("%s share their common fields: %t, want %t", tc.reason, shared, tc.shared)
		}
	}
}
