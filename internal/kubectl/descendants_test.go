package kubectl

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func TestIsAbout(t *testing.T) {
	object := func(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(apiVersion)
		u.SetKind(kind)
		u.SetNamespace(namespace)
		u.SetName(name)
		u.SetUID(types.UID("uid-" + name))
		return u
	}
	event := func(namespace string, involved any) map[string]any {
		return map[string]any{"kind": "Event", "metadata": map[string]any{"name": "e", "namespace": namespace}, "involvedObject": involved}
	}
	node, set := object("v1", "Node", "", "n-1"), object("apps/v1", "ReplicaSet", "app", "web-1")
	aboutNode := map[string]any{"apiVersion": "v1", "kind": "Node", "name": "n-1", "uid": string(node.GetUID())}
	aboutSet := map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "namespace": "app", "name": "web-1", "uid": string(set.GetUID())}
	for _, tt := range []struct {
		reason string
		event  map[string]any
		object *unstructured.Unstructured
		want   bool
	}{
		{"an Event of a controller", event("app", aboutSet), set, true},
		{"of another namespace", event("evil", aboutSet), set, false},
		{"about another object", event("app", aboutSet), node, false},
		{"about an unknown object", event("app", aboutSet), nil, false},
		{"a cluster-scoped object", event("default", aboutNode), node, true},
		{"a cluster-scoped object, by a system component", event("kube-system", aboutNode), node, true},
		{"a cluster-scoped object, by a user", event("evil", aboutNode), node, false},
		{"malformed", event("app", "web-1"), set, false},
	} {
		if got := isAbout(tt.event, tt.object); got != tt.want {
			t.Errorf("%s: isAbout is %t, want %t", tt.reason, got, tt.want)
		}
	}
}
