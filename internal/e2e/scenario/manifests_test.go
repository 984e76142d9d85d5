package scenario

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/threeport/threeport-agent/internal/e2e/image"
)

func TestCatalogue_EachManifestHasOneScenario(t *testing.T) {
	files, err := manifests.ReadDir("manifests")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, file := range files {
		want = append(want, strings.TrimSuffix(file.Name(), filepath.Ext(file.Name())))
	}
	for _, s := range All() {
		got = append(got, s.Name)
		if found, ok := Get(s.Name); !ok || found.Name != s.Name {
			t.Errorf("scenario %s is not found by its name", s.Name)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("scenarios %v, manifests %v", got, want)
	}
	if _, ok := Get("absent"); ok {
		t.Error("Get found a scenario that does not exist")
	}
	if _, err := (Scenario{Name: "absent"}).Objects(Env{Namespace: "app"}); err == nil {
		t.Error("Objects succeeded for a scenario that does not exist")
	}
}

func TestCatalogue_DescribesMoments(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range All() {
		if doc := s.Doc(); !strings.HasSuffix(doc, ".") || strings.Contains(doc, "apiVersion") {
			t.Errorf("scenario %s: its manifest begins with %q, want a comment that is a sentence", s.Name, doc)
		}
		for i, step := range s.Steps {
			if step.Reached == nil {
				t.Errorf("scenario %s, step %d does not say when it is over", s.Name, i+1)
			}
			if step.Moment == "" {
				continue
			}
			if seen[step.Moment] || !strings.HasPrefix(step.Moment, s.Name) {
				t.Errorf("scenario %s: moment %s is a duplicate, or does not have its name", s.Name, step.Moment)
			}
			seen[step.Moment] = true
			if !strings.HasSuffix(step.Doc, ".") {
				t.Errorf("moment %s: %q is not a sentence", step.Moment, step.Doc)
			}
			if !slices.Contains([]string{Healthy, Reconciling, Unhealthy, Down, Unknown}, step.Status) {
				t.Errorf("moment %s: %q is not a status", step.Moment, step.Status)
			}
			if step.Status == Healthy && step.Reason != "" {
				t.Errorf("moment %s: unexpected reason %q", step.Moment, step.Reason)
			}
		}
	}
}

// kinds are the kinds in manifests.
var kinds = map[string]func() any{
	"ConfigMap":             func() any { return &corev1.ConfigMap{} },
	"Secret":                func() any { return &corev1.Secret{} },
	"Service":               func() any { return &corev1.Service{} },
	"PersistentVolumeClaim": func() any { return &corev1.PersistentVolumeClaim{} },
	"Pod":                   func() any { return &corev1.Pod{} },
	"Deployment":            func() any { return &appsv1.Deployment{} },
	"StatefulSet":           func() any { return &appsv1.StatefulSet{} },
	"DaemonSet":             func() any { return &appsv1.DaemonSet{} },
	"Job":                   func() any { return &batchv1.Job{} },
	"CronJob":               func() any { return &batchv1.CronJob{} },
}

func TestManifests_MatchSchemas(t *testing.T) {
	for _, s := range All() {
		objects, err := s.Objects(Env{Namespace: "app"})
		if err != nil {
			t.Fatal(err)
		}
		for _, obj := range objects {
			make, ok := kinds[obj.GetKind()]
			if !ok {
				t.Errorf("scenario %s: unknown kind %s", s.Name, obj.GetKind())
				continue
			}
			typed := make()
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj.Object, typed, true); err != nil {
				t.Errorf("scenario %s, %s: %v", s.Name, obj.GetKind(), err)
			}
			if obj.GetNamespace() != "app" {
				t.Errorf("scenario %s, %s: it is in namespace %q", s.Name, obj.GetKind(), obj.GetNamespace())
			}
			for _, spec := range podSpecs(typed) {
				expectContainers(t, s.Name, spec)
			}
			if selector, _, _ := unstructured.NestedStringMap(obj.Object, "spec", "selector", "matchLabels"); selector != nil {
				labels, _, _ := unstructured.NestedStringMap(obj.Object, "spec", "template", "metadata", "labels")
				if !reflect.DeepEqual(selector, labels) {
					t.Errorf("scenario %s: the selector %v does not select %v", s.Name, selector, labels)
				}
			}
		}
	}
}

func podSpecs(object any) []corev1.PodSpec {
	switch o := object.(type) {
	case *corev1.Pod:
		return []corev1.PodSpec{o.Spec}
	case *appsv1.Deployment:
		return []corev1.PodSpec{o.Spec.Template.Spec}
	case *appsv1.StatefulSet:
		return []corev1.PodSpec{o.Spec.Template.Spec}
	case *appsv1.DaemonSet:
		return []corev1.PodSpec{o.Spec.Template.Spec}
	case *batchv1.Job:
		return []corev1.PodSpec{o.Spec.Template.Spec}
	case *batchv1.CronJob:
		return []corev1.PodSpec{o.Spec.JobTemplate.Spec.Template.Spec}
	}
	return nil
}

// expectContainers checks that no image is pulled, except for images that do not exist.
func expectContainers(t *testing.T, scenario string, spec corev1.PodSpec) {
	t.Helper()
	for _, c := range append(spec.InitContainers, spec.Containers...) {
		switch c.Image {
		case image.Behave:
			if c.ImagePullPolicy != corev1.PullNever {
				t.Errorf("scenario %s, container %s: its image would be pulled: %q", scenario, c.Name, c.ImagePullPolicy)
			}
		case "127.0.0.1:1/absent:1", "localhost/Behave:1":
		default:
			t.Errorf("scenario %s, container %s: its image is %s", scenario, c.Name, c.Image)
		}
	}
}
