package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// table returns the rows of the workloads as a table with lines up to width.
func table(workloads []deployed, found content, width int) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "WORKLOAD\tTYPE\tSTATUS\tRESOURCES\tEVENTS\tLATEST EVENT")
	for _, wl := range workloads {
		rows := found.eventsOf(wl)
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n",
			wl.name, strings.TrimSuffix(string(wl.typ), "Instance"), cmp.Or(found.statuses[wl.name], "-"),
			resourceCell(wl, found), eventCell(rows), latest(rows))
	}
	_ = w.Flush() // to a strings.Builder
	var out strings.Builder
	for line := range strings.Lines(text.String()) {
		out.WriteString(shorten(strings.TrimRight(line, " \n"), width) + "\n")
	}
	return out.String()
}

// resourceCell counts the reported resources and their last operations: "5/5 ADDED 3, MODIFIED 2".
func resourceCell(w deployed, found content) string {
	if w.helm() {
		return "-" // Helm workloads have no resource rows
	}
	operations := map[string]int{}
	reported := 0
	for _, res := range w.Resources {
		row := found.Resources[res.ThreeportID]
		if operation := value(row.LastOperation); operation != "" {
			operations[operation]++
			reported++
		}
	}
	var counts []string
	for _, operation := range []string{threeport.OperationAdded, threeport.OperationModified, threeport.OperationDeleted} {
		if n := operations[operation]; n > 0 {
			counts = append(counts, fmt.Sprintf("%s %d", operation, n))
		}
	}
	return strings.TrimSpace(fmt.Sprintf("%d/%d %s", reported, len(w.Resources), strings.Join(counts, ", ")))
}

// eventCell counts Events, normal ones and warnings: "12/3".
func eventCell(rows []threeport.WorkloadEvent) string {
	warnings := 0
	for _, row := range rows {
		if value(row.Type) == "Warning" {
			warnings++
		}
	}
	return fmt.Sprintf("%d/%d", len(rows)-warnings, warnings)
}

// latest returns the latest Event. Kubelets have a resolution of one second; within a second the last reported one counts.
func latest(rows []threeport.WorkloadEvent) string {
	if len(rows) == 0 {
		return "-"
	}
	last := slices.MaxFunc(rows, func(a, b threeport.WorkloadEvent) int {
		return cmp.Or(
			value(a.Timestamp).Truncate(time.Second).Compare(value(b.Timestamp).Truncate(time.Second)),
			value(a.UpdatedAt).Compare(value(b.UpdatedAt)))
	})
	return strings.Join(strings.Fields(value(last.Reason)+": "+value(last.Message)), " ")
}

// shorten truncates a text to width.
func shorten(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(0, width-1)]) + "…"
}
