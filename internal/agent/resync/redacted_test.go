package resync

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/redact"
	"github.com/threeport/threeport-agent/internal/reload"
)

func TestResyncer_RowRedactedByControlPlane_IsNotRepaired(t *testing.T) {
	s := newSettled(t)
	whole := definition(t, operation(s.first, "uid-1", "1"))
	beforeData, _, _ := strings.Cut(whole, `"data":`)
	_, afterKind, _ := strings.Cut(whole, `"kind":`)
	for _, row := range []string{
		strings.Replace(whole, `"hush\ufffd"`, `"[redacted]"`, 1),
		strings.Replace(whole, `9007199254740993`, `"[redacted 0123456789abcdef]"`, 1),
		beforeData + `"data":"[redacted]","kind":` + afterKind,
	} {
		s.patch(s.first, `{"RuntimeDefinition":`+row+`}`)
		if got := s.row(s.first)["RuntimeDefinition"]; !strings.Contains(encodedRow(t, got), "[redacted") {
			t.Fatalf("the row is %v, want a redacted value", got)
		}
		if got := s.audit(); got != 0 || len(s.deliver()) > 0 {
			t.Errorf("%v repairs of %s: %q", got, row, s.logs.all)
		}
	}
}

// rules are redaction rules.
type rules struct{ *redact.Rules }

func (r rules) Current() *redact.Rules { return r.Rules }

func TestResyncer_NewRedactionRules_RepairTheRowOnce(t *testing.T) {
	s := newSettled(t)
	parsed, err := redact.Parse(reload.File{
		Name: "rules.yaml", Data: []byte(`rules: [{group: "", kinds: [ConfigMap], path: data.word, action: hash}]`),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.cluster.edit(s.instance, func(i *observe.DesiredState) { i.Operations[0].Redaction = rules{parsed} })
	if got := s.audit(); got != 1 || len(s.deliver()) != 1 {
		t.Errorf("%v repairs of the row, want one", got)
	}
	if got := encodedRow(t, s.row(s.first)["RuntimeDefinition"]); !strings.Contains(got, `"word":"[redacted `) || strings.Contains(got, "hush") {
		t.Errorf("the row is %s, want a hash in place of the word", got)
	}
	if got := s.audit(); got != 0 || len(s.deliver()) > 0 {
		t.Errorf("%v repairs in the second diff", got)
	}
}

func encodedRow(t *testing.T, value any) string {
	t.Helper()
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
