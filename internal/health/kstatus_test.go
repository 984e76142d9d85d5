package health_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	catalogue "github.com/threeport/threeport-agent/config/health"
	"github.com/threeport/threeport-agent/internal/e2e/scenario/recording"
	"github.com/threeport/threeport-agent/internal/health"
)

var update = flag.Bool("update", false, "write docs/health-kstatus.md")

const (
	disagreements = "testdata/kstatus.yaml"
	rendered      = "../../docs/health-kstatus.md"
)

// sight is what is judged together: objects at a time, and the Warning Event about the first of them or about each.
type sight struct {
	name    string
	now     time.Time
	objects []*unstructured.Unstructured
	warning func(*unstructured.Unstructured) health.Warning
	custom  bool // whether they are custom resources of which the catalogue knows
}

// finding is what kstatus and we say of objects of a kind.
type finding struct{ kstatus, kind, ours string }

func (f finding) String() string { return f.kstatus + ": " + f.kind + ": " + f.ours }

// difference is in what we differ from kstatus, and why we are right.
type difference struct {
	// Rule is the difference in some words.
	Rule string
	// Why is the reason why ours is right.
	Why string
	// Kstatus is what kstatus says: one of its words, or Error.
	Kstatus string
	// Found is what we say then, by kind: a status with its reason, or the status only if the kind is a custom resource
	// (and has its group in its name), where the reason is mostly what its operator has written.
	Found map[string][]string
}

// TestAgainstKstatus judges all objects of the table tests and all recorded ones as kstatus does. Where the two do not
// agree, the reason stands in testdata/kstatus.yaml: each difference there is found, and each that is found is there.
func TestAgainstKstatus(t *testing.T) {
	seen, objects := map[finding]string{}, 0
	for _, s := range slices.Concat(recordedSights(t), tableSights(t, "testdata/cases", false), tableSights(t, "../../config/health/testdata", true)) {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(s.now)) // kstatus asks the clock how long a pod has not been scheduled
			if !time.Now().Equal(s.now) {
				t.Fatalf("%s is at %s, when the clock has not begun", s.name, s.now)
			}
			objects += s.compare(seen)
		})
	}
	if objects < 300 {
		t.Errorf("only %d objects were judged", objects)
	}
	known := explained(t)
	for _, f := range sorted(maps.Keys(seen)) {
		if !known[f] {
			t.Errorf("not in %s: %q of %s", disagreements, f, seen[f])
		}
	}
	for _, f := range sorted(maps.Keys(known)) {
		if _, ok := seen[f]; !ok {
			t.Errorf("in %s, but not found: %q", disagreements, f)
		}
	}
}

// compare judges each object by both, and adds where they do not agree; it returns how many it has judged.
func (s sight) compare(seen map[finding]string) int {
	objects := 0
	var walk func(*health.Node)
	walk = func(n *health.Node) {
		objects++
		theirs, word := byKstatus(n.Object)
		if !slices.Contains(theirs, n.Aggregate.Status) {
			f := finding{kstatus: word, kind: n.Object.GetKind(), ours: strings.TrimSpace(string(n.Aggregate.Status) + " " + n.Aggregate.Reason)}
			group := n.Object.GroupVersionKind().Group
			if s.custom || strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") {
				f.kind, f.ours = kindIn(group, f.kind), string(n.Aggregate.Status)
			}
			if _, ok := seen[f]; !ok {
				seen[f] = s.name
			}
		}
		for _, child := range n.Children {
			walk(child)
		}
	}
	for _, root := range health.Forest(s.objects, func(o *unstructured.Unstructured) health.Context {
		scene := health.Context{Now: s.now, Warning: s.warning(o)}
		if s.custom {
			scene.Rules = catalogue.Rules()
		}
		return scene
	}) {
		walk(root)
	}
	return objects
}

// byKstatus returns which of our words fit what kstatus says of an object, and what it says.
func byKstatus(object *unstructured.Unstructured) (fits []health.Status, says string) {
	result, err := status.Compute(object)
	if err != nil {
		return []health.Status{health.Unknown}, "Error"
	}
	says = string(result.Status)
	switch result.Status {
	case status.CurrentStatus:
		return []health.Status{health.Healthy}, says
	case status.InProgressStatus, status.TerminatingStatus:
		return []health.Status{health.Reconciling}, says
	case status.FailedStatus:
		return []health.Status{health.Unhealthy, health.Down}, says
	case status.NotFoundStatus, status.UnknownStatus:
	}
	return []health.Status{health.Unknown}, says
}

// kindIn names a kind: with its group if it is a custom resource.
func kindIn(group, kind string) string { return strings.TrimSuffix(kind+"."+group, ".") }

// tableSights reads the table tests of a folder.
func tableSights(t *testing.T, dir string, custom bool) []sight {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	var out []sight
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var cases []struct {
			Name    string
			Now     time.Time
			Object  json.RawMessage
			Derived []json.RawMessage
			Warning *health.Warning
		}
		if err := yaml.Unmarshal(data, &cases); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, c := range cases {
			s := sight{name: filepath.Base(file) + ": " + c.Name, now: c.Now, custom: custom}
			if s.now.IsZero() {
				s.now = time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
			}
			for _, raw := range append([]json.RawMessage{c.Object}, c.Derived...) {
				o := &unstructured.Unstructured{}
				if err := utiljson.Unmarshal(raw, &o.Object); err != nil { // whole numbers are int64
					t.Fatalf("%s: %v", s.name, err)
				}
				s.objects = append(s.objects, o)
			}
			s.warning = func(o *unstructured.Unstructured) (w health.Warning) {
				if c.Warning != nil && o == s.objects[0] {
					w = *c.Warning
				}
				return w
			}
			out = append(out, s)
		}
	}
	return out
}

// recordedSights reads what was recorded of a real cluster.
func recordedSights(t *testing.T) []sight {
	t.Helper()
	files, err := filepath.Glob("testdata/recorded/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing is recorded: %v", err)
	}
	var out []sight
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		at, err := recording.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		warnings := map[types.UID]health.Warning{}
		for _, e := range at.Events {
			if kind, _, _ := unstructured.NestedString(e.Object, "type"); kind != "Warning" {
				continue
			}
			uid, _, _ := unstructured.NestedString(e.Object, "involvedObject", "uid")
			w := health.Warning{Time: at.Taken}
			w.Reason, _, _ = unstructured.NestedString(e.Object, "reason")
			w.Message, _, _ = unstructured.NestedString(e.Object, "message")
			warnings[types.UID(uid)] = w
		}
		out = append(out, sight{
			name: "recorded " + strings.TrimSuffix(filepath.Base(file), ".yaml"), now: at.Taken, objects: at.Objects,
			warning: func(o *unstructured.Unstructured) health.Warning { return warnings[o.GetUID()] },
		})
	}
	return out
}

func sorted(findings func(func(finding) bool)) []finding {
	return slices.SortedFunc(findings, func(a, b finding) int { return strings.Compare(a.String(), b.String()) })
}

// explained returns the findings that testdata/kstatus.yaml gives a reason for.
func explained(t *testing.T) map[finding]bool {
	t.Helper()
	out := map[finding]bool{}
	for _, d := range differences(t) {
		if d.Rule == "" || d.Why == "" || len(d.Found) == 0 {
			t.Errorf("%s: the difference %q has no reason, or nothing that was found", disagreements, d.Rule)
		}
		for kind, verdicts := range d.Found {
			for _, ours := range verdicts {
				f := finding{d.Kstatus, kind, ours}
				if out[f] {
					t.Errorf("%s: %q stands there twice", disagreements, f)
				}
				out[f] = true
			}
		}
	}
	return out
}

func differences(t *testing.T) []difference {
	t.Helper()
	data, err := os.ReadFile(disagreements)
	if err != nil {
		t.Fatal(err)
	}
	var out []difference
	if err := yaml.UnmarshalStrict(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestKstatusDocs checks docs/health-kstatus.md, or writes it with -update.
func TestKstatusDocs(t *testing.T) {
	want := render(differences(t))
	if *update {
		if err := os.WriteFile(rendered, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(rendered)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what %s says: run go test ./internal/health -run TestKstatusDocs -update", rendered, disagreements)
	}
}

func render(all []difference) []byte {
	var b bytes.Buffer
	b.WriteString(`# Where the verdicts differ from kstatus

kstatus (github.com/fluxcd/cli-utils/pkg/kstatus) says in one word whether an object has been reconciled. Package health
says whether it works. A test judges all objects of the table tests, and all recorded ones, by both at the same time:
Current is taken for Healthy, InProgress and Terminating for Reconciling, Failed for Unhealthy or Down, and an error for
Unknown. Below is every difference, and why ours is right; the test fails on any other. Ours is the verdict on an object
with what descends from it, which kstatus does not see.

Written from internal/health/testdata/kstatus.yaml: do not edit.
`)
	for _, d := range all {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| kind | kstatus | ours |\n|---|---|---|\n", d.Rule, strings.TrimSpace(d.Why))
		rows := map[string][]string{} // of one group, and of which we say the same: the kinds
		for _, kind := range slices.Sorted(maps.Keys(d.Found)) {
			kind, group, _ := strings.Cut(kind, ".")
			row := strings.Join(d.Found[kindIn(group, kind)], ", ")
			rows[group+"|"+row] = append(rows[group+"|"+row], kind)
		}
		for _, row := range slices.Sorted(maps.Keys(rows)) {
			group, ours, _ := strings.Cut(row, "|")
			if group != "" {
				group += ": "
			}
			fmt.Fprintf(&b, "| %s%s | %s | %s |\n", group, strings.Join(rows[row], ", "), d.Kstatus, ours)
		}
	}
	return b.Bytes()
}
