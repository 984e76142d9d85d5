package store

import (
	"context"
	"fmt"
)

// Counts returns how many workloads there are of each status, whatever statuses, page and sort are asked for. A status
// that none has is 0. The query's errors are those of Validate.
func (s *Store) Counts(ctx context.Context, q BoardQuery) (map[string]int64, error) {
	q.Statuses = nil
	if err := q.validateFilter(); err != nil {
		return nil, err
	}
	where, err := s.filter(ctx, q)
	if err != nil {
		return nil, err
	}
	ranks, err := s.countRanks(ctx, where)
	if err != nil {
		return nil, fmt.Errorf("count workloads by status: %w", err)
	}
	counts := make(map[string]int64, len(statuses))
	for rank, status := range statuses {
		counts[status] = ranks[rank]
	}
	return counts, nil
}

// countsQuery counts the workloads of each rank. It is for their total too: grouped, either database reads an index that
// has all it needs, and not the rows.
func countsQuery(where conditions) string {
	return "SELECT w.rank, COUNT(*) FROM workloads w WHERE " + where.String() + " GROUP BY w.rank"
}

func (s *Store) countRanks(ctx context.Context, where conditions) (map[int]int64, error) {
	counts := make(map[int]int64)
	_, err := collect(ctx, s, countsQuery(where), where.args, func(scan scanner) (rank int, err error) {
		var n int64
		err = scan(&rank, &n)
		counts[rank] = n
		return rank, err
	})
	return counts, err
}

// total counts the workloads on all pages.
func (s *Store) total(ctx context.Context, where conditions) (total int64, err error) {
	counts, err := s.countRanks(ctx, where)
	for _, n := range counts {
		total += n
	}
	return total, err
}
