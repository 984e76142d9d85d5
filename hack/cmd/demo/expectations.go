package main

import (
	"fmt"
	"slices"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// check compares what the control-plane API says with what the demo expects beyond what is in the cluster: the
// workloads' statuses, and Events that tell their stories. It returns a sentence for each difference, which says of
// whom what was expected.
func check(workloads []deployed, said history) []string {
	var unmet []string
	for _, w := range workloads {
		if got := said.statuses[w.name]; got != w.status {
			unmet = append(unmet, fmt.Sprintf("%s: expected the agent to report the status %s, the API has %q", w.name, w.status, got))
		}
		if row := said.rowOf(w); row.Status != w.status || (row.Cause == "") != (w.status == healthy) {
			unmet = append(unmet, fmt.Sprintf("%s: expected the page to show that it is %s, and why if not %s; it shows %q with the cause %q",
				w.name, w.status, healthy, row.Status, row.Cause))
		}
		rows := said.eventsOf(w)
		for _, reason := range w.reasons {
			if !slices.ContainsFunc(rows, func(row threeport.WorkloadEvent) bool { return value(row.Reason) == reason }) {
				unmet = append(unmet, fmt.Sprintf("%s: expected the agent to report an Event with the reason %s, the API has none", w.name, reason))
			}
		}
	}
	return unmet
}
