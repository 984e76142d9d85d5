package recording

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var update = flag.Bool("update", false, "write testdata/crash.yaml anew")

func textOf(t *testing.T, s Snapshot) string {
	t.Helper()
	out, err := Text(s, "A Deployment one of whose pods crashes.\n\nIt is made up.")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// expectSame fails the test if two texts are not the same, with the first lines that are not.
func expectSame(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	around := func(lines []string) string {
		return strings.Join(lines[min(len(lines), max(0, i-8)):min(len(lines), i+8)], "\n")
	}
	t.Fatalf("%s, line %d: got\n%s\n\nwant\n%s", what, i+1, around(a), around(b))
}

func TestText_SameForEveryRun(t *testing.T) {
	const file = "testdata/crash.yaml"
	if *update {
		if err := os.WriteFile(file, []byte(textOf(t, newVariant(0).snapshot(t, crash))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(60) {
		expectSame(t, fmt.Sprint("run ", seed), textOf(t, newVariant(seed).snapshot(t, crash)), string(want))
	}
}

func TestText_RunsShareNoReplacedValue(t *testing.T) {
	// Else the test above would show nothing.
	a, b := newVariant(1), newVariant(7)
	a.snapshot(t, crash)
	b.snapshot(t, crash)
	for key, made := range a.made {
		if made == b.made[key] {
			t.Errorf("%s is %s in both", key, made)
		}
	}
	if a.namespace == b.namespace || a.time(42).Sub(a.time(0)) == b.time(42).Sub(b.time(0)) {
		t.Errorf("namespaces %s and %s, times %s and %s", a.namespace, b.namespace, a.time(42), b.time(42))
	}
}

func TestText_IsIdempotent(t *testing.T) {
	want := textOf(t, newVariant(3).snapshot(t, crash))
	s, err := Parse([]byte(want))
	if err != nil {
		t.Fatal(err)
	}
	expectSame(t, "read and written again", textOf(t, s), want)
}

func TestText_KeepsSnapshot(t *testing.T) {
	s := newVariant(4).snapshot(t, crash)
	before := fmt.Sprint(s.Objects, s.Events)
	textOf(t, s)
	if after := fmt.Sprint(s.Objects, s.Events); after != before {
		t.Errorf("Text changed the snapshot from\n%s\nto\n%s", before, after)
	}
}

// TestText_KeepsDifferences changes one thing in a run, which has to give another text.
func TestText_KeepsDifferences(t *testing.T) {
	set := func(obj *unstructured.Unstructured, value any, path ...string) {
		if err := unstructured.SetNestedField(obj.Object, value, path...); err != nil {
			t.Fatal(err)
		}
	}
	find := func(list []*unstructured.Unstructured, match string) *unstructured.Unstructured {
		for _, obj := range list {
			if strings.Contains(fmt.Sprint(obj.Object), match) {
				return obj
			}
		}
		t.Fatalf("the text does not match %s", match)
		return nil
	}
	container := func(s Snapshot) map[string]any {
		statuses, _, err := unstructured.NestedFieldNoCopy(find(s.Objects, "CrashLoopBackOff").Object, "status", "containerStatuses")
		if err != nil {
			t.Fatal(err)
		}
		list, _ := statuses.([]any)
		c, _ := list[0].(map[string]any)
		return c
	}
	tests := []struct {
		reason string
		change func(v *variant, s *Snapshot)
	}{
		{reason: "a number of restarts", change: func(_ *variant, s *Snapshot) { container(*s)["restartCount"] = int64(3) }},
		{
			reason: "an exit code",
			change: func(_ *variant, s *Snapshot) {
				set(&unstructured.Unstructured{Object: container(*s)}, int64(137), "lastState", "terminated", "exitCode")
			},
		},
		{
			reason: "how long a container ran",
			change: func(v *variant, s *Snapshot) {
				set(&unstructured.Unstructured{Object: container(*s)}, v.time(41).Format("2006-01-02T15:04:05Z"), "lastState", "terminated", "startedAt")
			},
		},
		{
			reason: "a message",
			change: func(_ *variant, s *Snapshot) {
				set(find(s.Events, "Container started"), "Container startled", "message")
			},
		},
		{
			reason: "how often a container started",
			change: func(_ *variant, s *Snapshot) { set(find(s.Events, "Container started"), int64(4), "count") },
		},
		{
			reason: "that an Event was repeated",
			change: func(_ *variant, s *Snapshot) { set(find(s.Events, "reason:BackOff"), int64(1), "count") },
		},
		{
			reason: "an Event",
			change: func(_ *variant, s *Snapshot) {
				gone := find(s.Events, "Stopping container")
				s.Events = slices.DeleteFunc(s.Events, func(e *unstructured.Unstructured) bool { return e == gone })
			},
		},
		{reason: "an object", change: func(_ *variant, s *Snapshot) { s.Objects = s.Objects[1:] }},
		{
			reason: "a label",
			change: func(_ *variant, s *Snapshot) {
				find(s.Objects, "CrashLoopBackOff").SetLabels(map[string]string{"app": "other"})
			},
		},
		{
			reason: "which came first",
			change: func(v *variant, s *Snapshot) {
				backOff := find(s.Events, "reason:BackOff")
				backOff.SetName(fmt.Sprintf("web.%x", v.time(0).UnixNano()))
			},
		},
		{
			reason: "the owner",
			change: func(_ *variant, s *Snapshot) { find(s.Objects, "CrashLoopBackOff").SetOwnerReferences(nil) },
		},
		{
			reason: "that another pod crashes",
			change: func(_ *variant, s *Snapshot) {
				event := find(s.Events, "reason:BackOff")
				about := find(s.Events, "reason:Unhealthy").Object["involvedObject"]
				event.Object["involvedObject"] = about
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			v := newVariant(5)
			s := v.snapshot(t, crash)
			before := textOf(t, s)
			tt.change(v, &s)
			if textOf(t, s) == before {
				t.Errorf("%s does not show", tt.reason)
			}
		})
	}
}
