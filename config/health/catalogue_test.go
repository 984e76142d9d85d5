package catalogue

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/threeport/threeport-agent/internal/health"
	"github.com/threeport/threeport-agent/internal/health/rules"
)

// caseTime is the default time of a case.
var caseTime = time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)

// caseFile is a case in testdata: an object and the verdict.
type caseFile struct {
	Name   string
	Now    time.Time // caseTime if not given
	Object map[string]any
	// Kinds are further kinds with the same verdict, with their group and version if these differ:
	// "Kind.version.group".
	Kinds []string
	Want  struct {
		Status health.Status
		Reason string
		// Message is a part of the verdict's message.
		Message string
		// Recheck is when the verdict has to be looked at again; "" for never.
		Recheck string
	}
}

// TestRules_AreValid checks the rules as strictly as those of a user.
func TestRules_AreValid(t *testing.T) {
	if _, err := rules.Parse(files()...); err != nil {
		t.Fatal(err)
	}
}

// TestCases assesses the cases in testdata, which has one file for each file of rules. Every kind with a rule has a case,
// and so has every branch of every rule.
func TestCases(t *testing.T) {
	set := Rules()
	branches, kinds := map[rules.Branch]bool{}, map[schema.GroupKind]bool{}
	for _, branch := range set.Branches() {
		branches[branch] = true
	}
	for _, kind := range set.Kinds() {
		kinds[kind] = true
	}
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			for _, c := range read(t, path) {
				for _, object := range c.objects(t) {
					total++
					kind := object.GroupVersionKind().GroupKind()
					t.Run(c.Name+"/"+kind.Kind, func(t *testing.T) { c.check(t, kind, object) })
					maps.DeleteFunc(kinds, func(k schema.GroupKind, _ bool) bool { return covers(k, kind) })
					if _, decision := set.Decide(kind, object.Object, c.now()); decision != nil {
						delete(branches, decision.Branch)
					}
				}
			}
		})
	}
	t.Logf("%d verdicts on %d kinds by %d rules", total, len(set.Kinds()), set.Len())
	for _, branch := range slices.SortedFunc(maps.Keys(branches), func(a, b rules.Branch) int {
		return strings.Compare(fmt.Sprint(a.File, 1_000_000+a.Line, a), fmt.Sprint(b.File, 1_000_000+b.Line, b))
	}) {
		t.Errorf("%s:%d: no case decides by check %d (over: %t) of %s", branch.File, branch.Line, branch.Check, branch.Over, branch.Rule)
	}
	for kind := range kinds {
		t.Errorf("there is no case for %s", kind)
	}
}

// TestRules_ObjectWithoutStatus_IsNotHealthy assesses an object of each kind with a spec only, and one whose latest spec
// is not observed. Kinds without a status are listed here.
func TestRules_ObjectWithoutStatus_IsNotHealthy(t *testing.T) {
	exists := map[schema.GroupKind]bool{}
	data, err := os.ReadFile("testdata/existing/kinds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	if err := yaml.UnmarshalStrict(data, &names); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		exists[schema.ParseGroupKind(name)] = true
	}
	for _, rule := range Rules().Kinds() {
		kind := rule
		kind.Group = strings.Replace(kind.Group, "*", "some", 1)
		kind.Kind = strings.Replace(kind.Kind, "*", "Any", 1)
		for reason, status := range map[string]map[string]any{
			"no status": nil, "an empty one": {}, "only conditions, and none of them": {"conditions": []any{}},
		} {
			object := map[string]any{"apiVersion": kind.Group + "/v1", "kind": kind.Kind, "metadata": map[string]any{"name": "x", "generation": int64(2)}}
			if status != nil {
				object["status"] = status
			}
			a := health.Object(kind, &unstructured.Unstructured{Object: object}, health.Context{Now: caseTime, Rules: Rules()})
			if (a.Status == health.Healthy) != exists[rule] || a.Reason == rules.RuleFailed {
				t.Errorf("%s with %s is %s %s: %s", kind, reason, a.Status, a.Reason, a.Message)
			}
		}
		delete(exists, rule)
	}
	for kind := range exists {
		t.Errorf("%s is named as one that only has to exist, and has no rule", kind)
	}
}

// covers reports whether a rule applies to a kind, by name or by a pattern of its group.
func covers(rule, kind schema.GroupKind) bool {
	suffix, some := strings.CutPrefix(rule.Group, "*")
	return (rule.Kind == "*" || rule.Kind == kind.Kind) && (rule.Group == kind.Group || some && strings.HasSuffix(kind.Group, suffix))
}

func read(t *testing.T, path string) []caseFile {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var cases []caseFile
	if err := yaml.UnmarshalStrict(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("no cases")
	}
	return cases
}

func (c caseFile) now() time.Time {
	if c.Now.IsZero() {
		return caseTime
	}
	return c.Now
}

// objects returns the object, and copies of it for the other kinds.
func (c caseFile) objects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	data, err := yaml.Marshal(c.Object)
	if err != nil {
		t.Fatal(err)
	}
	if data, err = yaml.YAMLToJSON(data); err != nil {
		t.Fatal(err)
	}
	first := &unstructured.Unstructured{}
	if err := first.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	all := []*unstructured.Unstructured{first}
	for _, name := range c.Kinds {
		other := first.DeepCopy()
		gvk, _ := schema.ParseKindArg(name)
		if gvk == nil {
			other.SetKind(name)
		} else {
			other.SetGroupVersionKind(*gvk)
		}
		all = append(all, other)
	}
	return all
}

func (c caseFile) check(t *testing.T, kind schema.GroupKind, object *unstructured.Unstructured) {
	t.Helper()
	got := health.Object(kind, object, health.Context{Now: c.now(), Rules: Rules()})
	if got.Status != c.Want.Status || got.Reason != c.Want.Reason || !strings.Contains(got.Message, c.Want.Message) {
		t.Errorf("got %s %s: %q, want %s %s: %q", got.Status, got.Reason, got.Message, c.Want.Status, c.Want.Reason, c.Want.Message)
	}
	if idle := got.Reason != "" && got.Reason != health.Completed; (got.Message == "") != (got.Status == health.Healthy && !idle) {
		t.Errorf("%s with the message %q", got.Status, got.Message)
	}
	recheck := ""
	if !got.Recheck.IsZero() {
		recheck = got.Recheck.UTC().Format(time.RFC3339)
	}
	if c.Want.Recheck != "" && recheck != c.Want.Recheck {
		t.Errorf("to be judged again at %q, want %q", recheck, c.Want.Recheck)
	}
}
