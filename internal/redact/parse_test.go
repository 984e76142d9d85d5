package redact

import (
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/reload"
)

func TestParse_Errors_NameFileRuleAndAccepted(t *testing.T) {
	const rule = "rules:\n- {group: '', kinds: [A], "
	for _, tt := range []struct{ reason, text, want string }{
		{"empty file", "# nothing", `f.yaml: there are no rules in it: write "rules: []" if that is meant`},
		{"no YAML", "rules: [", "f.yaml: this is not YAML: "},
		{"a ConfigMap", "kind: ConfigMap\ndata: {}", "f.yaml:1: give a mapping with the field rules only"},
		{"no list", "rules: {}", "f.yaml:1: give a mapping with the field rules only"},
		{"an empty document", "---\n---\nrules: []", "give a mapping with the field rules only"},
		{"no mapping", "rules: [a]", "f.yaml:1: rule number 1: a rule is a mapping"},
		{"unknown field", rule + "paths: [a]}", `f.yaml:2: rule number 1: "paths" is no field of a rule: give group, kinds, path,`},
		{"wrong type", "rules:\n- {group: '', kinds: A, path: a, action: drop}", "rule number 1: yaml: "},
		{"no group", "rules: [{kinds: [A], path: a, action: drop}]", `group is missing: give the name of an API group, "" for the core group, or "*" for all`},
		{"no kinds", "rules: [{group: '', path: a, action: drop}]", "kinds is missing"},
		{"nothing selected", rule + "action: drop}", "give exactly one of path, annotation and statusOnly: true"},
		{"two selections", rule + "path: a, annotation: b, action: drop}", "give exactly one of"},
		{"no action", rule + "path: a}", `action is "": give drop, hash or keep`},
		{"an action of statusOnly", rule + "statusOnly: true, action: keep}", "statusOnly: true has no action"},
		{"except without an annotation", rule + "path: a, except: b, action: drop}", "except is for annotations only"},
		{"identity", rule + "path: metadata.labels, action: drop}", "the identity of an object cannot be redacted"},
		{"empty field", rule + "path: a..b, action: drop}", `path "a..b": give fields separated by dots`},
		{"** inside", rule + "path: 'a.**.b', action: drop}", "give fields separated by dots"},
		{"open quote", rule + `path: 'a."b', action: drop}`, "give fields separated by dots"},
		{"text behind an item", rule + `path: 'a[*]b', action: drop}`, "give fields separated by dots"},
		{"index", rule + "path: 'a[0]', action: drop}", "in brackets give * for all items, or name=PATTERN"},
		{"open bracket", rule + "path: 'a[*', action: drop}", "in brackets give *"},
		{"the second rule", "rules:\n- {group: '', kinds: [A], path: a, action: drop}\n- {}", "f.yaml:3: rule number 2: group is missing"},
	} {
		_, err := Parse(reload.File{Name: "f.yaml", Data: []byte(tt.text)})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.reason, err, tt.want)
		}
	}
}

func TestParse_AllErrorsAtOnce(t *testing.T) {
	_, err := Parse(reload.File{Name: "a.yaml", Data: []byte("rules: [{}, {}]")}, reload.File{Name: "b.yaml"})
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("got %v, want three lines", err)
	}
}
