package server

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/threeport/threeport-agent/internal/server/store"
)

const defaultPageSize = 50

// selectionOf reads the query of a list: page, size and filters. A filter is a field's name in lower case, and all filters
// have to match. Unknown keys are ignored, as Threeport's API does. A key in other case is the same filter. If there are several,
// the key in lower case counts, as in Threeport's API, and else the first in the order of bytes: that API takes any of them.
func selectionOf(r *store.Resource, query url.Values) (store.Selection, error) {
	selection := store.Selection{Page: 1, Size: defaultPageSize}
	filters := make(map[string]string)
	for _, key := range slices.Sorted(maps.Keys(query)) {
		name := strings.ToLower(key)
		if _, given := filters[name]; !given || key == name {
			filters[name] = query[key][0]
		}
	}
	for name, target := range map[string]*int{"page": &selection.Page, "size": &selection.Size} {
		given, ok := filters[name]
		if !ok || given == "" {
			continue
		}
		n, err := strconv.Atoi(given)
		if err != nil || n < -1 {
			return selection, &httpError{http.StatusBadRequest, "Query parameter is not a valid integer value: " + name}
		}
		*target = n
	}
	for i, f := range r.Fields {
		given, ok := filters[f.Column()]
		if !ok || !f.Filterable {
			continue
		}
		value, err := filterValue(f, given)
		if err != nil {
			return selection, &httpError{http.StatusInternalServerError, "filter " + f.Column() + ": " + err.Error()}
		}
		selection.Filters = append(selection.Filters, store.Filter{Field: i, Value: value})
	}
	return selection, nil
}

// filterValue is a query's text as a value of the field. An empty text stands for the number 0.
func filterValue(f store.Field, given string) (any, error) {
	switch f.Kind {
	case store.Integer:
		if given == "" {
			return int64(0), nil
		}
		n, err := strconv.ParseInt(given, 10, 64)
		if err != nil {
			return nil, errors.New("not an integer")
		}
		return n, nil
	case store.Boolean:
		b, err := strconv.ParseBool(given)
		if err != nil {
			return nil, errors.New("neither true nor false")
		}
		return b, nil
	case store.Text, store.Timestamp, store.Document:
	}
	return given, nil
}
