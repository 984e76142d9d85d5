package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/health"
	"github.com/threeport/threeport-agent/internal/testing/cputime"
)

// large returns a Widget as large as the API server stores, with a list of texts.
func large(n int) map[string]any {
	texts := make([]any, n)
	for i := range texts {
		texts[i] = strings.Repeat("x", 1_500_000/n)
	}
	return map[string]any{"metadata": map[string]any{"name": "w"}, "status": map[string]any{"list": texts, "text": strings.Repeat("y", 1_500_000)}}
}

func TestSet_ExpensiveExpression_IsUnknown(t *testing.T) {
	for _, c := range []struct{ reason, when string }{
		{"a loop over a long list", `list(object, 'status.list').all(a, a != 'b' && a != 'c' && a != 'd')`},
		{"a loop in a loop", `list(object, 'status.list').all(a, list(object, 'status.list').all(b, a == b))`},
		{"a text that grows", `size(list(object, 'status.list').map(a, text(object, 'status.text') + a)) == 0`},
		{"adding a text to itself", `(text(object, 'status.text') + text(object, 'status.text') + text(object, 'status.text') + text(object, 'status.text')).size() == 0`},
		{"a pattern in a long text", `text(object, 'status.text').matches('^(a|b|c|d|e|f|g|y)*$')`},
		{"conditions, again and again", `list(object, 'status.list').all(a, isTrue(object, 'Ready') || !isTrue(object, 'Ready'))`},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := parse(t, widgetRule("  - {when: \""+c.when+"\", status: Healthy}"))
			began := cputime.Used(t)
			a, d := s.Decide(widget, large(30_000), now)
			if a.Status != health.Unknown || a.Reason != ruleTooExpensive || !d.Failed || !strings.Contains(a.Message, "Widget.example.org, check 1: it costs too much") {
				t.Errorf("got %s %s: %.300s, want %s and %s", a.Status, a.Reason, a.Message, health.Unknown, ruleTooExpensive)
			}
			if took := cputime.Used(t) - began; took > 20*time.Second {
				t.Errorf("evaluation took %s of CPU time, want at most 20 s", took)
			}
		})
	}
}

// TestSet_CostIsSummedOverChecks has checks that are cheap enough one by one.
func TestSet_CostIsSummedOverChecks(t *testing.T) {
	const one = "  - {when: \"list(object, 'status.list').all(a, a == 'b') || list(object, 'status.list').exists(a, a == 'b')\", status: Healthy}\n"
	cheap := "  else: {status: Down, reason: Left, message: is left}"
	if a, _ := parse(t, widgetRule(one+cheap)).Judge(widget, large(400), now); a.Reason != "Left" {
		t.Errorf("one check: got %s: %s, want \"Left\"", a.Reason, a.Message)
	}
	if a, _ := parse(t, widgetRule(strings.Repeat(one, 20)+cheap)).Judge(widget, large(400), now); a.Reason != ruleTooExpensive {
		t.Errorf("twenty checks: got %s: %s, want %s", a.Reason, a.Message, ruleTooExpensive)
	}
}

// TestSet_ExpensiveTexts_AreLeftOut checks that the status does not depend on the texts.
func TestSet_ExpensiveTexts_AreLeftOut(t *testing.T) {
	s := parse(t, widgetRule("  - {when: 'true', status: Down, reason: Broken, message: is broken, detail: \"join(list(object, 'status.list').map(a, a + a), ',')\"}"))
	if a, _ := s.Judge(widget, large(30_000), now); a.Status != health.Down || a.Message != "Widget w is broken" {
		t.Errorf("got %s %s: %.300s, want %s and \"Widget w is broken\"", a.Status, a.Reason, a.Message, health.Down)
	}
}

func BenchmarkJudge(b *testing.B) {
	s, err := Parse(File{Name: "rules.yaml", Data: []byte(widgetRule("  - {when: \"isFalse(object, 'Ready')\", status: Down, reason: Bad, message: is bad, condition: Ready}\n" +
		"  - {when: \"isTrue(object, 'Ready') && text(object, 'status.phase') == 'Up'\", status: Healthy}"))})
	if err != nil {
		b.Fatal(err)
	}
	o := map[string]any{"status": map[string]any{"phase": "Up", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}}
	b.ReportAllocs()
	for b.Loop() {
		if a, _ := s.Judge(widget, o, now); a.Status != health.Healthy {
			b.Fatal(a)
		}
	}
}
