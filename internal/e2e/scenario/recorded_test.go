package scenario

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/threeport/threeport-agent/internal/e2e/scenario/recording"
)

// recorded names the folder of the recordings, which `make record-fixtures` writes.
const recorded = "../../health/testdata/recorded"

func read(t *testing.T, moment string) (string, recording.Snapshot) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(recorded, moment+".yaml"))
	if err != nil {
		t.Fatalf("%v: run make record-fixtures", err)
	}
	s, err := recording.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", moment, err)
	}
	return string(text), s
}

// moment is one of the moments of a scenario.
type moment struct {
	Scenario
	Step
}

func moments() []moment {
	var out []moment
	for _, s := range All() {
		for _, step := range s.Steps {
			if step.Moment != "" {
				out = append(out, moment{s, step})
			}
		}
	}
	return out
}

func TestRecordings_MatchMoments(t *testing.T) {
	for _, m := range moments() {
		t.Run(m.Moment, func(t *testing.T) {
			text, at := read(t, m.Moment)
			if err := m.Reached(at); err != nil {
				t.Errorf("the recording does not pass the check of its moment: %v", err)
			}
			for _, doc := range []string{m.Scenario.Doc(), m.Step.Doc, "would call it " + m.Status + "."} {
				if !strings.Contains(text, doc) {
					t.Errorf("the recording does not contain %q", doc)
				}
			}
			deployed, err := m.Objects(Env{Namespace: recording.Namespace})
			if err != nil {
				t.Fatal(err)
			}
			var want, listed []string
			for _, obj := range deployed {
				want = append(want, obj.GetKind()+" "+obj.GetName())
			}
			for _, obj := range at.Objects {
				if recording.Listed(obj) {
					listed = append(listed, obj.GetKind()+" "+obj.GetName())
				}
			}
			slices.Sort(want)
			slices.Sort(listed)
			if !slices.Equal(listed, want) {
				t.Errorf("the recording has %v, want %v", listed, want)
			}
		})
	}
}

func TestRecordings_AreNormalized(t *testing.T) {
	for _, m := range moments() {
		t.Run(m.Moment, func(t *testing.T) {
			text, at := read(t, m.Moment)
			again, err := recording.Text(at, Comment(m.Scenario, m.Step))
			if err != nil {
				t.Fatal(err)
			}
			if string(again) != text {
				t.Error("the recording differs from the output of make record-fixtures: run it again, and do not edit recordings")
			}
		})
	}
}

func TestRecordings_NoneWithoutMoment(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(recorded, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range moments() {
		known[m.Moment] = true
	}
	for _, file := range files {
		if !known[strings.TrimSuffix(filepath.Base(file), ".yaml")] {
			t.Errorf("%s has no moment", file)
		}
	}
}

func TestRecordings_DecodeAsTypedObjects(t *testing.T) {
	for _, m := range moments() {
		t.Run(m.Moment, func(t *testing.T) {
			_, at := read(t, m.Moment)
			expectTyped[corev1.Event](t, at, at.Events)
			expectTyped[corev1.Pod](t, at, at.Objects)
			expectTyped[corev1.Node](t, at, at.Objects)
			expectTyped[corev1.ConfigMap](t, at, at.Objects)
			expectTyped[corev1.Secret](t, at, at.Objects)
			expectTyped[corev1.Service](t, at, at.Objects)
			expectTyped[corev1.PersistentVolumeClaim](t, at, at.Objects)
			expectTyped[appsv1.Deployment](t, at, at.Objects)
			expectTyped[appsv1.ReplicaSet](t, at, at.Objects)
			expectTyped[appsv1.StatefulSet](t, at, at.Objects)
			expectTyped[appsv1.DaemonSet](t, at, at.Objects)
			expectTyped[batchv1.Job](t, at, at.Objects)
			expectTyped[batchv1.CronJob](t, at, at.Objects)
			for _, obj := range at.Objects {
				if _, ok := kinds[obj.GetKind()]; !ok && obj.GetKind() != "ReplicaSet" && obj.GetKind() != "Node" {
					t.Errorf("%s is not checked here", obj.GetKind())
				}
			}
		})
	}
}

// expectTyped checks that a conversion of objects to their Go type and back loses nothing.
func expectTyped[T any](t *testing.T, at recording.Snapshot, from []*unstructured.Unstructured) {
	t.Helper()
	typed, err := recording.Of[T](at)
	if err != nil {
		t.Error(err)
	}
	for i := range typed {
		back, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed[i])
		if err != nil {
			t.Fatal(err)
		}
		obj := &unstructured.Unstructured{Object: back}
		original := slices.IndexFunc(from, func(o *unstructured.Unstructured) bool { return o.GetUID() == obj.GetUID() })
		if original < 0 {
			t.Fatalf("%s %s was lost", obj.GetKind(), obj.GetName())
		}
		if got, want := prunedOfEmpty(back), prunedOfEmpty(from[original].Object); !apiequality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s %s: got\n%v\nwant\n%v", obj.GetKind(), obj.GetName(), got, want)
		}
	}
}

// prunedOfEmpty removes empty values, which only one side may have.
func prunedOfEmpty(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, item := range v {
			if item = prunedOfEmpty(item); item != nil {
				out[key] = item
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		var out []any
		for _, item := range v {
			out = append(out, prunedOfEmpty(item))
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case string:
		if v == "" {
			return nil
		}
	case bool:
		if !v {
			return nil
		}
	case int64:
		if v == 0 {
			return nil
		}
	}
	return value
}
