package redact

import (
	"os"
	"regexp"
	"testing"

	"github.com/go-logr/logr"

	"github.com/threeport/threeport-agent/internal/reload"
)

func TestDocs_ExamplesAreValid(t *testing.T) {
	if _, err := Open("../../config/components/redaction-rules/rules.yaml", NewMetrics("test"), logr.Discard()); err != nil {
		t.Errorf("the component's rules: %v", err)
	}
	text, err := os.ReadFile("../../docs/redaction.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	if len(examples) == 0 {
		t.Fatal("docs/redaction.md has no example")
	}
	for _, example := range examples {
		if _, err := Parse(reload.File{Name: "docs/redaction.md", Data: example[1]}); err != nil {
			t.Errorf("an example: %v", err)
		}
	}
}
