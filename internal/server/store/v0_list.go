package store

import (
	"context"
	"math"
	"slices"
)

// Selection selects the rows of a v0 list.
type Selection struct {
	Page, Size int // pages start at 1; a negative size means all rows
	Filters    []Filter
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
	for _, f := range s.Filters {
		where.add(r.Fields[f.Field].Column()+" = ?", f.Value)
	}
	return where
}

// matchesNothing reports whether a filter has a value that no row can have.
func (s Selection) matchesNothing() bool {
	return slices.ContainsFunc(s.Filters, func(f Filter) bool {
		text, _ := f.Value.(string)
		return !storable(text)
	})
}

// List returns a page of rows by ascending ID, and the number of rows on all pages.
func (s *Store) List(ctx context.Context, r *Resource, selection Selection) (rows []Row, total int64, err error) {
	if selection.matchesNothing() {
		return nil, 0, nil
	}
	where := selection.where(r)
	from := " FROM " + r.table() + " WHERE " + where.String()
	query, args := "SELECT "+r.columns()+from+" ORDER BY id", where.args
	var offset int64
	if selection.Size >= 0 {
		offset = selection.offset()
		query += " LIMIT ? OFFSET ?"
		args = append(slices.Clip(args), selection.Size, offset)
	}
	if rows, err = collect(ctx, s, query, args, r.scan); err != nil {
		return nil, 0, err
	}
	if selection.Size < 0 || len(rows) < selection.Size && (len(rows) > 0 || offset == 0) {
		return rows, offset + int64(len(rows)), nil // the last page: its end is the total
	}
	total, err = first(ctx, s, "SELECT COUNT(*)"+from, where.args, number)
	return rows, total, err
}
