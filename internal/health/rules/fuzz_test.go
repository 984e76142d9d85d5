package rules

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/threeport/threeport-agent/internal/health"
)

// FuzzParse parses any text as rules and assesses objects by the valid ones. Errors have a position in the file.
func FuzzParse(f *testing.F) {
	f.Add([]byte(widgetRule("  - {when: 'true', status: Healthy}")))
	f.Add([]byte(widgetRule("  - when: |\n      isTrue(object,\n        'Ready')\n    status: Reconciling\n    until: created(object) + duration('5m')\n    then: Down\n    reason: A\n    message: is b\n    condition: Ready\n", "  versions: [v1]")))
	f.Add([]byte("rules: &a [*a]"))
	f.Add([]byte("rules:\n- group: a.b\n  kinds: [W]\n  checks:\n  - when: \"\\x41\\u00e4 ''\"\n    status: Down"))
	paths, err := filepath.Glob("../../../config/health/*.yaml")
	if err != nil || len(paths) == 0 {
		f.Fatalf("the catalogue: %v", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	objects := []map[string]any{
		{},
		{"metadata": 1, "status": "x"},
		{"apiVersion": "example.org/v1", "status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}, 7}}},
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := Parse(File{Name: "rules.yaml", Data: data})
		var all Errors
		if err != nil && !errors.As(err, &all) {
			t.Fatalf("Parse returned the error %v, want Errors", err)
		}
		for _, e := range all {
			if e.Text == "" || e.Line < 0 || e.Line > 0 && e.Column < 1 {
				t.Errorf("the error %+v has no text or no position", e)
			}
		}
		if err != nil {
			return
		}
		for _, kind := range set.Kinds() {
			for _, o := range objects {
				a, d := set.Decide(kind, o, now)
				if d != nil && a.Status != health.Healthy && (a.Reason == "" || a.Message == "") {
					t.Errorf("the verdict of %s is %+v, want a reason and a message", kind, a)
				}
			}
		}
	})
}
