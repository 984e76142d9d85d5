package filter

import (
	"fmt"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/reload"
)

func TestParse_Errors_NameFileFilterAndAccepted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ reason, text, want string }{
		{"empty file", "# nothing", `f.yaml: there are no filters in it: write "filters: []" if that is meant`},
		{"rules", "rules: []", "f.yaml:1: give a mapping with the field filters only, which is a list"},
		{"no mapping", "filters: [a]", "f.yaml:1: filter number 1: a filter is a mapping: give the fields name, of, if, action"},
		{"unknown field", "filters:\n- {name: a, when: 'true'}", `f.yaml:2: filter number 1: "when" is no field of a filter: give name, of, if,`},
		{"wrong type", "filters: [{name: a, if: 'true', action: limit, perMinute: many}]", "filter number 1: line 1: cannot unmarshal"},
		{"no name", "filters: [{if: 'true', action: drop}]", `name is "": give 1 to 63 bytes`},
		{"no expression", "filters: [{name: a, action: drop}]", "if is missing: give a CEL expression"},
		{"no action", "filters: [{name: a, if: 'true'}]", `action is "": give report, drop, shorten or limit`},
		{"no bytes", "filters: [{name: a, if: 'true', action: shorten}]", "bytes is 0: give the bytes that shorten leaves of a message, 16 to 4096"},
		{"bytes of drop", "filters: [{name: a, if: 'true', action: drop, bytes: 20}]", "bytes is for the action shorten only"},
		{"no rate", "filters: [{name: a, if: 'true', action: limit}]", "perMinute is 0: give the Events per minute"},
		{"rate of drop", "filters: [{name: a, if: 'true', action: drop, perMinute: 1}]", "perMinute is for the action limit only"},
		{"another subject", "filters: [{name: a, of: pods, if: 'true', action: drop}]", `of is "pods": give events or objects`},
		{"rate of objects", "filters: [{name: a, of: objects, if: 'true', action: limit, perMinute: 1}]", "the action limit is of Events only"},
		{"Event in a filter of objects", "filters: [{name: a, of: objects, if: 'event.reason == \"a\"', action: drop}]", "undeclared reference to 'event'"},
		{"object in a filter of Events", "filters: [{name: a, if: 'object.kind == \"Pod\"', action: drop}]", "undeclared reference to 'object'"},
		{"syntax", "filters: [{name: a, if: 'event.reason ==', action: drop}]", "if: column "},
		{"misspelt", "filters: [{name: a, if: 'event.reson == \"a\"', action: drop}]", "if: column 6: undefined field 'reson'"},
		{"no condition", "filters: [{name: a, if: 'event.reason', action: drop}]", "the expression gives string, and has to give true or false"},
		{"regular expression", "filters: [{name: a, if: 'event.reason.matches(\"(\")', action: drop}]", "if: column "},
		{
			"the same name twice", "filters:\n- {name: a, if: 'true', action: drop}\n- {name: a, if: 'true', action: drop}",
			`f.yaml:3: filter number 2: the name "a" is that of the filter at f.yaml:2`,
		},
	} {
		_, err := Parse(reload.File{Name: "f.yaml", Data: []byte(tt.text)})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line with %q", tt.reason, err, tt.want)
		}
	}
}

func TestParse_TooManyFilters(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("filters:\n")
	for i := range maxFilters + 1 {
		fmt.Fprintf(&text, "- {name: f%d, if: 'true', action: drop}\n", i)
	}
	_, err := Parse(reload.File{Name: "f.yaml", Data: []byte(text.String())})
	if err == nil || !strings.Contains(err.Error(), "there are 101 filters: give 100 at most") {
		t.Errorf("got %v, want an error about the number", err)
	}
}
