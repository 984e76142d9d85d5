// Command metrics prints docs/metrics.md: the metrics of the agent and of the control-plane API, as the Go files declare them, with the
// alerts that use them. It reads the source, because a running program shows a metric only once the metric has a series.
//
// It fails if a rule or a dashboard names a metric that the code does not declare, or if a label has no bound in the document.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		_, _ = fmt.Fprintln(os.Stderr, "usage: metrics ROOT")
		os.Exit(2)
	}
	document, err := generate(os.Args[1])
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
	fmt.Print(document)
}

// generate returns the document of the source tree with this root.
func generate(root string) (string, error) {
	metrics, err := readMetrics(filepath.Join(root, "internal"), filepath.Join(root, "cmd"))
	if err != nil {
		return "", err
	}
	rules, err := readRules(filepath.Join(root, "config", "monitoring", "*.rules.yaml"))
	if err != nil {
		return "", err
	}
	alerts, err := rules.byMetric(metrics)
	if err != nil {
		return "", err
	}
	if err := checkDashboards(filepath.Join(root, "config", "dashboards", "*.json"), rules, metrics); err != nil {
		return "", err
	}
	return write(metrics, alerts)
}
