package store

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// order is a sort order: the tables, and the columns that make a position unique. An index has the same columns, so
// that a page costs the same at any depth (keyset pagination).
type order struct {
	from       string
	columns    []string
	descending bool
	// outerColumns is the number of columns of the outer table of a join; 0 without a join. The database needs a
	// separate condition to begin there.
	outerColumns int
}

const workloadTables = "workloads w LEFT JOIN clusters c ON c.uid = w.clusteruid"

var orders = map[string]order{
	SortWorst: {from: workloadTables, columns: []string{"w.rank", "w.sincekey", "w.type", "w.id"}},
	SortName:  {from: workloadTables, columns: []string{"w.namekey", "w.type", "w.id"}},
	SortSince: {from: workloadTables, columns: []string{"w.since", "w.type", "w.id"}, descending: true},
	SortCluster: {
		from:         "clusters c JOIN workloads w ON w.clusteruid = c.uid",
		columns:      []string{"c.namekey", "c.uid", "w.namekey", "w.type", "w.id"},
		outerColumns: 2,
	},
}

// addAfter adds the condition for rows after a position.
func (o order) addAfter(place *workloadPosition, where *whereClause) {
	sign := ">"
	if o.descending {
		sign = "<"
	}
	values := place.values()
	if o.outerColumns > 0 {
		where.add(o.compare(o.outerColumns, sign+"="), values[:o.outerColumns]...)
	}
	where.add(o.compare(len(o.columns), sign), values...)
}

// compare compares the first n columns with as many arguments.
func (o order) compare(n int, sign string) string {
	return fmt.Sprintf("(%s) %s %s", strings.Join(o.columns[:n], ", "), sign, placeholders(n))
}

// orderBy is the ORDER BY expression.
func (o order) orderBy() string {
	if !o.descending {
		return strings.Join(o.columns, ", ")
	}
	return strings.Join(o.columns, " DESC, ") + " DESC"
}

// workloadPosition is the position of a row in the list, as a cursor contains it. The sort decides which fields are
// set.
type workloadPosition struct {
	Sort string       `json:"sort"`
	Rank int          `json:"rank,omitempty"`
	Time int64        `json:"time,omitempty"` // since, in microseconds; 0 if unknown
	Name string       `json:"name,omitempty"`
	Type string       `json:"type"`
	ID   threeport.ID `json:"id"`
	// Cluster is empty for workloads without a cluster, which come last.
	ClusterName string `json:"clusterName,omitempty"`
	Cluster     string `json:"cluster,omitempty"`
}

// position is where the page begins; nil for the first page.
func (q WorkloadQuery) position() (*workloadPosition, error) {
	if q.Cursor == "" {
		return nil, nil
	}
	place, err := decodeCursor[workloadPosition](q.Cursor)
	if err != nil {
		return nil, err
	}
	if place.Sort != q.sort() || place.Rank < 0 || place.Rank >= len(statuses) || !slices.Contains(types, place.Type) ||
		!storable(place.Name, place.ClusterName, place.Cluster) {
		return nil, ErrCursor
	}
	return &place, nil
}

// positionOf is the position of a row.
func (q WorkloadQuery) positionOf(row *workloadRow) workloadPosition {
	place := workloadPosition{Sort: q.sort(), Type: row.Type, ID: row.ID}
	switch place.Sort {
	case SortWorst:
		place.Rank, place.Time = row.rank, microsOrZero(row.Since)
	case SortName:
		place.Name = row.nameKey
	case SortSince:
		place.Time = microsOrZero(row.Since)
	case SortCluster:
		place.ClusterName, place.Cluster, place.Name = row.clusterKey, row.ClusterUID, row.nameKey
	}
	return place
}

func microsOrZero(t *time.Time) int64 {
	if t == nil {
		return 0
	}
	return t.UnixMicro()
}

// values are the values of the order's columns.
func (p workloadPosition) values() []any {
	row := []any{p.Type, int64(p.ID)}
	switch p.Sort {
	case SortWorst:
		return append([]any{p.Rank, -p.Time}, row...) // sincekey
	case SortSince:
		return append([]any{p.Time}, row...)
	case SortCluster:
		return append([]any{p.ClusterName, p.Cluster, p.Name}, row...)
	default:
		return append([]any{p.Name}, row...)
	}
}
