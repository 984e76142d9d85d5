package rules

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestParse_InvalidRules(t *testing.T) {
	check := func(lines string) string {
		return "rules:\n- group: example.org\n  kinds: [Widget]\n  checks:\n" + lines
	}
	for _, c := range []struct {
		reason, text string
		want         []string
	}{
		{"not YAML", "rules: [", []string{"rules.yaml:1:1: this is not YAML"}},
		{"an expression that needs quotes", check("  - when: a ? 1 : 2\n    status: Healthy"), []string{"rules.yaml:5:1: this is not YAML: mapping values", "has to be in quotes as a whole"}},
		{"an expression that begins with quotes", check("  - when: 'a' == text(object, 'b')\n    status: Healthy"), []string{"this is not YAML: did not find expected key; an expression", "begins with a quote"}},
		{"nothing", "", []string{`rules.yaml: there are no rules in it: write "rules: []" if that is meant`}},
		{"only comments", "# none yet\n---\n# none here\n", []string{`rules.yaml: there are no rules in it`}},
		{"a ConfigMap's manifest", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rules}\ndata: {rules.yaml: 'rules: []'}\n", []string{"rules.yaml:1:1: this is a ConfigMap: give the files in its data"}},
		{"no mapping", "- rules", []string{"rules.yaml:1:1: this has to be a mapping with the fields rules"}},
		{"an unknown field at the top", "rules: []\nrule: []", []string{`rules.yaml:2:1: the field "rule" is not known; there are rules`}},
		{"apiVersion", "apiVersion: v1\nrules: []", []string{`rules.yaml:1:1: the field "apiVersion" is not known`}},
		{"rules that are no list", "rules: {}", []string{"rules.yaml:1:8: this has to be a list"}},
		{"an empty rule", "rules:\n- {}", []string{
			`rules.yaml:2:3: rule number 1: the field "group" is missing`, `rules.yaml:2:3: rule number 1: the field "kinds" is missing`,
			`rules.yaml:2:3: rule number 1: the field "checks" is missing`,
		}},
		{"a rule that is a text", "rules: [x]", []string{"rules.yaml:1:9: rule number 1: this has to be a mapping with the fields checks, else,"}},
		{"a group that is none", "rules: [{group: Example, kinds: [Widget], checks: [{when: 'true', status: Healthy}]}]", []string{`1:17: rule Widget: "Example" is not the name of an API group`}},
		{"a kind that is none", "rules: [{group: a.b, kinds: [wid-gets], checks: [{when: 'true', status: Healthy}]}]", []string{`1:30: rule number 1: "wid-gets" is not the name of a kind`}},

		{"a version that is none", "rules: [{group: a.b, kinds: [W], versions: [a.b/v1], checks: [{when: 'true', status: Healthy}]}]", []string{`1:45: rule W.a.b: "a.b/v1" is not a version`}},
		{"a generation that is none", "rules: [{group: a.b, kinds: [W], generation: latest, checks: [{when: 'true', status: Healthy}]}]", []string{`1:46: rule W.a.b: "latest" is not one of observed, ignored`}},
		{"a kind twice in a rule", "rules: [{group: a.b, kinds: [W, W], checks: [{when: 'true', status: Healthy}]}]", []string{`1:33: rule W,W.a.b: duplicate "W"`}},
		{"a kind in two rules", "rules:\n- {group: a.b, kinds: [W], checks: [{when: 'true', status: Healthy}]}\n- {group: a.b, kinds: [V, W], checks: [{when: 'true', status: Healthy}]}", []string{"rules.yaml:3:3: rule V,W.a.b: there is a rule for W.a.b already, at rules.yaml:2:3"}},
		{"a version in two rules", "rules:\n- {group: a.b, kinds: [W], versions: [v1, v2], checks: [{when: 'true', status: Healthy}]}\n- {group: a.b, kinds: [W], versions: [v2], checks: [{when: 'true', status: Healthy}]}", []string{"rules.yaml:3:3: rule W.a.b: there is a rule for W.a.b already"}},
		{"no checks", "rules: [{group: a.b, kinds: [W], checks: []}]", []string{"1:42: rule W.a.b: there are 0 checks, and have to be 1 to 64"}},
		{"a field twice", check("  - {when: 'true', status: Healthy, status: Down}"), []string{`5:37: rule Widget.example.org, check 1: duplicate field "status"`}},
		{"a field that is misspelt", check("  - {when: 'true', status: Healthy, massage: x}"), []string{`5:37: rule Widget.example.org, check 1: the field "massage" is not known; there are condition, detail, message,`}},
		{"when is missing", check("  - {status: Healthy}"), []string{`check 1: the field "when" is missing`}},
		{"when in an else", check("  - {when: 'true', status: Healthy}\n  else: {when: 'true', status: Healthy}"), []string{`6:10: rule Widget.example.org, else: the field "when" is not known`}},
		{"a boolean for a text", check("  - {when: true, status: Healthy}"), []string{"5:12: rule Widget.example.org, check 1: this has to be a string; put it into quotes"}},
		{"a status that is none", check("  - {when: 'true', status: Fine}"), []string{`5:28: rule Widget.example.org, check 1: "Fine" is no status: give Healthy, Reconciling, Unhealthy, Down or Unknown`}},
		{"no reason", check("  - {when: 'true', status: Down, message: is down}"), []string{"check 1: reason is missing"}},
		{"a reason of two words", check("  - {when: 'true', status: Down, reason: is down, message: is down}"), []string{`5:42: rule Widget.example.org, check 1: "is down" is not one CamelCase word`, "reason is missing"}},
		{"no message", check("  - {when: 'true', status: Down, reason: Bad}"), []string{"check 1: message is missing"}},
		{"a message of two lines", check("  - {when: 'true', status: Down, reason: Bad, message: \"a\\nb\"}"), []string{"check 1: message is longer than a line"}},
		{"Healthy with a reason", check("  - {when: 'true', status: Healthy, reason: Fine}"), []string{"check 1: Healthy has no reason but Completed"}},
		{"Healthy with a message", check("  - {when: 'true', status: Healthy, message: is fine}"), []string{"check 1: Healthy has no message"}},
		{"then without until", check("  - {when: 'true', status: Reconciling, then: Down, reason: Bad, message: is bad}"), []string{"check 1: then says what it is after until"}},
		{"Healthy by time", check("  - {when: 'true', status: Reconciling, until: now, then: Healthy, reason: Bad, message: is bad}"), []string{"check 1: then is Healthy: time alone makes nothing Healthy"}},
		{"then that changes nothing", check("  - {when: 'true', status: Down, until: now, then: Down, reason: Bad, message: is bad}"), []string{"check 1: then is Down"}},
		{"an else that ends", check("  - {when: 'true', status: Healthy}\n  else: {status: Reconciling, until: now, reason: Bad, message: is bad}"), []string{"6:38: rule Widget.example.org, else: else is what is left"}},

		{"an expression that is none", check("  - {when: 'a b', status: Healthy}"), []string{"5:15: rule Widget.example.org, check 1, when (line 1, column 3 of the expression): Syntax error"}},
		{"an empty expression", check("  - {when: '', status: Healthy}"), []string{"rule Widget.example.org, check 1, when"}},
		{"a name that is none", check("  - when: isTrue(obect, 'Ready')\n    status: Healthy"), []string{"5:18: rule Widget.example.org, check 1, when (line 1, column 8 of the expression): undeclared reference to 'obect'"}},
		{"a field of a condition that is none", check("  - when: condition(object, 'Ready').stauts == 'True'\n    status: Healthy"), []string{"5:37: rule Widget.example.org, check 1, when (line 1, column 27 of the expression): undefined field 'stauts'"}},
		{"a function that is none", check("  - when: |\n      true &&\n      isReady(object)\n    status: Healthy"), []string{"7:14: rule Widget.example.org, check 1, when (line 2, column 8 of the expression): undeclared reference to 'isReady'"}},
		{"in folded lines", check("  - when: >-\n      true\n      && obect\n    status: Healthy"), []string{"7:10: rule Widget.example.org, check 1, when (line 1, column 9 of the expression): undeclared reference to 'obect'"}},
		{"in lines without quotes", check("  - when: true &&\n      obect\n    status: Healthy"), []string{"6:7: rule Widget.example.org, check 1, when (line 1, column 9 of the expression): undeclared reference to 'obect'"}},
		{"in single quotes", check("  - when: '''a'' == obect'\n    status: Healthy"), []string{"5:21: rule Widget.example.org, check 1, when (line 1, column 8 of the expression): undeclared reference to 'obect'"}},
		{"in double quotes", check("  - when: \"\\\"\\u00e4\\\" ==\\n obect\"\n    status: Healthy"), []string{"5:28: rule Widget.example.org, check 1, when (line 2, column 2 of the expression): undeclared reference to 'obect'"}},
		{"beyond letters of one byte", check("  - when: \"'ä€😀' == obect\"\n    status: Healthy"), []string{"5:21: rule Widget.example.org, check 1, when (line 1, column 10 of the expression): undeclared reference to 'obect'"}},
		{"an expression of another type", check("  - {when: '1 + 1', status: Healthy}"), []string{"check 1, when (line 1, column 1 of the expression): the expression gives int, and has to give bool"}},
		{"a since that is no time", check("  - {when: 'true', status: Healthy, since: '1'}"), []string{"check 1, since (line 1, column 1 of the expression): the expression gives int, and has to give timestamp"}},
		{"types that do not fit", check("  - {when: \"text(object, 'status.phase') == 1\", status: Healthy}"), []string{"found no matching overload for '_==_'"}},
		{"a path that is none", check("  - {when: \"flag(object, 'status..phase')\", status: Healthy}"), []string{`5:26: rule Widget.example.org, check 1, when (line 1, column 14 of the expression): "status..phase" is not a path`}},
		{"a duration that is none", check("  - {when: \"duration('5 minutes') < duration('1h')\", status: Healthy}"), []string{"invalid duration"}},
		{"a pattern that is none", check("  - {when: \"text(object, 'a').matches('[')\", status: Healthy}"), []string{"invalid matches argument"}},
		{"a pattern from the object", check("  - {when: \"text(object, 'a').matches(text(object, 'b'))\", status: Healthy}"), []string{"the pattern of matches has to be a literal string"}},
		{"loops in loops in loops in loops", check("  - {when: \"list(object, 'a').all(a, list(a, 'b').all(b, list(b, 'c').all(c, list(c, 'd').all(d, true))))\", status: Healthy}"), []string{"comprehension exceeds nesting limit"}},
		{"an expression that is long", check("  - {when: \"" + strings.Repeat("true && ", 600) + "true\", status: Healthy}"), []string{"expression code point size exceeds limit"}},
		{"an expression that costs too much for any object", check("  - {when: \"" + tooExpensive() + "\", status: Healthy}"), []string{"and may cost 20000"}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s, err := Parse(File{"rules.yaml", []byte(c.text)})
			if err == nil {
				t.Fatalf("Parse accepted the file: %d rules", s.Len())
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v\nwant %s", err, want)
				}
			}
		})
	}
}

// tooExpensive returns an expression that loops over literal lists in each other.
func tooExpensive() string {
	list := "[" + strings.Repeat("1,", 399) + "1]"
	return list + ".map(a, " + list + ".map(b, a == b)).size() > 0"
}

func TestParse_ReturnsAllErrors(t *testing.T) {
	_, err := Parse(
		File{"b.yaml", []byte("rules:\n- {group: a.b, kinds: [W], checks: [{when: 'x', status: Fine}]}\n- {group: a.b, kinds: [V], checks: [{when: 'y', status: Down, detail: z}]}\n")},
		File{"a.yaml", []byte("rules: [")})
	var all Errors
	if !errors.As(err, &all) {
		t.Fatalf("the error has the type %T, want Errors", err)
	}
	var got []string
	for _, e := range all {
		got = append(got, fmt.Sprintf("%s:%d %s %s", e.File, e.Line, e.Rule, e.Place))
	}
	want := "a.yaml:1   | b.yaml:2 W.a.b check 1, when | b.yaml:2 W.a.b check 1 | b.yaml:3 V.a.b check 1 | b.yaml:3 V.a.b check 1 | " +
		"b.yaml:3 V.a.b check 1, when | b.yaml:3 V.a.b check 1, detail"
	if strings.Join(got, " | ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " | "), want)
	}
	var one *Error
	if !errors.As(err, &one) || one.File != "a.yaml" {
		t.Errorf("the first error is %+v, want one in a.yaml", one)
	}
}

func TestParse_ValidFiles(t *testing.T) {
	for reason, c := range map[string]struct {
		text  string
		rules int
	}{
		"no rules":               {"rules: []\n", 0},
		"several documents":      {"---\n" + widgetRule("  - {when: 'true', status: Healthy}") + "---\n# none\n---\nrules: []\n", 1},
		"JSON":                   {`{"rules": [{"group": "a.b", "kinds": ["W"], "checks": [{"when": "true", "status": "Healthy"}]}]}`, 1},
		"checks that are shared": {"rules:\n- group: a.b\n  kinds: [W]\n  checks: &c\n  - &d {when: 'true', status: Healthy}\n- group: c.d\n  kinds: [V]\n  checks: *c\n- group: e.f\n  kinds: [U]\n  checks: [*d]\n", 3},
	} {
		s, err := Parse(File{"rules.yaml", []byte(c.text)})
		if err != nil || s.Len() != c.rules {
			t.Errorf("%s: got %v, %d rules, want %d", reason, err, s.Len(), c.rules)
		}
	}
}
