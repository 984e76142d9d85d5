package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// conditions are what follows WHERE: all have to hold.
type conditions struct {
	terms []string
	args  []any
}

func (c *conditions) add(term string, args ...any) {
	c.terms = append(c.terms, term)
	c.args = append(c.args, args...)
}

func (c conditions) String() string { return strings.Join(c.terms, " AND ") }

// marks is a list of n arguments, as IN has it.
func marks(n int) string { return "(?" + strings.Repeat(", ?", n-1) + ")" }

// filter selects the rows of the query from workloads w.
func (s *Store) filter(ctx context.Context, q BoardQuery) (conditions, error) {
	var where conditions
	where.add("w.deletedat IS NULL")
	if ranks := q.ranks(); len(ranks) > 0 {
		where.add("w.rank IN "+marks(len(ranks)), ranks...)
	}
	if kinds := q.kinds(); len(kinds) == 1 { // there are two
		where.add("w.type = ?", kinds[0])
	}
	if q.Cluster != "" {
		where.add("w.clusteruid = ?", q.Cluster)
	}
	if q.Text == "" {
		return where, nil
	}
	pattern := likePattern(q.Text)
	clusters, err := s.clustersLike(ctx, pattern)
	switch {
	case err != nil:
		return where, fmt.Errorf("find clusters by text: %w", err)
	case len(clusters) == 0:
		where.add(`w.search LIKE ? ESCAPE '\'`, pattern)
	case len(clusters) <= fewClusters:
		where.add(`(w.search LIKE ? ESCAPE '\' OR w.clusteruid IN `+marks(len(clusters))+")",
			append([]any{pattern}, clusters...)...)
	default:
		where.add(`(w.search LIKE ? ESCAPE '\' OR w.clusteruid IN (SELECT uid FROM clusters WHERE namekey LIKE ? ESCAPE '\'))`,
			pattern, pattern)
	}
	return where, nil
}

// fewClusters is up to how many clusters are asked for by their UIDs, which lets the database use an index for them
// beside that for the text. More of them are so many workloads that reading all is no slower.
const fewClusters = 20

// clustersLike finds the UIDs of clusters by their names, and of one too many if there are more than a few.
func (s *Store) clustersLike(ctx context.Context, pattern string) ([]any, error) {
	return collect(ctx, s, `SELECT uid FROM clusters WHERE namekey LIKE ? ESCAPE '\' LIMIT ?`,
		[]any{pattern, fewClusters + 1}, func(scan scanner) (any, error) {
			var uid string
			err := scan(&uid)
			return uid, err
		})
}

// ranks are those of the statuses, each once and in order, so that one filter is one statement.
func (q BoardQuery) ranks() []any {
	var ranks []any
	for rank, status := range statuses {
		if slices.Contains(q.Statuses, status) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// kinds are the types, each once.
func (q BoardQuery) kinds() []string {
	kinds := slices.Clone(q.Types)
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// matches tells whether a row is one of those that filter selects.
func (q BoardQuery) matches(w *threeport.Workload) bool {
	return q.concerns(w) &&
		(len(q.Statuses) == 0 || slices.Contains(q.Statuses, w.Status)) &&
		(q.Text == "" || q.finds(w))
}

// concerns tells whether a row is, or can have been, one of those that filter selects: its type never changes, and its
// cluster never once it is known.
func (q BoardQuery) concerns(w *threeport.Workload) bool {
	return (len(q.Types) == 0 || slices.Contains(q.Types, w.Type)) &&
		(q.Cluster == "" || q.Cluster == w.ClusterUID)
}

func (q BoardQuery) finds(w *threeport.Workload) bool {
	text := lower(q.Text)
	return slices.ContainsFunc([]string{w.Name, w.Reason, w.Cause, w.ClusterName}, func(of string) bool {
		return strings.Contains(lower(of), text)
	})
}
