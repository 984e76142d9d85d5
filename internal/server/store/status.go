package store

import (
	"slices"
	"strconv"
	"strings"
)

// statuses are the statuses of a workload, worst first. The index of a status is its rank, by which lists are sorted.
var statuses = []string{"Down", "Error", "Unhealthy", statusUnknown, "Reconciling", "Healthy"}

const statusUnknown = "Unknown"

// displayedStatus returns the status that is shown for a reported one, and its rank. Any other text, which v0 allows,
// becomes Unknown.
func displayedStatus(said string) (status string, rank int) {
	if rank = slices.Index(statuses, said); rank >= 0 {
		return said, rank
	}
	return statusUnknown, slices.Index(statuses, statusUnknown)
}

// restoreReportedStatus assigns status and rank from the column said, as [displayedStatus] does.
var restoreReportedStatus = func() string {
	words, ranks := make([]string, len(statuses)), make([]string, len(statuses))
	var unknownRank string
	for rank, word := range statuses {
		words[rank] = "'" + word + "'"
		ranks[rank] = "WHEN " + words[rank] + " THEN " + strconv.Itoa(rank)
	}
	_, rank := displayedStatus(statusUnknown)
	unknownRank = strconv.Itoa(rank)
	return "status = CASE WHEN said IN (" + strings.Join(words, ", ") + ") THEN said ELSE '" + statusUnknown + "' END, " +
		"rank = CASE said " + strings.Join(ranks, " ") + " ELSE " + unknownRank + " END"
}()
