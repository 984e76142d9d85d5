package informers

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// BenchmarkTransform transforms a Deployment with two containers of 20 environment variables, which a workload lists or not.
func BenchmarkTransform(b *testing.B) {
	kind := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	for _, isListed := range []bool{true, false} {
		b.Run(fmt.Sprintf("listed=%t", isListed), func(b *testing.B) {
			object := wideDeployment()
			do := transform(kind, allListed(isListed), nil)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := do(object); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func wideDeployment() *unstructured.Unstructured {
	var containers []any
	for _, name := range []string{"app", "proxy"} {
		var env []any
		for i := range 20 {
			env = append(env, map[string]any{"name": fmt.Sprintf("SETTING_%d", i), "value": "x"})
		}
		containers = append(containers, map[string]any{
			"name": name, "image": "example.com/app:1", "env": env,
			"resources":      map[string]any{"limits": map[string]any{"cpu": "1", "memory": "1Gi"}},
			"readinessProbe": map[string]any{"httpGet": map[string]any{"path": "/readyz", "port": int64(8080)}, "periodSeconds": int64(10)},
			"volumeMounts":   []any{map[string]any{"name": "data", "mountPath": "/data"}},
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": "web", "namespace": "app", "uid": "u", "resourceVersion": "1",
			"annotations": map[string]any{"deployment.kubernetes.io/revision": "3"},
		},
		"spec": map[string]any{
			"replicas": int64(3), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
				"spec":     map[string]any{"containers": containers, "volumes": []any{map[string]any{"name": "data", "emptyDir": map[string]any{}}}},
			},
		},
		"status": map[string]any{"replicas": int64(3), "conditions": []any{map[string]any{"type": "Available", "status": "True"}}},
	}}
}

// BenchmarkCachedPod decodes a watched Pod into its cached form, whose common fields are there already, and that as an assessment does.
func BenchmarkCachedPod(b *testing.B) {
	encoded, err := runningPod().Marshal()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		cached, err := decodePod(encoded)
		if err != nil {
			b.Fatal(err)
		}
		if cached.(*cachedPod).pod().Status.Phase != corev1.PodRunning {
			b.Fatal("the phase is lost")
		}
	}
}

// BenchmarkCachedEvent encodes a watched Event for the cache, and decodes it as a report does.
func BenchmarkCachedEvent(b *testing.B) {
	do, ev := transform(eventKind, allListed(false), nil), unownedEvent(1)
	b.ReportAllocs()
	for b.Loop() {
		cached, err := do(ev)
		if err != nil {
			b.Fatal(err)
		}
		if cached.(*cachedEvent).event().Name == "" {
			b.Fatal("the name is lost")
		}
	}
}

func runningPod() *corev1.Pod {
	yes, started := true, metav1.Unix(1_700_000_000, 0)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "app", Name: "web-5d9c7b-x2x4z", UID: "0a2b2f9e-93c4-4a5e-8a2a-3c7d53f0d001", ResourceVersion: "4711",
			Labels:          map[string]string{"app": "web", "pod-template-hash": "5d9c7b"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d9c7b", UID: "u", Controller: &yes}},
		},
		Spec: corev1.PodSpec{NodeName: "node-1", RestartPolicy: corev1.RestartPolicyAlways},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: &started,
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "app", Image: "example.com/app:1", Ready: true, Started: &yes,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
			}},
		},
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: started})
	}
	return pod
}
