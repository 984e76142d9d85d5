package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/health"
)

var (
	certificate = schema.GroupKind{Group: "cert-manager.io", Kind: "Certificate"}
	ready       = map[string]any{
		"apiVersion": "cert-manager.io/v1",
		"status":     map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
	}
)

func TestOpenRules_Default(t *testing.T) {
	all, own, err := openHealthRules(newOptions(flag.NewFlagSet("agent", flag.ContinueOnError)).healthRules, prometheus.NewRegistry())
	if err != nil || own != nil {
		t.Fatalf("got %v, %v, want no rules of the user's own", own, err)
	}
	if a, ok := all.Judge(certificate, ready, time.Now()); !ok || a.Status != health.Healthy {
		t.Errorf("the catalogue says %t, %+v", ok, a)
	}
}

func TestOpenRules_OwnRulesComeFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	const text = `rules: [{group: cert-manager.io, kinds: [Certificate], checks: [{when: "flag(object, 'mine')", status: Down, reason: Mine, message: is mine}]}]`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all, own, err := openHealthRules(path, prometheus.NewRegistry())
	if err != nil || own == nil {
		t.Fatal(err)
	}
	if a, ok := all.Judge(certificate, map[string]any{"mine": true}, time.Now()); !ok || a.Reason != "Mine" {
		t.Errorf("one's own rule says %t, %+v", ok, a)
	}
	if a, ok := all.Judge(certificate, ready, time.Now()); !ok || a.Status != health.Healthy {
		t.Errorf("where it does not apply, the catalogue says %t, %+v", ok, a)
	}
}

func TestRun_InvalidRedactionRules_IsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "redaction.yaml")
	if err := os.WriteFile(path, []byte("rules: [{}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := newOptions(flag.NewFlagSet("agent", flag.ContinueOnError))
	o.redactionRules = path
	err := run(t.Context(), o, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "--redaction-rules="+path+": "+path+":1: rule number 1: group is missing") {
		t.Errorf("got %v, want the flag and the place, before the agent connects to the cluster", err)
	}
}

func TestRun_WrongRulesAreAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte("rules: [{}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := newOptions(flag.NewFlagSet("agent", flag.ContinueOnError))
	o.healthRules = path
	err := run(t.Context(), o, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "--health-rules="+path+": "+path+":1:9: rule number 1: ") {
		t.Errorf("got %v, want the flag and the place, before the cluster is looked for", err)
	}
}
