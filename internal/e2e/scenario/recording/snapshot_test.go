package recording

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

func TestOf(t *testing.T) {
	s := newVariant(1).snapshot(t, crash)
	pods, err := Of[corev1.Pod](s)
	if err != nil || len(pods) != 2 {
		t.Errorf("%d pods, %v", len(pods), err)
	}
	events, err := Of[corev1.Event](s)
	if err != nil || len(events) != len(s.Events) {
		t.Errorf("%d Events of %d, %v", len(events), len(s.Events), err)
	}
	if jobs, err := Of[appsv1.StatefulSet](s); err != nil || len(jobs) != 0 {
		t.Errorf("%d StatefulSets, %v", len(jobs), err)
	}
	s.Objects[0].Object["unheardOf"] = "field"
	if _, err := Of[corev1.Pod](Snapshot{Objects: s.Objects[:1]}); err == nil && s.Objects[0].GetKind() == podKind {
		t.Error("Of accepts an unknown field")
	}
}

func TestParse_RejectsOtherFiles(t *testing.T) {
	for reason, text := range map[string]string{
		"no YAML":          "a: [",
		"a key twice":      "apiVersion: v1\nkind: Pod\nkind: Pod\n",
		"no object":        "- a\n",
		"no kind":          "apiVersion: v1\n",
		"a time like none": takenLine + "yesterday\napiVersion: v1\nkind: Pod\n",
	} {
		if s, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s: got %v", reason, s)
		}
	}
}

func TestTake(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "app", Name: name} }
	client := fake.NewSimpleDynamicClient(scheme(t),
		&corev1.ConfigMap{ObjectMeta: meta("web")},
		&corev1.ConfigMap{ObjectMeta: meta(RootCertificates)},
		&corev1.Secret{ObjectMeta: meta("web"), Data: map[string][]byte{"password": []byte("secret")}},
		&corev1.Pod{ObjectMeta: meta("web")},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "web"}},
		&corev1.Event{ObjectMeta: meta("web.1")},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-real"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-0"}},
	)
	s, err := Take(context.Background(), client, Scope{Namespace: "app", Nodes: []string{"node-real"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, obj := range append(s.Objects, s.Events...) {
		got = append(got, obj.GetKind()+"/"+obj.GetName())
		if obj.Object["data"] != nil {
			t.Errorf("%s has data", got[len(got)-1])
		}
	}
	if want := "ConfigMap/web Secret/web Pod/web Node/node-real Event/web.1"; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if s.Taken.IsZero() || s.Namespace != "app" {
		t.Errorf("the snapshot was taken at %s in namespace %q", s.Taken, s.Namespace)
	}
	if _, err := Take(context.Background(), client, Scope{Namespace: "app", Nodes: []string{"node-7"}}); err == nil {
		t.Error("Take accepts a node that does not exist")
	}
}

func TestTake_CustomResources_WithAddressesOfManifests(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Source"}
	resource := kind.GroupVersion().WithResource("sources")
	types := scheme(t)
	types.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
	types.AddKnownTypeWithName(kind.GroupVersion().WithKind("SourceList"), &unstructured.UnstructuredList{})
	source := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"url": "http://127.0.0.1:10123/app.git"}}}
	source.SetGroupVersionKind(kind)
	source.SetNamespace("app")
	source.SetName("web")
	client := fake.NewSimpleDynamicClient(types, source)
	s, err := Take(context.Background(), client, Scope{
		Namespace: "app", Also: []Resource{{kind.Kind, resource}}, Addresses: map[string]string{"127.0.0.1:10123": "127.0.0.1:8080"},
	})
	if err != nil || len(s.Objects) != 1 {
		t.Fatalf("the snapshot has %d objects, error %v; want the Source", len(s.Objects), err)
	}
	if url, _, _ := unstructured.NestedString(s.Objects[0].Object, "spec", "url"); url != "http://127.0.0.1:8080/app.git" {
		t.Errorf("the address is %s, want the one of the manifest", url)
	}
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	out := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(out); err != nil {
		t.Fatal(err)
	}
	return out
}
