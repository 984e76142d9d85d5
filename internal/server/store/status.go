package store

import (
	"slices"
	"strconv"
	"strings"
)

// statuses are those of a workload, the worst first. A workload's rank is the index of its own, so that the board can be
// in their order.
var statuses = []string{"Down", "Error", "Unhealthy", statusUnknown, "Reconciling", "Healthy"}

const statusUnknown = "Unknown"

// shown is the status that stands for what was said of a workload, and its rank. A word that is none of the statuses, as
// v0 lets any be written, is Unknown.
func displayedStatus(said string) (status string, rank int) {
	if rank = slices.Index(statuses, said); rank >= 0 {
		return said, rank
	}
	return statusUnknown, slices.Index(statuses, statusUnknown)
}

// saidIsShown assigns status and rank as [shown] does.
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
