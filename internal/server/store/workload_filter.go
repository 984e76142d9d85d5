package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// filter is the WHERE clause of the query; w is the table workloads.
func (s *Store) filter(ctx context.Context, q WorkloadQuery) (whereClause, error) {
	var where whereClause
	where.add("w.deletedat IS NULL")
	if ranks := q.ranks(); len(ranks) > 0 {
		where.add("w.rank IN "+placeholders(len(ranks)), ranks...)
	}
	if kinds := q.kinds(); len(kinds) == 1 { // there are two types: both mean no filter
		where.add("w.type = ?", kinds[0])
	}
	if q.Cluster != "" {
		where.add("w.clusteruid = ?", q.Cluster)
	}
	if q.Text == "" {
		return where, nil
	}
	pattern := likePattern(q.Text)
	clusters, err := s.clustersByName(ctx, pattern)
	switch {
	case err != nil:
		return where, fmt.Errorf("find clusters by text: %w", err)
	case len(clusters) == 0:
		where.add(`w.search LIKE ? ESCAPE '\'`, pattern)
	case len(clusters) <= maxInlineClusters:
		where.add(`(w.search LIKE ? ESCAPE '\' OR w.clusteruid IN `+placeholders(len(clusters))+")",
			append([]any{pattern}, clusters...)...)
	default:
		where.add(`(w.search LIKE ? ESCAPE '\' OR w.clusteruid IN (SELECT uid FROM clusters WHERE namekey LIKE ? ESCAPE '\'))`,
			pattern, pattern)
	}
	return where, nil
}

// maxInlineClusters limits the UIDs of clusters in a query: with a list of UIDs the database can combine the indexes
// for UID and text. With more clusters a scan of all workloads is not slower.
const maxInlineClusters = 20

// clustersByName returns the UIDs of clusters whose names match, up to maxInlineClusters + 1.
func (s *Store) clustersByName(ctx context.Context, pattern string) ([]any, error) {
	return collect(ctx, s, `SELECT uid FROM clusters WHERE namekey LIKE ? ESCAPE '\' LIMIT ?`,
		[]any{pattern, maxInlineClusters + 1}, func(scan scanner) (any, error) {
			var uid string
			err := scan(&uid)
			return uid, err
		})
}

// ranks are the ranks of the statuses, sorted and without duplicates, so that equal filters are equal statements.
func (q WorkloadQuery) ranks() []any {
	var ranks []any
	for rank, status := range statuses {
		if slices.Contains(q.Statuses, status) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// kinds are the types without duplicates.
func (q WorkloadQuery) kinds() []string {
	kinds := slices.Clone(q.Types)
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// matches reports whether filter selects the row.
func (q WorkloadQuery) matches(w *threeport.Workload) bool {
	return q.matchesScope(w) &&
		(len(q.Statuses) == 0 || slices.Contains(q.Statuses, w.Status)) &&
		(q.Text == "" || q.matchesText(w))
}

// matchesScope reports whether filter can select any version of the row: its type never changes, and its cluster never
// once it is set.
func (q WorkloadQuery) matchesScope(w *threeport.Workload) bool {
	return (len(q.Types) == 0 || slices.Contains(q.Types, w.Type)) &&
		(q.Cluster == "" || q.Cluster == w.ClusterUID)
}

func (q WorkloadQuery) matchesText(w *threeport.Workload) bool {
	text := lowerASCII(q.Text)
	return slices.ContainsFunc([]string{w.Name, w.Reason, w.Cause, w.ClusterName}, func(of string) bool {
		return strings.Contains(lowerASCII(of), text)
	})
}
