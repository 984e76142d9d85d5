package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

const intro = `# Metrics

<!-- Generated from the Go files and the rules in config/monitoring by hack/cmd/metrics. Run make generate after a change. -->

The metrics that the two programs declare, and the alerts that use them, with their sections of the [runbook](runbook.md).
[Monitoring](monitoring.md) explains how to scrape the programs, and how to install the alerts and the dashboards.

- [The agent](#the-agent)
- [The control-plane API](#the-control-plane-api)
- [Labels](#labels)
- [Metrics of libraries](#metrics-of-libraries)

Histograms are exposed as classic ones, with buckets, and as native ones to a Prometheus that
[scrapes them](monitoring.md#native-histograms).
`

// labelRows has a row for each label. A label without a bound is not accepted: its series would fill Prometheus.
const labelRows = `
## Labels

Each label has a bounded number of values.

| label | values |
|---|---|
| 'action' | 'drop', 'limit' |
| 'authenticated' | 'true', 'false' |
| 'cause' | 'refused', 'expired' |
| 'cluster' | the UIDs of the 100 clusters that store most |
| 'code' | the status codes of HTTP that the API sends |
| 'kind' | 'operation', 'event', 'status', 'tree', 'adoption'; for repairs 'watch' in place of the last two |
| 'method' | six methods of HTTP, and 'other' |
| 'outcome' | 'created', 'updated', 'unchanged', 'stale', 'rejected' |
| 'reason' | 'RuleFailed', 'RuleTooExpensive' |
| 'resource' | the kinds that 'ThreeportWorkload's list or own, as 'deployments.apps' |
| 'result' | 'accepted', 'retried', 'rejected', 'gone', 'unknown'; for sets 'answered', 'failed'; for audits 'ok', 'failed'; for spans 'exported', 'failed', 'dropped' |
| 'route' | the routes of the API, and 'none' for requests that were refused before |
| 'state' | of clusters 'reporting', 'silent', 'v0'; of kinds 'Forbidden', 'KindNotInstalled', 'Unavailable' |
| 'status' | the six statuses of a workload |
`

const libraries = `
## Metrics of libraries

Both programs also expose metrics of the libraries that they use. The names of these metrics may change with the libraries.

| metrics | of | program |
|---|---|---|
| 'go_*', 'process_*' | the Go runtime and the process | both |
| 'controller_runtime_*', 'workqueue_*', 'leader_election_*', 'certwatcher_*' | the framework of the operator | agent |
| 'rest_client_*' | requests to the API server of the cluster | agent |
| 'go_sql_*{db_name}' | the connection pools of the database: 'write', 'read', 'reserved' | API |
| 'promhttp_*' | scrapes | API |
`

// write returns the document. Its constant parts have quotes in place of backticks.
func write(metrics []metric, alerts map[string][]string) (string, error) {
	var out strings.Builder
	out.WriteString(intro)
	for i, title := range []string{"The agent", "The control-plane API"} {
		fmt.Fprintf(&out, "\n## %s\n\n| metric | type | labels | meaning | alerts |\n|---|---|---|---|---|\n", title)
		for _, m := range metrics {
			if strings.HasPrefix(m.name, programs[0]) == (i == 0) {
				fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s |\n", m.name, m.kind, quoted(m.labels), m.help, strings.Join(alerts[m.name], ", "))
			}
		}
	}
	if err := checkLabels(metrics); err != nil {
		return "", err
	}
	out.WriteString(strings.ReplaceAll(labelRows+libraries, "'", "`"))
	return out.String(), nil
}

// checkLabels returns an error if a label has no row, or a row no label.
func checkLabels(metrics []metric) error {
	unused := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| '(\w+)'`).FindAllStringSubmatch(labelRows, -1) {
		unused[row[1]] = true
	}
	bounded := maps.Clone(unused)
	for _, m := range metrics {
		for _, label := range m.labels {
			if !bounded[label] {
				return fmt.Errorf("label %q of %s has no bound: add a row to the document, or remove the label", label, m.name)
			}
			delete(unused, label)
		}
	}
	if len(unused) > 0 {
		return fmt.Errorf("no metric has the labels %v: remove their rows from the document", slices.Sorted(maps.Keys(unused)))
	}
	return nil
}

// quoted returns labels as code.
func quoted(labels []string) string {
	var all []string
	for _, label := range labels {
		all = append(all, "`"+label+"`")
	}
	return strings.Join(all, ", ")
}
