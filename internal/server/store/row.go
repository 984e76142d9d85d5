package store

import (
	"database/sql"
	"strings"
)

// Row is one stored object of v0. Its values are those of the resource's fields, in their order: a string, an int64, a
// bool, or nil; see [Kind]. Times are microseconds since 1970.
type Row struct {
	ID                   int64
	CreatedAt, UpdatedAt int64
	DeletedAt            *int64 // nil for a live row
	Values               []any
}

// columns are those of a row, in the order that scan reads them.
func (r *Resource) columns() string {
	names := []string{"id", "createdat", "updatedat", "deletedat"}
	for _, f := range r.Fields {
		names = append(names, f.Column())
	}
	return strings.Join(names, ", ")
}

// scan reads the columns of one row. The typed targets make it independent of how a driver represents a BOOLEAN or a
// TEXT.
func (r *Resource) scan(scan func(...any) error) (Row, error) {
	out := Row{Values: make([]any, len(r.Fields))}
	targets := []any{&out.ID, &out.CreatedAt, &out.UpdatedAt, &out.DeletedAt}
	for _, f := range r.Fields {
		switch f.Kind {
		case Integer, Timestamp:
			targets = append(targets, new(sql.NullInt64))
		case Boolean:
			targets = append(targets, new(sql.NullBool))
		case Text, Document:
			targets = append(targets, new(sql.NullString))
		}
	}
	if err := scan(targets...); err != nil {
		return Row{}, err
	}
	for i, target := range targets[len(targets)-len(r.Fields):] {
		switch v := target.(type) {
		case *sql.NullInt64:
			if v.Valid {
				out.Values[i] = v.Int64
			}
		case *sql.NullBool:
			if v.Valid {
				out.Values[i] = v.Bool
			}
		case *sql.NullString:
			if v.Valid {
				out.Values[i] = v.String
			}
		}
	}
	return out, nil
}
