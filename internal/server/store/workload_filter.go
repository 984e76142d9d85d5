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
	found, args := s.dialect.searchWorkloads(q.Text)
	switch {
	case err != nil:
		return where, fmt.Errorf("find clusters by text: %w", err)
	case len(clusters) == 0:
		where.add(found, args...)
	case len(clusters) <= maxInlineClusters:
		where.add("("+found+" OR w.clusteruid IN "+placeholders(len(clusters))+")", append(args, clusters...)...)
	default:
		where.add("("+found+` OR w.clusteruid IN (SELECT uid FROM clusters WHERE namekey LIKE ? ESCAPE '\'))`, append(args, pattern)...)
	}
	return where, nil
}

// searchWorkloads is the condition that the first maxSearched characters of name, reason and cause have a text. In PostgreSQL
// LIKE selects by the index of trigrams, which looks at the whole text.
func (d dialect) searchWorkloads(text string) (condition string, args []any) {
	start, lower := fmt.Sprintf("substr(w.search, 1, %d)", maxSearched), lowerASCII(text)
	if d == sqliteDialect {
		return "instr(" + start + ", ?) > 0", []any{lower}
	}
	return `(w.search LIKE ? ESCAPE '\' AND strpos(` + start + ", ?) > 0)", []any{likePattern(text), lower}
}

// maxInlineClusters limits the UIDs of clusters in a query: with a list of UIDs the database can combine the indexes
// for UID and text. With more clusters a scan of all workloads is not slower.
const maxInlineClusters = 20

// clustersByName returns the UIDs of clusters whose names match, up to maxInlineClusters + 1.
func (s *Store) clustersByName(ctx context.Context, pattern string) ([]any, error) {
	return collect(ctx, s.read, `SELECT uid FROM clusters WHERE namekey LIKE ? ESCAPE '\' LIMIT ?`,
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
	const separator = "\x1f" // of the column search; no text to search for has it
	searched, text := start(w.Name+separator+w.Reason+separator+w.Cause, maxSearched), lowerASCII(q.Text)
	return strings.Contains(lowerASCII(searched), text) || strings.Contains(lowerASCII(w.ClusterName), text)
}

// start returns the first n characters of a text.
func start(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}
