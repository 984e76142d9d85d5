package informers

import (
	"fmt"
	"testing"

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
