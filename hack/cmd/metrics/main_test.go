package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const declarations = `package metrics

import "github.com/prometheus/client_golang/prometheus"

func declare(program string) {
	_ = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "threeport_agent_reports_total", Help: "Reports, " + "by kind."}, []string{"kind"})
	_ = prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: program + "_rules", Help: "Rules."}, nil)
	_ = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "controlplane_seconds", Help: "Time.", Buckets: []float64{1}})
	_ = prometheus.NewGauge(prometheus.GaugeOpts{Name: "controlplane_open", Help: "Open.", ConstLabels: prometheus.Labels{"state": "a"}})
	desc := prometheus.NewDesc("controlplane_clusters", "Clusters.", []string{"cluster"}, nil)
	_ = prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, 1, "uid")
}
`

func TestReadMetrics(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "metrics.go"), declarations)
	writeFile(t, filepath.Join(dir, "metrics_test.go"), strings.ReplaceAll(declarations, "controlplane_", "controlplane_test_"))
	writeFile(t, filepath.Join(dir, "e2e", "e2e.go"), strings.ReplaceAll(declarations, "controlplane_", "controlplane_e2e_"))
	found, err := readMetrics(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		got = append(got, strings.Join([]string{m.name, m.kind, m.help, strings.Join(m.labels, ",")}, " | "))
	}
	want := []string{
		"controlplane_clusters | gauge | Clusters. | cluster",
		"controlplane_open | gauge | Open. | state",
		"controlplane_rules | gauge | Rules. | ",
		"controlplane_seconds | histogram | Time. | ",
		"threeport_agent_reports_total | counter | Reports, by kind. | kind",
		"threeport_agent_rules | gauge | Rules. | ",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the metrics are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestReadMetrics_NoLiteral_Fails(t *testing.T) {
	for _, tt := range []struct{ reason, from, to string }{
		{"a name that is a variable", `"controlplane_seconds"`, "program"},
		{"a metric without a text", `Help: "Time.", `, ""},
	} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "metrics.go"), strings.Replace(declarations, tt.from, tt.to, 1))
		if _, err := readMetrics(dir); err == nil || !strings.Contains(err.Error(), "metrics.go:8") {
			t.Errorf("%s: the error is %v, want one that names the line", tt.reason, err)
		}
	}
}

// Alerts use a metric by the name of its series, and through recording rules.
func TestRules_ByMetric(t *testing.T) {
	metrics := []metric{{name: "controlplane_seconds", kind: "histogram"}, {name: "controlplane_open", kind: "gauge"}}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "a.rules.yaml"), `
groups:
- name: a
  rules:
  - {record: "controlplane:seconds:p99", expr: "histogram_quantile(0.99, controlplane_seconds_bucket)"}
  - {alert: Slow, expr: "controlplane:seconds:p99 > 1", annotations: {runbook_url: "https://example.org/docs/runbook.md#slow"}}
`)
	rules, err := readRules(filepath.Join(dir, "*.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	links, err := rules.byMetric(metrics)
	if got := strings.Join(links["controlplane_seconds"], " "); err != nil || got != "[Slow](runbook.md#slow)" || len(links) != 1 {
		t.Errorf("the links are %v, error %v", links, err)
	}
	for _, undeclared := range []string{"controlplane_absent", "controlplane_open_bucket"} {
		rules.alerts[0].Expr = undeclared + " > 1"
		if _, err := rules.byMetric(metrics); err == nil || !strings.Contains(err.Error(), undeclared) {
			t.Errorf("an alert uses %s, which is not declared: the error is %v", undeclared, err)
		}
	}
}

func TestCheckDashboards_UndeclaredMetric_Fails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.json")
	metrics := []metric{{name: "controlplane_open", kind: "gauge"}}
	for expr, want := range map[string]string{"sum(controlplane_open)": "", "sum(controlplane_opened) or vector(0)": "controlplane_opened"} {
		writeFile(t, file, `{"panels": [{"title": "Open", "targets": [{"expr": "`+expr+`"}]}]}`)
		err := checkDashboards(file, ruleSet{}, metrics)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: the error is %v, want one with %q", expr, err, want)
		}
	}
}

func TestWrite_LabelWithoutBound_Fails(t *testing.T) {
	_, err := write([]metric{{name: "controlplane_open", kind: "gauge", help: "Open.", labels: []string{"user"}}}, nil)
	if err == nil || !strings.Contains(err.Error(), `"user"`) {
		t.Errorf("the error is %v, want one that names the label", err)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
