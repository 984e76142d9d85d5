package store

import "slices"

// statuses are those of a workload, the worst first. A workload's rank is the index of its own, so that the board can be
// in their order.
var statuses = []string{"Down", "Error", "Unhealthy", unknown, "Reconciling", "Healthy"}

const unknown = "Unknown"

// shown is the status that stands for what was said of a workload, and its rank. A word that is none of the statuses, as
// v0 lets any be written, is Unknown.
func shown(said string) (status string, rank int) {
	if rank = slices.Index(statuses, said); rank >= 0 {
		return said, rank
	}
	return unknown, slices.Index(statuses, unknown)
}
