package rules

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestParse_DocumentedRules parses the rules in the user documentation.
func TestParse_DocumentedRules(t *testing.T) {
	if _, err := Load("../../../config/components/health-rules/rules.yaml"); err != nil {
		t.Error(err)
	}
	for _, document := range []string{"health-rules.md", "health-rules-reference.md"} {
		text, err := os.ReadFile("../../../docs/" + document)
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(string(text), "```yaml\n")[1:]
		if len(blocks) == 0 {
			t.Errorf("%s shows no rules", document)
		}
		for i, block := range blocks {
			block, _, _ = strings.Cut(block, "```")
			if _, err := Parse(File{Name: fmt.Sprintf("%s, example %d", document, i+1), Data: []byte(block)}); err != nil {
				t.Errorf("the example is invalid: %v in\n%s", err, block)
			}
		}
	}
}

// TestParse_DocumentedVerdict checks the documented verdict of the first example.
func TestParse_DocumentedVerdict(t *testing.T) {
	text, err := os.ReadFile("../../../docs/health-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	o := with(t, `"kind":"Database","metadata":{"name":"orders"},"status":{"conditions":[{"type":"Ready","status":"False","reason":"NoDisk","message":"There is no disk"}]}`)
	kind := widget
	kind.Kind = "Database"
	a, _ := parse(t, block).Judge(kind, o, now)
	if got, want := fmt.Sprintf("%s %s %s", a.Status, a.Reason, a.Message), "Unhealthy NoDisk Database orders is not ready: There is no disk"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, part := range []string{"`" + string(a.Status) + "`", "`" + a.Reason + "`", `"` + a.Message + `"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the document does not contain %s", part)
		}
	}
}
