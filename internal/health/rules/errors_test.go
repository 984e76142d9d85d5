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
		{reason: "not YAML", text: "rules: [", want: []string{"rules.yaml:1:1: this is not YAML"}},
		{
			reason: "an expression that needs quotes", text: check("  - when: a ? 1 : 2\n    status: Healthy"),
			want: []string{"rules.yaml:5:1: this is not YAML: mapping values", "has to be in quotes as a whole"},
		},
		{
			reason: "an expression that begins with quotes", text: check("  - when: 'a' == text(object, 'b')\n    status: Healthy"),
			want: []string{"this is not YAML: did not find expected key; an expression", "begins with a quote"},
		},
		{reason: "an empty file", want: []string{`rules.yaml: there are no rules in it: write "rules: []" if that is meant`}},
		{reason: "only comments", text: "# none yet\n---\n# none here\n", want: []string{`rules.yaml: there are no rules in it`}},
		{
			reason: "a ConfigMap's manifest",
			text:   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rules}\ndata: {rules.yaml: 'rules: []'}\n",
			want:   []string{"rules.yaml:1:1: this is a ConfigMap: give the files in its data"},
		},
		{reason: "no mapping", text: "- rules", want: []string{"rules.yaml:1:1: this has to be a mapping with the fields rules"}},
		{
			reason: "an unknown field at the top", text: "rules: []\nrule: []",
			want: []string{`rules.yaml:2:1: the field "rule" is not known; there are rules`},
		},
		{reason: "apiVersion", text: "apiVersion: v1\nrules: []", want: []string{`rules.yaml:1:1: the field "apiVersion" is not known`}},
		{reason: "rules that are no list", text: "rules: {}", want: []string{"rules.yaml:1:8: this has to be a list"}},
		{reason: "an empty rule", text: "rules:\n- {}", want: []string{
			`rules.yaml:2:3: rule number 1: the field "group" is missing`, `rules.yaml:2:3: rule number 1: the field "kinds" is missing`,
			`rules.yaml:2:3: rule number 1: the field "checks" is missing`,
		}},
		{
			reason: "a rule that is a text", text: "rules: [x]",
			want: []string{"rules.yaml:1:9: rule number 1: this has to be a mapping with the fields checks, else,"},
		},
		{
			reason: "a group that is none",
			text:   "rules: [{group: Example, kinds: [Widget], checks: [{when: 'true', status: Healthy}]}]",
			want:   []string{`1:17: rule Widget: "Example" is not the name of an API group`},
		},
		{
			reason: "a kind that is none",
			text:   "rules: [{group: a.b, kinds: [wid-gets], checks: [{when: 'true', status: Healthy}]}]",
			want:   []string{`1:30: rule number 1: "wid-gets" is not the name of a kind`},
		},

		{
			reason: "a version that is none",
			text:   "rules: [{group: a.b, kinds: [W], versions: [a.b/v1], checks: [{when: 'true', status: Healthy}]}]",
			want:   []string{`1:45: rule W.a.b: "a.b/v1" is not a version`},
		},
		{
			reason: "a generation that is none",
			text:   "rules: [{group: a.b, kinds: [W], generation: latest, checks: [{when: 'true', status: Healthy}]}]",
			want:   []string{`1:46: rule W.a.b: "latest" is not one of observed, ignored`},
		},
		{
			reason: "a kind twice in a rule",
			text:   "rules: [{group: a.b, kinds: [W, W], checks: [{when: 'true', status: Healthy}]}]",
			want:   []string{`1:33: rule W,W.a.b: duplicate "W"`},
		},
		{
			reason: "a kind in two rules",
			text:   "rules:\n- {group: a.b, kinds: [W], checks: [{when: 'true', status: Healthy}]}\n- {group: a.b, kinds: [V, W], checks: [{when: 'true', status: Healthy}]}",
			want:   []string{"rules.yaml:3:3: rule V,W.a.b: there is a rule for W.a.b already, at rules.yaml:2:3"},
		},
		{
			reason: "a version in two rules",
			text:   "rules:\n- {group: a.b, kinds: [W], versions: [v1, v2], checks: [{when: 'true', status: Healthy}]}\n- {group: a.b, kinds: [W], versions: [v2], checks: [{when: 'true', status: Healthy}]}",
			want:   []string{"rules.yaml:3:3: rule W.a.b: there is a rule for W.a.b already"},
		},
		{
			reason: "no checks", text: "rules: [{group: a.b, kinds: [W], checks: []}]",
			want: []string{"1:42: rule W.a.b: there are 0 checks, and have to be 1 to 64"},
		},
		{
			reason: "a field twice", text: check("  - {when: 'true', status: Healthy, status: Down}"),
			want: []string{`5:37: rule Widget.example.org, check 1: duplicate field "status"`},
		},
		{
			reason: "a field that is misspelt", text: check("  - {when: 'true', status: Healthy, massage: x}"),
			want: []string{`5:37: rule Widget.example.org, check 1: the field "massage" is not known; there are condition, detail, message,`},
		},
		{reason: "when is missing", text: check("  - {status: Healthy}"), want: []string{`check 1: the field "when" is missing`}},
		{
			reason: "when in an else",
			text:   check("  - {when: 'true', status: Healthy}\n  else: {when: 'true', status: Healthy}"),
			want:   []string{`6:10: rule Widget.example.org, else: the field "when" is not known`},
		},
		{
			reason: "a boolean for a text", text: check("  - {when: true, status: Healthy}"),
			want: []string{"5:12: rule Widget.example.org, check 1: this has to be a string; put it into quotes"},
		},
		{
			reason: "a status that is none", text: check("  - {when: 'true', status: Fine}"),
			want: []string{`5:28: rule Widget.example.org, check 1: "Fine" is no status: give Healthy, Reconciling, Unhealthy, Down or Unknown`},
		},
		{reason: "no reason", text: check("  - {when: 'true', status: Down, message: is down}"), want: []string{"check 1: reason is missing"}},
		{
			reason: "a reason of two words",
			text:   check("  - {when: 'true', status: Down, reason: is down, message: is down}"),
			want:   []string{`5:42: rule Widget.example.org, check 1: "is down" is not one CamelCase word`, "reason is missing"},
		},
		{reason: "no message", text: check("  - {when: 'true', status: Down, reason: Bad}"), want: []string{"check 1: message is missing"}},
		{
			reason: "a message of two lines",
			text:   check("  - {when: 'true', status: Down, reason: Bad, message: \"a\\nb\"}"),
			want:   []string{"check 1: message is longer than a line"},
		},
		{
			reason: "Healthy with a reason", text: check("  - {when: 'true', status: Healthy, reason: Fine}"),
			want: []string{"check 1: message is missing"},
		},
		{
			reason: "Healthy with a message", text: check("  - {when: 'true', status: Healthy, message: is fine}"),
			want: []string{"check 1: Healthy has a message, detail or reasonFrom only with the reason of an idle object"},
		},
		{
			reason: "then without until",
			text:   check("  - {when: 'true', status: Reconciling, then: Down, reason: Bad, message: is bad}"),
			want:   []string{"check 1: then requires until"},
		},
		{
			reason: "Healthy by time",
			text:   check("  - {when: 'true', status: Reconciling, until: now, then: Healthy, reason: Bad, message: is bad}"),
			want:   []string{"check 1: then is Healthy: it has to differ from status"},
		},
		{
			reason: "then has the same status",
			text:   check("  - {when: 'true', status: Down, until: now, then: Down, reason: Bad, message: is bad}"),
			want:   []string{"check 1: then is Down"},
		},
		{
			reason: "an else that ends",
			text:   check("  - {when: 'true', status: Healthy}\n  else: {status: Reconciling, until: now, reason: Bad, message: is bad}"),
			want:   []string{"6:38: rule Widget.example.org, else: until in else requires then"},
		},

		{
			reason: "an expression that is none", text: check("  - {when: 'a b', status: Healthy}"),
			want: []string{"5:15: rule Widget.example.org, check 1, when (line 1, column 3 of the expression): Syntax error"},
		},
		{reason: "an empty expression", text: check("  - {when: '', status: Healthy}"), want: []string{"rule Widget.example.org, check 1, when"}},
		{
			reason: "a name that is none", text: check("  - when: isTrue(obect, 'Ready')\n    status: Healthy"),
			want: []string{"5:18: rule Widget.example.org, check 1, when (line 1, column 8 of the expression): undeclared reference to 'obect'"},
		},
		{
			reason: "a field of a condition that is none",
			text:   check("  - when: condition(object, 'Ready').stauts == 'True'\n    status: Healthy"),
			want:   []string{"5:37: rule Widget.example.org, check 1, when (line 1, column 27 of the expression): undefined field 'stauts'"},
		},
		{
			reason: "a function that is none",
			text:   check("  - when: |\n      true &&\n      isReady(object)\n    status: Healthy"),
			want:   []string{"7:14: rule Widget.example.org, check 1, when (line 2, column 8 of the expression): undeclared reference to 'isReady'"},
		},
		{
			reason: "in folded lines",
			text:   check("  - when: >-\n      true\n      && obect\n    status: Healthy"),
			want:   []string{"7:10: rule Widget.example.org, check 1, when (line 1, column 9 of the expression): undeclared reference to 'obect'"},
		},
		{
			reason: "in lines without quotes", text: check("  - when: true &&\n      obect\n    status: Healthy"),
			want: []string{"6:7: rule Widget.example.org, check 1, when (line 1, column 9 of the expression): undeclared reference to 'obect'"},
		},
		{
			reason: "in single quotes", text: check("  - when: '''a'' == obect'\n    status: Healthy"),
			want: []string{"5:21: rule Widget.example.org, check 1, when (line 1, column 8 of the expression): undeclared reference to 'obect'"},
		},
		{
			reason: "in double quotes",
			text:   check("  - when: \"\\\"\\u00e4\\\" ==\\n obect\"\n    status: Healthy"),
			want:   []string{"5:28: rule Widget.example.org, check 1, when (line 2, column 2 of the expression): undeclared reference to 'obect'"},
		},
		{
			reason: "beyond letters of one byte", text: check("  - when: \"'ä€😀' == obect\"\n    status: Healthy"),
			want: []string{"5:21: rule Widget.example.org, check 1, when (line 1, column 10 of the expression): undeclared reference to 'obect'"},
		},
		{
			reason: "an expression of another type", text: check("  - {when: '1 + 1', status: Healthy}"),
			want: []string{"check 1, when (line 1, column 1 of the expression): the expression gives int, and has to give bool"},
		},
		{
			reason: "a since that is no time", text: check("  - {when: 'true', status: Healthy, since: '1'}"),
			want: []string{"check 1, since (line 1, column 1 of the expression): the expression gives int, and has to give timestamp"},
		},
		{
			reason: "types that do not fit",
			text:   check("  - {when: \"text(object, 'status.phase') == 1\", status: Healthy}"),
			want:   []string{"found no matching overload for '_==_'"},
		},
		{
			reason: "a path that is none",
			text:   check("  - {when: \"flag(object, 'status..phase')\", status: Healthy}"),
			want:   []string{`5:26: rule Widget.example.org, check 1, when (line 1, column 14 of the expression): "status..phase" is not a path`},
		},
		{
			reason: "a duration that is none",
			text:   check("  - {when: \"duration('5 minutes') < duration('1h')\", status: Healthy}"),
			want:   []string{"invalid duration"},
		},
		{
			reason: "a pattern that is none",
			text:   check("  - {when: \"text(object, 'a').matches('[')\", status: Healthy}"),
			want:   []string{"invalid matches argument"},
		},
		{
			reason: "a pattern from the object",
			text:   check("  - {when: \"text(object, 'a').matches(text(object, 'b'))\", status: Healthy}"),
			want:   []string{"the pattern of matches has to be a literal string"},
		},
		{
			reason: "loops in loops in loops in loops",
			text:   check("  - {when: \"list(object, 'a').all(a, list(a, 'b').all(b, list(b, 'c').all(c, list(c, 'd').all(d, true))))\", status: Healthy}"),
			want:   []string{"comprehension exceeds nesting limit"},
		},
		{
			reason: "an expression that is long",
			text:   check("  - {when: \"" + strings.Repeat("true && ", 600) + "true\", status: Healthy}"),
			want:   []string{"expression code point size exceeds limit"},
		},
		{
			reason: "an expression that costs too much for any object",
			text:   check("  - {when: \"" + tooExpensive() + "\", status: Healthy}"), want: []string{"and may cost 20000"},
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s, err := Parse(File{Name: "rules.yaml", Data: []byte(c.text)})
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
		File{Name: "b.yaml", Data: []byte("rules:\n- {group: a.b, kinds: [W], checks: [{when: 'x', status: Fine}]}\n- {group: a.b, kinds: [V], checks: [{when: 'y', status: Down, detail: z}]}\n")},
		File{Name: "a.yaml", Data: []byte("rules: [")})
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
		s, err := Parse(File{Name: "rules.yaml", Data: []byte(c.text)})
		if err != nil || s.Len() != c.rules {
			t.Errorf("%s: got %v, %d rules, want %d", reason, err, s.Len(), c.rules)
		}
	}
}
