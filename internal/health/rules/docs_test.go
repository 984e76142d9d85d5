package rules

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestParse_DocumentedRules takes the rules that are shown to users.
func TestParse_DocumentedRules(t *testing.T) {
	if _, err := Load("../../../config/components/health-rules/rules.yaml"); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile("../../../docs/health-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```yaml\n")[1:]
	if len(blocks) == 0 {
		t.Error("no rules are shown")
	}
	for i, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if _, err := Parse(File{fmt.Sprintf("example %d", i+1), []byte(block)}); err != nil {
			t.Errorf("%v in\n%s", err, block)
		}
	}
}

// TestParse_DocumentedVerdict is what the first example is said to do.
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
		t.Errorf("got %s", got)
	}
	for _, part := range []string{"`" + string(a.Status) + "`", "`" + a.Reason + "`", `"` + a.Message + `"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the text does not say %s", part)
		}
	}
}
