package store

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// Selection selects the rows of a v0 list.
type Selection struct {
	Page, Size int // pages start at 1; a negative size means all rows
	Filters    []Filter
	// Readable restricts the rows to those that an agent may read; nil for all rows. Only Events may have it.
	Readable *Readable
}

// Readable describes the Events that an agent may read: they have an instance or a resource, and all of these belong to its cluster.
type Readable struct {
	Cluster string
	// Unassigned includes the Events of instances without a cluster.
	Unassigned bool
}

// restrict adds the condition of a readable Event.
func (of *Readable) restrict(where *whereClause) {
	belongs := "w.clusteruid = ?"
	if of.Unassigned {
		belongs = "(" + belongs + " OR w.clusteruid IS NULL AND w.deletedat IS NULL)"
	}
	where.add(eventOwnerSQL("") + " <> 0")
	for _, reference := range []struct{ column, kind, instance string }{
		{"workloadinstanceid", threeport.TypeWorkloadInstance, "workloadinstanceid"},
		{"helmworkloadinstanceid", threeport.TypeHelmWorkloadInstance, "helmworkloadinstanceid"},
		{
			"workloadresourceinstanceid", threeport.TypeWorkloadInstance,
			"(SELECT r.workloadinstanceid FROM workload_resource_instances r WHERE r.id = workloadresourceinstanceid)",
		},
	} {
		where.add(fmt.Sprintf("(%s IS NULL OR EXISTS (SELECT 1 FROM workloads w WHERE w.type = '%s' AND w.id = %s AND %s))",
			reference.column, reference.kind, reference.instance, belongs), of.Cluster)
	}
}

// Filter requires a value in a field, given by its index in Resource.Fields.
type Filter struct {
	Field int
	Value any // of the field's kind
}

// offset is the number of rows before the page.
func (s Selection) offset() int64 {
	before := int64(max(s.Page-1, 0))
	if s.Size > 0 && before > math.MaxInt64/2/int64(s.Size) {
		return math.MaxInt64 / 2 // larger than any table, and cannot overflow
	}
	return before * int64(s.Size)
}

// where selects the rows of all pages.
func (s Selection) where(r *Resource) (where whereClause) {
	where.add("deletedat IS NULL")
	for _, filter := range s.Filters {
		f := r.Fields[filter.Field]
		if f.unique && filter.Value != "" {
			where.add(f.hasUnique(), filter.Value)
			continue
		}
		where.add(f.bounded()+" = ?", filter.Value)
	}
	if s.Readable != nil {
		s.Readable.restrict(&where)
	}
	return where
}

// IsFiltered reports whether not all rows of the table are selected.
func (s Selection) IsFiltered() bool { return len(s.Filters) > 0 }

// IsSearch reports whether the list may read every row of the table, because no filter is on a field with an index. Without a
// filter, it counts them and skips those of the pages before.
func (s Selection) IsSearch(r *Resource) bool {
	return !slices.ContainsFunc(s.Filters, func(f Filter) bool {
		field := r.Fields[f.Field]
		return field.unique && f.Value != "" || field.references != "" // the index of a unique field has no empty values
	})
}

// matchesNothing reports whether a filter has a value that no row can have.
func (s Selection) matchesNothing() bool {
	return slices.ContainsFunc(s.Filters, func(f Filter) bool {
		text, _ := f.Value.(string)
		return !storable(text)
	})
}

// maxChunkRows limits the rows of a chunk. A page of an agent's list is one chunk.
const maxChunkRows = 1000

// Page reads the rows of one page by ascending ID, in chunks of up to maxChunkRows and about maxPageBytes: a page may have all
// rows of a table. No statement is open between two calls of Next. A row that is created meanwhile may be on the page, and
// never makes it longer than Total. It is not safe for concurrent use.
type Page struct {
	// Total is the number of rows on all pages.
	Total int64

	store    *Store
	resource *Resource
	where    whereClause // of all pages
	search   bool        // each statement is a search
	offset   int64       // rows before the page
	left     int64       // rows to read

	last  int64 // ID of the last row that was read, or 0
	ended bool  // no rows follow
	chunk int64 // maximum rows of the next chunk
	first []Row // nil after Next returned it
}

// List begins a page of rows.
func (s *Store) List(ctx context.Context, r *Resource, selection Selection) (*Page, error) {
	if selection.matchesNothing() {
		return &Page{ended: true}, nil
	}
	p := &Page{store: s, resource: r, where: selection.where(r), search: selection.IsSearch(r), left: math.MaxInt64, chunk: maxChunkRows}
	if selection.Size >= 0 {
		p.left, p.offset = int64(selection.Size), selection.offset()
	}
	var err error
	if p.first, err = p.read(ctx); err != nil {
		return nil, err
	}
	read := int64(len(p.first))
	if p.ended && (read > 0 || p.offset == 0) { // the end of the last page is the total
		p.Total = p.offset + read
		return p, nil
	}
	err = p.run(ctx, func(ctx context.Context) error {
		p.Total, err = first(ctx, s.read, "SELECT COUNT(*) FROM "+r.table()+" WHERE "+p.where.String(), p.where.args, number)
		return err
	})
	p.left = min(p.left, max(p.Total-p.offset-read, 0))
	return p, err
}

// Next returns the next chunk, and no rows at the end.
func (p *Page) Next(ctx context.Context) ([]Row, error) {
	if rows := p.first; rows != nil {
		p.first = nil
		return rows, nil
	}
	return p.read(ctx)
}

// IsRead reports whether all rows of the page were read from the database. The first chunk is read by List.
func (p *Page) IsRead() bool { return p.ended || p.left == 0 }

// run runs a statement.
func (p *Page) run(ctx context.Context, statement func(context.Context) error) error {
	if p.search {
		return p.store.search(ctx, statement)
	}
	return statement(ctx)
}

func (p *Page) read(ctx context.Context) ([]Row, error) {
	if p.IsRead() {
		return nil, nil
	}
	where, offset := p.where.clone(), p.offset
	if p.last != 0 {
		where.add("id > ?", p.last)
		offset = 0
	}
	limit := min(p.left, p.chunk)
	query := "SELECT " + p.resource.boundedColumns() + " FROM " + p.resource.table() + " WHERE " + where.String() + " ORDER BY id LIMIT ? OFFSET ?"
	var rows []Row
	var full bool
	err := p.run(ctx, func(ctx context.Context) (err error) {
		rows, full, err = collectPage(ctx, p.store.read, query, append(where.args, limit, offset), p.resource.scan, p.resource.JSONBytes)
		return err
	})
	if err != nil {
		return nil, err
	}
	read := int64(len(rows))
	p.left -= read
	p.ended = !full && read < limit
	if read > 0 {
		p.last = rows[read-1].ID
	}
	p.chunk = nextChunk(p.chunk, read, full)
	return rows, nil
}

// nextChunk is the number of rows that the next statement selects, after one that read some. The driver of PostgreSQL receives
// all rows of a statement, even if it is closed early, so a statement selects about as many rows as fit into a page.
func nextChunk(chunk, read int64, full bool) int64 {
	if full {
		return read
	}
	return min(2*chunk, maxChunkRows)
}
