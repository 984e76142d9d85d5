package store

import (
	"context"
	"math"
	"slices"
)

// Selection is what a list of v0 asks for.
type Selection struct {
	Page, Size int // pages count from 1; a size below zero is all rows, on one page
	Filters    []Filter
}

// Filter is a value that a field, the index of the resource's, has to have.
type Filter struct {
	Field int
	Value any // of the field's kind
}

// offset is how many rows come before the page.
func (s Selection) offset() int64 {
	before := int64(max(s.Page-1, 0))
	if s.Size > 0 && before > math.MaxInt64/2/int64(s.Size) {
		return math.MaxInt64 / 2 // beyond any table, and safe to add to
	}
	return before * int64(s.Size)
}

// where is the selection's condition, with its arguments.
func (s Selection) where(r *Resource) (condition string, args []any) {
	condition = "deletedat IS NULL"
	for _, f := range s.Filters {
		condition += " AND " + r.Fields[f.Field].Column() + " = ?"
		args = append(args, f.Value)
	}
	return condition, args
}

// isEmpty tells that no row can have the values that are asked for.
func (s Selection) isEmpty() bool {
	return slices.ContainsFunc(s.Filters, func(f Filter) bool {
		text, _ := f.Value.(string)
		return !storable(text)
	})
}

// List returns one page of rows, by ascending ID, and how many rows there are on all pages.
func (s *Store) List(ctx context.Context, r *Resource, selection Selection) (rows []Row, total int64, err error) {
	if selection.isEmpty() {
		return nil, 0, nil
	}
	condition, args := selection.where(r)
	from := " FROM " + r.table() + " WHERE " + condition
	query, page := "SELECT "+r.columns()+from+" ORDER BY id", args
	var offset int64
	if selection.Size >= 0 {
		offset = selection.offset()
		query += " LIMIT ? OFFSET ?"
		page = append(slices.Clip(args), selection.Size, offset)
	}
	ctx, cancel := s.reading(ctx)
	defer cancel()
	found, err := s.read.QueryContext(ctx, s.dialect.rebind(query), page...)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = found.Close() }() // its error is that of Err
	for found.Next() {
		o, err := r.scan(found.Scan)
		if err != nil {
			return nil, 0, err
		}
		rows = append(rows, o)
	}
	if err := found.Err(); err != nil {
		return nil, 0, err
	}
	if selection.Size < 0 || len(rows) < selection.Size && (len(rows) > 0 || offset == 0) {
		return rows, offset + int64(len(rows)), nil // the last page: no need to count
	}
	err = s.read.QueryRowContext(ctx, s.dialect.rebind("SELECT COUNT(*)"+from), args...).Scan(&total)
	return rows, total, err
}
