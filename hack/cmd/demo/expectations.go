package main

import (
	"fmt"
	"slices"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// check compares the control-plane API with the demo's expectations, which go beyond those of the oracle: the statuses of
// workloads, and certain Events. It returns a sentence for each difference.
func check(workloads []deployed, found content) []string {
	var differences []string
	for _, w := range workloads {
		if got := found.statuses[w.name]; got != w.status {
			differences = append(differences, fmt.Sprintf("%s: expected the agent to report the status %s, the API has %q", w.name, w.status, got))
		}
		if row := found.rowOf(w); row.Status != w.status || (row.Cause == "") != (w.status == healthy) {
			differences = append(differences, fmt.Sprintf("%s: expected the page to show that it is %s, and why if not %s; it shows %q with the cause %q",
				w.name, w.status, healthy, row.Status, row.Cause))
		}
		rows := found.eventsOf(w)
		for _, reason := range w.reasons {
			if !slices.ContainsFunc(rows, func(row threeport.WorkloadEvent) bool { return value(row.Reason) == reason }) {
				differences = append(differences, fmt.Sprintf("%s: expected the agent to report an Event with the reason %s, the API has none", w.name, reason))
			}
		}
	}
	return differences
}
