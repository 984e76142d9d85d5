package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// Sort orders of workloads.
const (
	SortWorst   = "worst"   // worst status first, then newest; unknown times last
	SortName    = "name"    // by name
	SortCluster = "cluster" // by the cluster's name, then by name; workloads without a cluster last
	SortSince   = "since"   // latest status change first; unknown times last
)

var (
	sorts = []string{SortWorst, SortName, SortCluster, SortSince}
	types = []string{threeport.TypeWorkloadInstance, threeport.TypeHelmWorkloadInstance}
)

// WorkloadQuery selects and sorts workloads. The zero value selects all, worst first.
type WorkloadQuery struct {
	// Statuses and Types restrict the selection; empty means all.
	Statuses, Types []string
	// Cluster is the UID of a cluster; empty for all.
	Cluster string
	// Text must occur in the name, the reason or the beginning of the cause, or in the cluster's name: see maxSearched. ASCII
	// letters match in either case.
	Text string
	// Sort is worst, name, cluster or since; empty means worst.
	Sort string
	// Cursor is the Next of the previous page; empty for the first page.
	Cursor string
	// Size is the page size, up to 1,000; 0 means 100.
	Size int
}

// Validate returns a [FieldError] for the first invalid parameter.
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

// validateFilter validates the fields that select workloads, for lists, counts and watches.
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
	return checkSearch(q.Text)
}

// sort is Sort with its default.
func (q WorkloadQuery) sort() string {
	if q.Sort == "" {
		return SortWorst
	}
	return q.Sort
}

// workloadRow is a row of workloads with its sort keys.
type workloadRow struct {
	threeport.Workload
	rank                int
	nameKey, clusterKey string
	deleted             bool
}

// maxListedText limits a text of a row in lists and watches, in characters. Each watch has a copy of a row in its answer.
const maxListedText = 4096

// workloadColumns are the columns of a row. The texts that agents set have at most length characters. The name and the reported
// status may be longer than any limit: earlier versions had none for v0.
func workloadColumns(length int) string {
	return "w.type, w.id, " + boundedText("w.name") + ", w.clusteruid, w.status, " + cutText("w.said", length) + ", w.reason, " +
		cutText("w.cause", length) + ", w.since, w.causesince, w.saidat, w.silent, " +
		"w.pending, w.rejected, w.dropped, w.changedat, w.deletedat, w.rank, w.namekey, c.name, c.namekey, c.heardat, c.delayseconds, " +
		"w.treeversion, w.listed, w.listedhealthy, w.pods, w.podshealthy, w.filtered, w.namespaces"
}

func scanWorkload(scan scanner) (*workloadRow, error) {
	var (
		row                             workloadRow
		clusterUID, cluster, clusterKey sql.NullString
		deletedAt, heardAt              sql.NullInt64
		since, causeSince, saidAt       int64
		id, changed                     int64
		delay                           sql.NullFloat64
		treeVersion                     int64
		counts                          treeCounts
	)
	err := scan(&row.Type, &id, &row.Name, &clusterUID, &row.Status, &row.Said, &row.Reason, &row.Cause, &since, &causeSince, &saidAt, &row.Silent,
		&row.Pending, &row.Rejected, &row.Dropped, &changed, &deletedAt, &row.rank, &row.nameKey, &cluster, &clusterKey, &heardAt, &delay,
		&treeVersion, &counts.listed.Total, &counts.listed.Healthy, &counts.pods.Total, &counts.pods.Healthy, &row.Filtered, &counts.namespaces)
	if err != nil {
		return nil, err
	}
	if treeVersion > 0 {
		row.Resources, row.Pods, row.Namespaces = &counts.listed, &counts.pods, counts.namespaceList()
	}
	row.ID, row.Changed = threeport.ID(id), threeport.ID(changed)
	row.ClusterUID, row.ClusterName, row.clusterKey = clusterUID.String, cluster.String, clusterKey.String
	row.Since, row.CauseSince, row.SaidAt = optionalTime(nonZeroTime(since)), optionalTime(nonZeroTime(causeSince)), optionalTime(nonZeroTime(saidAt))
	row.HeardAt, row.DelaySeconds = optionalTime(heardAt), delay.Float64
	row.deleted = deletedAt.Valid
	return &row, nil
}

// fieldBytes is about what a workload has besides its texts as JSON: the names of the fields, and the values with small limits.
const fieldBytes = 512

// workloadBytes is about the size of a workload in an answer.
func workloadBytes(row *workloadRow) int {
	return fieldBytes + jsonBytes(row.Name, row.Said, row.Reason, row.Cause)
}

// Workloads returns a page of workloads, with texts cut to maxListedText. A page ends after maxPageBytes, also with fewer
// than q.Size workloads. The error is that of Validate for an invalid query, or [ErrSearchTimeout].
func (s *Store) Workloads(ctx context.Context, q WorkloadQuery) (list threeport.List[threeport.Workload], err error) {
	if q.Text == "" {
		return s.listWorkloads(ctx, q)
	}
	err = s.search(ctx, func(ctx context.Context) error {
		list, err = s.listWorkloads(ctx, q)
		return err
	})
	return list, err
}

// listWorkloads implements Workloads.
func (s *Store) listWorkloads(ctx context.Context, q WorkloadQuery) (threeport.List[threeport.Workload], error) {
	list := threeport.List[threeport.Workload]{Items: []threeport.Workload{}}
	if err := q.Validate(); err != nil {
		return list, err
	}
	where, err := s.filter(ctx, q)
	if err != nil {
		return list, err
	}
	size, _ := pageSize(q.Size) // validated above
	place, _ := q.position()    // validated above
	rows, more, err := s.workloadPage(ctx, q, where, place, size+1)
	if err != nil {
		return list, fmt.Errorf("list workloads: %w", err)
	}
	if len(rows) > size {
		rows, more = rows[:size], true
	}
	list.Total = int64(len(rows))
	if place != nil || more {
		if list.Total, err = s.total(ctx, where); err != nil {
			return list, fmt.Errorf("count workloads: %w", err)
		}
	}
	if more {
		if list.Next, err = encodeCursor(q.positionOf(rows[len(rows)-1])); err != nil {
			return list, err
		}
	}
	for _, row := range rows {
		list.Items = append(list.Items, row.Workload)
	}
	return list, nil
}

// workloadPage returns up to limit rows after a position, and whether it ended at maxPageBytes. Sorted by cluster, the
// workloads without a cluster are a second list after the others.
func (s *Store) workloadPage(
	ctx context.Context, q WorkloadQuery, where whereClause, place *workloadPosition, limit int,
) (rows []*workloadRow, full bool, err error) {
	if q.sort() != SortCluster {
		return s.sortedWorkloads(ctx, orders[q.sort()], where, place, limit)
	}
	if place == nil || place.Cluster != "" {
		if rows, full, err = s.sortedWorkloads(ctx, orders[SortCluster], where, place, limit); err != nil || full || len(rows) == limit {
			return rows, full, err
		}
		place = nil
	} else {
		place.Sort = SortName
	}
	where.add("w.clusteruid IS NULL")
	lone, full, err := s.sortedWorkloads(ctx, orders[SortName], where, place, limit-len(rows))
	return append(rows, lone...), full, err
}

func (s *Store) sortedWorkloads(
	ctx context.Context, o order, where whereClause, place *workloadPosition, limit int,
) (rows []*workloadRow, full bool, err error) {
	query, args := o.page(where, place, limit)
	return collectPage(ctx, s.read, query, args, scanWorkload, workloadBytes)
}

// page selects up to limit rows after a position.
func (o order) page(where whereClause, place *workloadPosition, limit int) (query string, args []any) {
	where = where.clone()
	if place != nil {
		o.addAfter(place, &where)
	}
	return "SELECT " + workloadColumns(maxListedText) + " FROM " + o.from + " WHERE " + where.String() +
		" ORDER BY " + o.orderBy() + " LIMIT ?", append(where.args, limit)
}

// Counts returns the number of workloads by status, including those with none. It ignores the query's statuses, page
// and sort. The error is that of Validate for an invalid filter.
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

// countsQuery counts workloads by rank. Totals use it as well: grouped by rank, both databases read only an index.
func countsQuery(where whereClause) string {
	return "SELECT w.rank, COUNT(*) FROM workloads w WHERE " + where.String() + " GROUP BY w.rank"
}

func (s *Store) countRanks(ctx context.Context, where whereClause) (map[int]int64, error) {
	counts := make(map[int]int64)
	_, err := collect(ctx, s.read, countsQuery(where), where.args, func(scan scanner) (rank int, err error) {
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
