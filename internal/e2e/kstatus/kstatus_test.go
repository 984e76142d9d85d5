// Package kstatus compares the verdicts of package health with those of kstatus. It is apart from package health so that
// only tests depend on kstatus.
package kstatus

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
	testdata         = "../../health/testdata/"
	catalogueCases   = "../../../config/health/testdata"
	differencesFile  = testdata + "kstatus.yaml"
	renderedDocument = "../../../docs/health-kstatus.md"
)

// snapshot holds objects that are assessed together at one time.
type snapshot struct {
	name    string
	now     time.Time
	objects []*unstructured.Unstructured
	warning func(*unstructured.Unstructured) health.Warning
	custom  bool // the objects are custom resources with rules in the catalogue
}

// finding is one disagreement between kstatus and package health about a kind.
type finding struct{ kstatus, kind, ours string }

func (f finding) String() string { return f.kstatus + ": " + f.kind + ": " + f.ours }

// difference is a group of findings with one reason.
type difference struct {
	// Rule names the difference.
	Rule string
	// Why says why the verdict of package health is right.
	Why string
	// Kstatus is the status by kstatus, or Error.
	Kstatus string
	// Found has the verdicts of package health by kind: a status with its reason. A custom resource has its group in its
	// kind, and the status alone, because its operator writes the reason.
	Found map[string][]string
}

// TestAgainstKstatus assesses the objects of all cases and recordings with kstatus and with package health. The file of
// differences has to explain each finding, and each of its entries has to be found.
func TestAgainstKstatus(t *testing.T) {
	seen, objects := map[finding]string{}, 0
	for _, s := range slices.Concat(readRecordings(t), readCases(t, testdata+"cases", false), readCases(t, catalogueCases, true)) {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(s.now)) // kstatus reads the clock to decide how long a pod is unschedulable
			if !time.Now().Equal(s.now) {
				t.Fatalf("%s: the time %s is before the start of the synthetic clock", s.name, s.now)
			}
			objects += s.compare(seen)
		})
	}
	if objects < 300 {
		t.Errorf("got %d objects, want at least 300", objects)
	}
	explained := explainedFindings(t)
	for _, f := range sorted(maps.Keys(seen)) {
		if !explained[f] {
			t.Errorf("%s does not explain %q in %s", differencesFile, f, seen[f])
		}
	}
	for _, f := range sorted(maps.Keys(explained)) {
		if _, ok := seen[f]; !ok {
			t.Errorf("%s explains %q, which was not found", differencesFile, f)
		}
	}
}

// compare assesses each object with both, adds the disagreements to seen, and returns the number of objects.
func (s snapshot) compare(seen map[finding]string) int {
	objects := 0
	var walk func(*health.Node)
	walk = func(n *health.Node) {
		objects++
		matching, kstatus := computeKstatus(n.Object)
		if !slices.Contains(matching, n.Aggregate.Status) {
			f := finding{kstatus: kstatus, kind: n.Object.GetKind(), ours: strings.TrimSpace(string(n.Aggregate.Status) + " " + n.Aggregate.Reason)}
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
		hc := health.Context{Now: s.now, Warning: s.warning(o)}
		if s.custom {
			hc.Rules = catalogue.Rules()
		}
		return hc
	}) {
		walk(root)
	}
	return objects
}

// computeKstatus returns the status of an object by kstatus, and the statuses of package health that match it.
func computeKstatus(object *unstructured.Unstructured) (matching []health.Status, kstatus string) {
	result, err := status.Compute(object)
	if err != nil {
		return []health.Status{health.Unknown}, "Error"
	}
	kstatus = string(result.Status)
	switch result.Status {
	case status.CurrentStatus:
		return []health.Status{health.Healthy}, kstatus
	case status.InProgressStatus, status.TerminatingStatus:
		return []health.Status{health.Reconciling}, kstatus
	case status.FailedStatus:
		return []health.Status{health.Unhealthy, health.Down}, kstatus
	case status.NotFoundStatus, status.UnknownStatus:
	}
	return []health.Status{health.Unknown}, kstatus
}

// kindIn returns the name of a kind, with its group if it has one.
func kindIn(group, kind string) string { return strings.TrimSuffix(kind+"."+group, ".") }

// readCases reads the cases of a folder.
func readCases(t *testing.T, dir string, custom bool) []snapshot {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	var out []snapshot
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
			s := snapshot{name: filepath.Base(file) + ": " + c.Name, now: c.Now, custom: custom}
			if s.now.IsZero() {
				s.now = time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
			}
			for _, raw := range append([]json.RawMessage{c.Object}, c.Derived...) {
				o := &unstructured.Unstructured{}
				if err := utiljson.Unmarshal(raw, &o.Object); err != nil { // decodes whole numbers as int64
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

// readRecordings reads the recordings of a real cluster.
func readRecordings(t *testing.T) []snapshot {
	t.Helper()
	files, err := filepath.Glob(testdata + "recorded/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings in %s: %v", testdata, err)
	}
	var out []snapshot
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
		out = append(out, snapshot{
			name: "recorded " + strings.TrimSuffix(filepath.Base(file), ".yaml"), now: at.Taken, objects: at.Objects,
			warning: func(o *unstructured.Unstructured) health.Warning { return warnings[o.GetUID()] },
		})
	}
	return out
}

func sorted(findings func(func(finding) bool)) []finding {
	return slices.SortedFunc(findings, func(a, b finding) int { return strings.Compare(a.String(), b.String()) })
}

// explainedFindings returns the findings that the file of differences explains.
func explainedFindings(t *testing.T) map[finding]bool {
	t.Helper()
	out := map[finding]bool{}
	for _, d := range readDifferences(t) {
		if d.Rule == "" || d.Why == "" || len(d.Found) == 0 {
			t.Errorf("%s: the difference %q needs rule, why and found", differencesFile, d.Rule)
		}
		for kind, verdicts := range d.Found {
			for _, ours := range verdicts {
				f := finding{d.Kstatus, kind, ours}
				if out[f] {
					t.Errorf("%s: duplicate finding %q", differencesFile, f)
				}
				out[f] = true
			}
		}
	}
	return out
}

func readDifferences(t *testing.T) []difference {
	t.Helper()
	data, err := os.ReadFile(differencesFile)
	if err != nil {
		t.Fatal(err)
	}
	var out []difference
	if err := yaml.UnmarshalStrict(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDocs_MatchTheDifferences checks docs/health-kstatus.md, or writes it with -update.
func TestDocs_MatchTheDifferences(t *testing.T) {
	want := render(readDifferences(t))
	if *update {
		if err := os.WriteFile(renderedDocument, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(renderedDocument)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s does not match %s: run go test ./internal/e2e/kstatus -run TestDocs -update", renderedDocument, differencesFile)
	}
}

func render(all []difference) []byte {
	var b bytes.Buffer
	b.WriteString(`# Differences from kstatus

[kstatus](https://github.com/fluxcd/cli-utils/tree/main/pkg/kstatus) decides whether an object is reconciled. Package health decides
whether it works, and includes derived objects, which kstatus does not see. A test compares both for the objects of all table tests
and recordings. It maps Current to Healthy, InProgress and Terminating to Reconciling, Failed to Unhealthy or Down, and an error to
Unknown. This page lists every difference with its reason; the test fails on any other.

Generated from [kstatus.yaml](../internal/health/testdata/kstatus.yaml), which also lists the custom resources. Do not edit.
`)
	for _, d := range all {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", d.Rule, strings.TrimSpace(d.Why))
		custom := 0
		builtIn := map[string][]string{} // kinds by their verdicts
		for _, kind := range slices.Sorted(maps.Keys(d.Found)) {
			if strings.Contains(kind, ".") {
				custom++
				continue
			}
			verdicts := "`" + strings.Join(d.Found[kind], "`, `") + "`"
			builtIn[verdicts] = append(builtIn[verdicts], kind)
		}
		if custom > 0 {
			fmt.Fprintf(&b, "Kinds of custom resources in the test data that kstatus calls %s: %d.\n", d.Kstatus, custom)
		}
		if custom > 0 && len(builtIn) > 0 {
			b.WriteString("\n")
		}
		if len(builtIn) > 0 {
			b.WriteString("| kind | kstatus | health |\n|---|---|---|\n")
		}
		for _, verdicts := range slices.Sorted(maps.Keys(builtIn)) {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(builtIn[verdicts], ", "), d.Kstatus, verdicts)
		}
	}
	return b.Bytes()
}
