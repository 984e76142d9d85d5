package server

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// selection is what a list asks for.
type selection struct {
	page, size int // size below zero is all, on one page
	where      string
	args       []any
}

const defaultPageSize = 50

// offset is how many rows come before the page; pages count from 1.
func (s selection) offset() int64 {
	before := int64(max(s.page-1, 0))
	if s.size > 0 && before > math.MaxInt64/2/int64(s.size) {
		return math.MaxInt64 / 2 // beyond any table, and safe to add to
	}
	return before * int64(s.size)
}

// selection reads the query of a list: page, size, and filters, which are
// fields' names in lower case and all have to match. Keys it does not know are
// ignored, as v0 does.
func (r *resource) selection(query url.Values) (selection, error) {
	sel := selection{page: 1, size: defaultPageSize, where: "deletedat IS NULL"}
	filters := make(map[string]string)
	for key, values := range query {
		filters[strings.ToLower(key)] = values[0]
	}
	for name, target := range map[string]*int{"page": &sel.page, "size": &sel.size} {
		given, ok := filters[name]
		if !ok || given == "" {
			continue
		}
		n, err := strconv.Atoi(given)
		if err != nil {
			return sel, &failure{http.StatusBadRequest, name + " is not a number"}
		}
		*target = n
	}
	for _, f := range r.fields {
		given, ok := filters[f.column()]
		if !ok || !f.filterable {
			continue
		}
		arg, err := f.filter(given)
		if err != nil {
			return sel, &failure{http.StatusInternalServerError, "filter " + f.column() + ": " + err.Error()}
		}
		sel.where += " AND " + f.column() + " = ?"
		sel.args = append(sel.args, arg)
	}
	return sel, nil
}

// filter is a query's text as a value of the field. An empty number is 0.
func (f field) filter(given string) (any, error) {
	switch f.kind {
	case integer:
		if given == "" {
			return int64(0), nil
		}
		n, err := strconv.ParseInt(given, 10, 64)
		if err != nil {
			return nil, errors.New("not an integer")
		}
		return n, nil
	case boolean:
		b, err := strconv.ParseBool(given)
		if err != nil {
			return nil, errors.New("neither true nor false")
		}
		return b, nil
	case text, timestamp, document:
	}
	return given, nil
}

// list returns one page of rows, by ascending ID, and how many rows there are
// on all pages.
func (s *Store) list(ctx context.Context, r *resource, sel selection) (rows []row, total int64, err error) {
	query := "SELECT " + r.columns() + " FROM " + r.table() + " WHERE " + sel.where + " ORDER BY id" //nolint:gosec // names from the resource table; values are arguments
	args := sel.args
	var offset int64
	if sel.size >= 0 {
		offset = sel.offset()
		query += " LIMIT ? OFFSET ?"
		args = append(slices.Clip(args), sel.size, offset)
	}
	found, err := s.read.QueryContext(ctx, query, args...)
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
	if sel.size < 0 || len(rows) < sel.size && (len(rows) > 0 || offset == 0) {
		return rows, offset + int64(len(rows)), nil // the last page: no need to count
	}
	err = s.read.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+r.table()+" WHERE "+sel.where, sel.args...).Scan(&total)
	return rows, total, err
}
