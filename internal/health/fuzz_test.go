package health

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/threeport/threeport-agent/internal/testing/cputime"
)

// FuzzObject assesses arbitrary objects of any kind. No object makes the assessment panic or take long. The verdict does
// not depend on chance or on the decoding of numbers. An object with an obvious fault is not Healthy.
func FuzzObject(f *testing.F) {
	kinds := kindsOfRules()
	for _, c := range allCases(f) {
		data, err := json.Marshal(c.Object)
		if err != nil {
			f.Fatal(err)
		}
		u := unstructured.Unstructured{Object: c.Object}
		f.Add(data, uint8(max(0, slices.Index(kinds, u.GroupVersionKind().GroupKind()))))
	}
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(data, &u.Object); err != nil || u.Object == nil {
			return
		}
		kind := kinds[int(which)%len(kinds)]
		began := cputime.Used(t)
		got := Object(kind, u, Context{Now: caseTime})
		if took := cputime.Used(t) - began; took > 5*time.Second {
			t.Errorf("assessing %s took %s of CPU time, want at most 5 s", kind, took)
		}
		wellFormed(t, got)
		if again := Object(kind, u, Context{Now: caseTime}); again != got {
			t.Errorf("the first verdict is %+v, the second %+v", got, again)
		}
		whole := &unstructured.Unstructured{Object: asClient(u.Object).(map[string]any)}
		other := Object(kind, whole, Context{Now: caseTime})
		if other.Reason == "Malformed" { // the message may name a type of the decoder
			other.Message = got.Message
		}
		if other != got {
			t.Errorf("the verdict is %+v with floats, %+v with integers", got, other)
		}
		if why := obviousFault(u.Object, kind); got.Status == Healthy && !got.idle() && why != "" {
			t.Errorf("%s is Healthy despite a fault: %s", kind, why)
		}
	})
}

// kindsOfRules returns two kinds without a rule, and those with one in order.
func kindsOfRules() []schema.GroupKind {
	known := slices.SortedFunc(maps.Keys(builtin), func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	return append([]schema.GroupKind{{Group: "example.com", Kind: "Thing"}, {Group: "example.com", Kind: "TestRun"}}, known...)
}

func allCases(tb testing.TB) []caseFile {
	tb.Helper()
	files, err := filepath.Glob("testdata/cases/*.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	var all []caseFile
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		var cases []caseFile
		if err := yaml.Unmarshal(data, &cases); err != nil {
			tb.Fatal(err)
		}
		all = append(all, cases...)
	}
	return all
}

// asClient converts whole numbers to int64, as the dynamic client does.
func asClient(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = asClient(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = asClient(value)
		}
		return out
	case float64:
		if n := int64(v); float64(n) == v && n > -1<<53 && n < 1<<53 {
			return n
		}
	}
	return v
}

var oneWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)

// wellFormed checks the properties of every verdict.
func wellFormed(t *testing.T, a Assessment) {
	t.Helper()
	if !slices.Contains(statusOrder, a.Status) {
		t.Errorf("the status is %q", a.Status)
	}
	if (a.Message == "") != (a.Status == Healthy && !a.idle()) {
		t.Errorf("the status is %s with the message %q, want a message exactly if not Healthy or idle", a.Status, a.Message)
	}
	if a.Status == Healthy && a.Reason != "" && a.Reason != Completed && !a.idle() || a.Status != Healthy && a.Reason == "" {
		t.Errorf("the status is %s with the reason %q", a.Status, a.Reason)
	}
	if len(a.Reason) > maxReason || len(a.Message) > maxAssessment || !utf8.ValidString(a.Message) {
		t.Errorf("the reason has %d bytes and the message %d, want at most %d and %d of UTF-8", len(a.Reason), len(a.Message), maxReason, maxAssessment)
	}
}

// obviousFault returns why the most common fields show that an object is not Healthy; empty if they do not.
func obviousFault(object map[string]any, kind schema.GroupKind) string {
	metadata, _ := object["metadata"].(map[string]any)
	if metadata["deletionTimestamp"] != nil {
		return "it is being deleted"
	}
	if _, known := builtin[kind]; known {
		return ""
	}
	spec, _ := object["spec"].(map[string]any)
	if spec["suspend"] == true || spec["paused"] == true {
		return "it is suspended"
	}
	status, _ := object["status"].(map[string]any)
	switch status["phase"] {
	case "Failed", "Error", "Pending", "Degraded", "Suspended", "Deleting", "Unknown":
		return "its phase"
	}
	if status["ready"] == false || status["degraded"] == true {
		return "its flags"
	}
	conditions, isList := status["conditions"].([]any)
	if _, isTable := status["conditions"].(map[string]any); status["conditions"] != nil && !isList && !isTable {
		return "its conditions cannot be read"
	}
	seen := map[string]bool{}
	for _, item := range conditions {
		c, ok := item.(map[string]any)
		if !ok {
			return "a condition that is none"
		}
		kind, isText := c["type"].(string)
		if c["observedGeneration"] != nil || seen[kind] || !isText || c["lastTransitionTime"] != nil {
			return "" // it may be about an earlier spec, or be replaced by a later one
		}
		seen[kind] = true
		bad := map[string]string{"Ready": "False", "Available": "False", "Degraded": "True", "Failed": "True", "Stalled": "True", "Paused": "True"}
		if want := bad[kind]; want != "" && c["status"] == want {
			return "a condition that is not as it is to be"
		}
	}
	return ""
}

func TestCamelReason_IsOneWord(t *testing.T) {
	for _, c := range allCases(t) {
		u := &unstructured.Unstructured{Object: c.Object}
		a := Object(u.GroupVersionKind().GroupKind(), u, Context{Now: caseTime})
		wellFormed(t, a)
		if a.Reason != "" && !oneWord.MatchString(a.Reason) || strings.HasSuffix(a.Message, ".") || strings.Contains(a.Message, "\n") {
			t.Errorf("%s: the reason is %s, the message %q; want one word and one line", c.Name, a.Reason, a.Message)
		}
	}
}

func TestObject_TooLargeStatus_IsNotHealthy(t *testing.T) {
	many := make([]any, 2*maxScanValues)
	for i := range many {
		many[i] = map[string]any{"name": "part", "ready": true}
	}
	deep := map[string]any{"ready": true}
	for range 5_000 {
		deep = map[string]any{"part": deep}
	}
	wide := map[string]any{}
	for i := range maxScanValues + 1 {
		wide[strings.Repeat("k", i%50)+string(rune('a'+i%26))+time.Duration(i).String()] = "v"
	}
	for name, part := range map[string]any{"many": many, "deep": deep, "wide": wide} {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Thing", "status": map[string]any{"phase": "Running", "parts": part},
		}}
		began := cputime.Used(t)
		if got := Object(kindOf(u), u, Context{Now: caseTime}); got.Status != Unknown || got.Reason != "TooLarge" {
			t.Errorf("%s: got %+v, want Unknown with the reason TooLarge", name, got)
		}
		if took := cputime.Used(t) - began; took > 5*time.Second {
			t.Errorf("assessing %s took %s of CPU time, want at most 5 s", name, took)
		}
	}
}

// The author of a status chooses its keys, and a verdict is kept as long as its object.
func TestObject_LongKeys_AreCut(t *testing.T) {
	const size = 1 << 20
	long := strings.Repeat("Long", size/4)
	for name, status := range map[string]map[string]any{
		"a flag":             {"ready" + long: false},
		"a count":            {"ready" + long: int64(1), "desired" + long: int64(2)},
		"a count of faults":  {"unavailable" + long: int64(1)},
		"a count of failed":  {"failed" + long: int64(1), "failedPods" + long: int64(1)},
		"a field of a part":  {long: map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": long}}}},
		"a type":             {"conditions": []any{map[string]any{"type": "Ready" + long, "status": "False"}}},
		"a reason":           {"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": long}}},
		"a phase":            {"phase": "Failed" + long},
		"a path of versions": {long: map[string]any{"currentVersion": "1", "desiredVersion": "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			thing := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "one"}, "status": status}}
			wellFormed(t, Object(schema.GroupKind{Group: "example.com", Kind: "Thing"}, thing, Context{Now: caseTime}))
		})
	}
}

func TestObject_LongMessage_IsCut(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "status": map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": "False", "reason": "Failed", "message": strings.Repeat("länger\n\t ", 10_000) + "."},
		}},
	}}
	got := Object(kindOf(u), u, Context{})
	if runes := utf8.RuneCountInString(got.Message); runes > maxQuote+100 || strings.Contains(got.Message, "\n") || !utf8.ValidString(got.Message) {
		t.Errorf("the message has %d characters: %q; want one short line", runes, got.Message)
	}
}

// BenchmarkConventions assesses a large object of a kind without a rule: a workflow of 2,000 steps.
func BenchmarkConventions(b *testing.B) {
	nodes := map[string]any{}
	for i := range 2_000 {
		name := "step-" + strconv.Itoa(i)
		nodes[name] = map[string]any{
			"id": name, "name": name, "displayName": name, "type": "Pod", "phase": "Succeeded", "startedAt": "2026-01-01T09:00:00Z",
			"finishedAt": "2026-01-01T09:01:00Z", "progress": "1/1", "outputs": map[string]any{"exitCode": "0"},
		}
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Workflow", "metadata": map[string]any{"name": "x"},
		"status": map[string]any{"phase": "Running", "startedAt": "2026-01-01T09:00:00Z", "nodes": nodes},
	}}
	b.ReportAllocs()
	for b.Loop() {
		if got := Object(kindOf(u), u, Context{Now: caseTime}); got.Status != Reconciling {
			b.Fatalf("%+v", got)
		}
	}
}
