package main

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/threeport/threeport-agent/internal/kubectl/wrap"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// legend explains the columns of the table.
const legend = "RESOURCES: reported of listed ones, and their last operations. EVENTS: Normal/Warning. CAUSE: why a workload is not Healthy.\n"

// causeIndent is before a cause below its row, which has up to causeLines lines.
const (
	causeIndent = "  "
	causeLines  = 3
)

// table returns the rows of the workloads as a table with lines up to width. A cause that does not fit is below its row.
func table(workloads []deployed, found content, width int) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	causes := []string{"CAUSE"}
	_, _ = fmt.Fprintln(w, "WORKLOAD\tTYPE\tSTATUS\tRESOURCES\tEVENTS\t")
	for _, wl := range workloads {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t\n",
			wl.name, strings.TrimSuffix(string(wl.typ), "Instance"), cmp.Or(found.statuses[wl.name], "-"),
			resourceCell(wl, found), eventCell(found.eventsOf(wl)))
		causes = append(causes, cause(found.rowOf(wl)))
	}
	_ = w.Flush() // to a strings.Builder
	var out strings.Builder
	for i, row := range strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n") {
		var below []string
		if utf8.RuneCountInString(row+causes[i]) > width {
			below = wrap.AtMost(causes[i], width-len(causeIndent), causeLines)
		} else {
			row += causes[i]
		}
		out.WriteString(wrap.Shorten(strings.TrimRight(row, " "), width) + "\n")
		for _, line := range below {
			out.WriteString(causeIndent + line + "\n")
		}
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

// cause returns why a workload is not Healthy; empty if it is.
func cause(row threeport.Workload) string {
	return strings.Join(strings.Fields(cmp.Or(row.Cause, row.Reason)), " ")
}
