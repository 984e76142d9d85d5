package store

import (
	"context"
	"database/sql"
	"fmt"
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
type WorkloadQuery struct {
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

// Validate says which parameter is wrong: its error is a [FieldError].
func (q WorkloadQuery) Validate() error {
	if err := q.validateFilter(); err != nil {
		return err
	}
	if err := checkOneOf("sort", q.Sort, sorts); err != nil {
		return err
	}
	if _, err := pageSize(q.Size); err != nil {
		return err
	}
	_, err := q.position()
	return err
}

// validateFilter looks at what selects workloads, which a list, the counts and a watch have in common.
func (q WorkloadQuery) validateFilter() error {
	for _, status := range q.Statuses {
		if !slices.Contains(statuses, status) {
			return &FieldError{"status", oneOf(statuses)}
		}
	}
	for _, kind := range q.Types {
		if !slices.Contains(types, kind) {
			return &FieldError{"type", oneOf(types)}
		}
	}
	if err := checkText("cluster", q.Cluster); err != nil {
		return err
	}
	return checkText("text", q.Text)
}

// sort is the one to use for the one that was given.
func (q WorkloadQuery) sort() string {
	if q.Sort == "" {
		return SortWorst
	}
	return q.Sort
}

// boardRow is a row of the board, with what it is sorted by.
type workloadRow struct {
	threeport.Workload
	rank                int
	nameKey, clusterKey string
	deleted             bool
}

const workloadColumns = "w.type, w.id, w.name, w.clusteruid, w.status, w.said, w.reason, w.cause, w.since, w.saidat, w.silent, " +
	"w.pending, w.rejected, w.dropped, w.changedat, w.deletedat, w.rank, w.namekey, c.name, c.namekey, c.heardat, c.delayseconds"

func scanWorkload(scan scanner) (*workloadRow, error) {
	var (
		row                             workloadRow
		clusterUID, cluster, clusterKey sql.NullString
		deletedAt, heardAt              sql.NullInt64
		since, saidAt, id, changed      int64
		delay                           sql.NullFloat64
	)
	err := scan(&row.Type, &id, &row.Name, &clusterUID, &row.Status, &row.Said, &row.Reason, &row.Cause, &since, &saidAt, &row.Silent,
		&row.Pending, &row.Rejected, &row.Dropped, &changed, &deletedAt, &row.rank, &row.nameKey, &cluster, &clusterKey, &heardAt, &delay)
	if err != nil {
		return nil, err
	}
	row.ID, row.Changed = threeport.ID(id), threeport.ID(changed)
	row.ClusterUID, row.ClusterName, row.clusterKey = clusterUID.String, cluster.String, clusterKey.String
	row.Since, row.SaidAt = optionalTime(nonZeroTime(since)), optionalTime(nonZeroTime(saidAt))
	row.HeardAt, row.DelaySeconds = optionalTime(heardAt), delay.Float64
	row.deleted = deletedAt.Valid
	return &row, nil
}

// Workloads returns a page of the board. The query's errors are those of Validate.
func (s *Store) Workloads(ctx context.Context, q WorkloadQuery) (threeport.List[threeport.Workload], error) {
	list := threeport.List[threeport.Workload]{Items: []threeport.Workload{}}
	if err := q.Validate(); err != nil {
		return list, err
	}
	where, err := s.filter(ctx, q)
	if err != nil {
		return list, err
	}
	size, _ := pageSize(q.Size) // valid
	place, _ := q.position()    // valid
	rows, err := s.workloadPage(ctx, q, where, place, size+1)
	if err != nil {
		return list, fmt.Errorf("list workloads: %w", err)
	}
	list.Total = int64(len(rows))
	if place != nil || len(rows) > size {
		if list.Total, err = s.total(ctx, where); err != nil {
			return list, fmt.Errorf("count workloads: %w", err)
		}
	}
	if len(rows) > size {
		rows = rows[:size]
		if list.Next, err = encodeCursor(q.positionOf(rows[size-1])); err != nil {
			return list, err
		}
	}
	for _, row := range rows {
		list.Items = append(list.Items, row.Workload)
	}
	return list, nil
}

// boardRows returns up to limit rows behind a place. By cluster, those of no cluster are a list of their own, behind that
// of the others.
func (s *Store) workloadPage(ctx context.Context, q WorkloadQuery, where whereClause, place *workloadPosition, limit int) ([]*workloadRow, error) {
	if q.sort() != SortCluster {
		return s.sortedWorkloads(ctx, orders[q.sort()], where, place, limit)
	}
	var rows []*workloadRow
	if place == nil || place.Cluster != "" {
		var err error
		if rows, err = s.sortedWorkloads(ctx, orders[SortCluster], where, place, limit); err != nil || len(rows) == limit {
			return rows, err
		}
		place = nil
	} else {
		place.Sort = SortName
	}
	where.add("w.clusteruid IS NULL")
	lone, err := s.sortedWorkloads(ctx, orders[SortName], where, place, limit-len(rows))
	return append(rows, lone...), err
}

func (s *Store) sortedWorkloads(ctx context.Context, o order, where whereClause, place *workloadPosition, limit int) ([]*workloadRow, error) {
	query, args := o.page(where, place, limit)
	return collect(ctx, s, query, args, scanWorkload)
}

// page is the query for up to limit rows behind a place.
func (o order) page(where whereClause, place *workloadPosition, limit int) (query string, args []any) {
	where = where.clone()
	if place != nil {
		o.addAfter(place, &where)
	}
	return "SELECT " + workloadColumns + " FROM " + o.from + " WHERE " + where.String() +
		" ORDER BY " + o.orderBy() + " LIMIT ?", append(where.args, limit)
}

// Counts returns how many workloads there are of each status, whatever statuses, page and sort are asked for. A status
// that none has is 0. The query's errors are those of Validate.
func (s *Store) Counts(ctx context.Context, q WorkloadQuery) (map[string]int64, error) {
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
func countsQuery(where whereClause) string {
	return "SELECT w.rank, COUNT(*) FROM workloads w WHERE " + where.String() + " GROUP BY w.rank"
}

func (s *Store) countRanks(ctx context.Context, where whereClause) (map[int]int64, error) {
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
func (s *Store) total(ctx context.Context, where whereClause) (total int64, err error) {
	counts, err := s.countRanks(ctx, where)
	for _, n := range counts {
		total += n
	}
	return total, err
}
