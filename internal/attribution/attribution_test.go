package attribution

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestDefaultNamespace(t *testing.T) {
	for _, tt := range []struct {
		reason string
		listed []string
		want   string
	}{
		{"nothing is listed", nil, "default"},
		{"no resource names a namespace", []string{"", ""}, "default"},
		{"all others name the same", []string{"", "app", "app"}, "app"},
		{"the others name several", []string{"app", "", "db"}, "default"},
	} {
		if got := DefaultNamespace(slices.Values(tt.listed)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.reason, got, tt.want)
		}
	}
}

func TestLabelScope(t *testing.T) {
	for _, tt := range []struct {
		reason                       string
		isHelm                       bool
		annotated, written, resolved []string
		namespace                    string
		want, everywhere             bool
	}{
		{reason: "a written namespace", written: []string{"app"}, resolved: []string{"app"}, namespace: "app", want: true},
		{reason: "another one", written: []string{"app"}, resolved: []string{"app"}, namespace: "evil"},
		{reason: "the namespace of a cluster-scoped resource", written: []string{"app"}, resolved: []string{""}, namespace: "app", want: true},
		{reason: "a resolved namespace", written: []string{""}, resolved: []string{"default"}, namespace: "default", want: true},
		{reason: "one of the annotation", annotated: []string{"more"}, written: []string{"app"}, resolved: []string{"app"}, namespace: "more", want: true},
		{reason: "a cluster-scoped object", written: []string{"app"}, resolved: []string{"app"}, want: true},
		{reason: "nothing is known", namespace: "app"},
		{reason: "nothing is known of a Helm release", isHelm: true, namespace: "app", want: true, everywhere: true},
		{
			reason: "a Helm release without written namespaces", isHelm: true, written: []string{""}, resolved: []string{"default"}, namespace: "app",
			want: true, everywhere: true,
		},
		{reason: "a Helm release with one", isHelm: true, written: []string{"", "app"}, resolved: []string{"app", "app"}, namespace: "db"},
		{reason: "a Helm release with the annotation", isHelm: true, annotated: []string{"app"}, written: []string{""}, resolved: []string{""}, namespace: "db"},
	} {
		s := NewLabelScope(tt.isHelm, tt.annotated, slices.Values(tt.written), slices.Values(tt.resolved))
		if got := s.Contains(tt.namespace); got != tt.want {
			t.Errorf("%s: Contains(%q) is %t, want %t", tt.reason, tt.namespace, got, tt.want)
		}
		if got := s.IsEverywhere(); got != tt.everywhere {
			t.Errorf("%s: IsEverywhere is %t, want %t", tt.reason, got, tt.everywhere)
		}
	}
}

func TestIsAbout(t *testing.T) {
	node := Object{Kind: "Node", Name: "n-1", UID: "uid-node"}
	set := Object{Group: "apps", Kind: "ReplicaSet", Namespace: "app", Name: "web-1", UID: "uid-set"}
	aboutNode := corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "n-1", UID: "uid-node"}
	aboutSet := corev1.ObjectReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "app", Name: "web-1", UID: "uid-set"}
	with := func(change func(*corev1.ObjectReference)) corev1.ObjectReference {
		out := aboutSet
		change(&out)
		return out
	}
	for _, tt := range []struct {
		reason    string
		namespace string // of the Event
		involved  corev1.ObjectReference
		known     Object
		want      bool
	}{
		{"an Event of a controller", "app", aboutSet, set, true},
		{"another version", "app", with(func(o *corev1.ObjectReference) { o.APIVersion = "apps/v1beta1" }), set, true},
		{"without an API version", "app", with(func(o *corev1.ObjectReference) { o.APIVersion = "" }), set, true},
		{"an Event of a user of another namespace", "evil", aboutSet, set, false},
		{"the namespace of the Event", "evil", with(func(o *corev1.ObjectReference) { o.Namespace = "evil" }), set, false},
		{"no namespace", "default", with(func(o *corev1.ObjectReference) { o.Namespace = "" }), set, false},
		{"another name", "app", with(func(o *corev1.ObjectReference) { o.Name = "web" }), set, false},
		{"another kind", "app", with(func(o *corev1.ObjectReference) { o.Kind = "Deployment" }), set, false},
		{"another group", "app", with(func(o *corev1.ObjectReference) { o.APIVersion = "example.com/v1" }), set, false},
		{"another UID", "app", with(func(o *corev1.ObjectReference) { o.UID = "uid-other" }), set, false},
		{"a cluster-scoped object", "default", aboutNode, node, true},
		{"a cluster-scoped object, by a system component", "kube-system", aboutNode, node, true},
		{"a cluster-scoped object, by a user", "evil", aboutNode, node, false},
	} {
		if got := IsAbout(tt.namespace, &tt.involved, tt.known); got != tt.want {
			t.Errorf("%s: IsAbout is %t, want %t", tt.reason, got, tt.want)
		}
	}
}
