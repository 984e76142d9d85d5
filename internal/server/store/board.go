package store

import (
	"slices"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// The sorts of the board.
const (
	SortWorst   = "worst"   // worst status first, of these the longest broken, not known since when last
	SortName    = "name"    // by name
	SortCluster = "cluster" // by the cluster's name, then by name; those of no cluster last
	SortSince   = "since"   // latest change of status first, not known when last
)

var (
	sorts = []string{SortWorst, SortName, SortCluster, SortSince}
	types = []string{threeport.TypeWorkloadInstance, threeport.TypeHelmWorkloadInstance}
)

// BoardQuery says which workloads are asked for, in which order. The zero value asks for all, worst first.
type BoardQuery struct {
	// Statuses and Types are those to be shown; none stands for all.
	Statuses, Types []string
	// Cluster is the UID of one.
	Cluster string
	// Text is to be in the name, reason or cause, or in the cluster's name. Letters of ASCII match in either case.
	Text string
	// Sort is worst, name, cluster or since; empty stands for worst.
	Sort string
	// Cursor is where the page begins, as the one before it said; empty for the first.
	Cursor string
	// Size is how many workloads a page has, up to 1,000; 0 stands for 100.
	Size int
}

// Validate says which parameter is wrong: its error is a [ParameterError].
func (q BoardQuery) Validate() error {
	if err := q.validateFilter(); err != nil {
		return err
	}
	if err := checkWord("sort", q.Sort, sorts); err != nil {
		return err
	}
	if _, err := pageSize(q.Size); err != nil {
		return err
	}
	_, err := q.place()
	return err
}

// validateFilter looks at what selects workloads, which a list, the counts and a watch have in common.
func (q BoardQuery) validateFilter() error {
	for _, status := range q.Statuses {
		if !slices.Contains(statuses, status) {
			return &ParameterError{"status", joined(statuses)}
		}
	}
	for _, kind := range q.Types {
		if !slices.Contains(types, kind) {
			return &ParameterError{"type", joined(types)}
		}
	}
	if err := checkText("cluster", q.Cluster); err != nil {
		return err
	}
	return checkText("text", q.Text)
}

// sort is the one to use for the one that was given.
func (q BoardQuery) sort() string {
	if q.Sort == "" {
		return SortWorst
	}
	return q.Sort
}
