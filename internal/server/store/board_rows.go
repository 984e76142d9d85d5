package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// boardRow is a row of the board, with what it is sorted by.
type boardRow struct {
	threeport.Workload
	rank                int
	nameKey, clusterKey string
	deleted             bool
}

const boardColumns = "w.type, w.id, w.name, w.clusteruid, w.status, w.said, w.reason, w.cause, w.since, w.saidat, w.silent, " +
	"w.pending, w.rejected, w.dropped, w.changedat, w.deletedat, w.rank, w.namekey, c.name, c.namekey, c.heardat, c.delayseconds"

func scanBoardRow(scan scanner) (*boardRow, error) {
	var (
		row                             boardRow
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
	row.Since, row.SaidAt = optionalTime(knownTime(since)), optionalTime(knownTime(saidAt))
	row.HeardAt, row.DelaySeconds = optionalTime(heardAt), delay.Float64
	row.deleted = deletedAt.Valid
	return &row, nil
}

// Workloads returns a page of the board. The query's errors are those of Validate.
func (s *Store) Workloads(ctx context.Context, q BoardQuery) (threeport.List[threeport.Workload], error) {
	list := threeport.List[threeport.Workload]{Items: []threeport.Workload{}}
	if err := q.Validate(); err != nil {
		return list, err
	}
	where, err := s.filter(ctx, q)
	if err != nil {
		return list, err
	}
	size, _ := pageSize(q.Size) // valid
	place, _ := q.place()       // valid
	rows, err := s.boardRows(ctx, q, where, place, size+1)
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
		if list.Next, err = encodeCursor(q.placeOf(rows[size-1])); err != nil {
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
func (s *Store) boardRows(ctx context.Context, q BoardQuery, where conditions, place *boardPlace, limit int) ([]*boardRow, error) {
	if q.sort() != SortCluster {
		return s.sortedRows(ctx, orders[q.sort()], where, place, limit)
	}
	var rows []*boardRow
	if place == nil || place.Cluster != "" {
		var err error
		if rows, err = s.sortedRows(ctx, orders[SortCluster], where, place, limit); err != nil || len(rows) == limit {
			return rows, err
		}
		place = nil
	} else {
		place.Sort = SortName
	}
	where.add("w.clusteruid IS NULL")
	lone, err := s.sortedRows(ctx, orders[SortName], where, place, limit-len(rows))
	return append(rows, lone...), err
}

func (s *Store) sortedRows(ctx context.Context, o order, where conditions, place *boardPlace, limit int) ([]*boardRow, error) {
	query, args := o.page(where, place, limit)
	return collect(ctx, s, query, args, scanBoardRow)
}

// page is the query for up to limit rows behind a place.
func (o order) page(where conditions, place *boardPlace, limit int) (query string, args []any) {
	// The conditions are shared: no append may write into their space.
	where = conditions{terms: slices.Clip(where.terms), args: slices.Clip(where.args)}
	if place != nil {
		o.behind(place, &where)
	}
	return "SELECT " + boardColumns + " FROM " + o.from + " WHERE " + where.String() +
		" ORDER BY " + o.by() + " LIMIT ?", append(where.args, limit)
}
