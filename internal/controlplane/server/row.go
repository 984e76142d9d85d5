package server

import (
	"database/sql"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// row is one stored object. Its values are those of the resource's fields, in
// their order: a string, an int64, a bool, or nil.
type row struct {
	id                            int64
	createdAt, updatedAt, deleted string // timeLayout; deleted is empty for a live row
	values                        []any
}

// columns are those of a row, in the order that scan reads them.
func (r *resource) columns() string {
	names := []string{"id", "createdat", "updatedat", "deletedat"}
	for _, f := range r.fields {
		names = append(names, f.column())
	}
	return strings.Join(names, ", ")
}

// scan reads the columns of one row. The typed targets make it independent of
// how a driver represents a BOOLEAN or a TEXT.
func (r *resource) scan(scan func(...any) error) (row, error) {
	out := row{values: make([]any, len(r.fields))}
	var deleted sql.NullString
	targets := []any{&out.id, &out.createdAt, &out.updatedAt, &deleted}
	for _, f := range r.fields {
		switch f.kind {
		case integer:
			targets = append(targets, new(sql.NullInt64))
		case boolean:
			targets = append(targets, new(sql.NullBool))
		case text, timestamp, document:
			targets = append(targets, new(sql.NullString))
		}
	}
	if err := scan(targets...); err != nil {
		return row{}, err
	}
	out.deleted = deleted.String
	for i, target := range targets[len(targets)-len(r.fields):] {
		switch v := target.(type) {
		case *sql.NullInt64:
			if v.Valid {
				out.values[i] = v.Int64
			}
		case *sql.NullBool:
			if v.Valid {
				out.values[i] = v.Bool
			}
		case *sql.NullString:
			if v.Valid {
				out.values[i] = v.String
			}
		}
	}
	return out, nil
}

// appendJSON appends the row as it is on the wire; fields without a value are
// left out.
func (r *resource) appendJSON(b []byte, o row) []byte {
	b = append(b, `{"ID":`...)
	b = strconv.AppendInt(b, o.id, 10)
	b = append(b, `,"CreatedAt":"`+wireTime(o.createdAt)+`","UpdatedAt":"`+wireTime(o.updatedAt)+`"`...)
	if o.deleted != "" {
		b = append(b, `,"DeletedAt":"`+wireTime(o.deleted)+`"`...)
	}
	for i, f := range r.fields {
		if o.values[i] == nil {
			continue
		}
		b = append(b, `,"`+f.name+`":`...)
		switch v := o.values[i].(type) {
		case int64:
			b = strconv.AppendInt(b, v, 10)
		case bool:
			b = strconv.AppendBool(b, v)
		case string:
			b = f.appendString(b, v)
		}
	}
	return append(b, '}')
}

func (f field) appendString(b []byte, v string) []byte {
	switch f.kind {
	case document:
		return append(b, v...)
	case timestamp:
		return append(b, `"`+wireTime(v)+`"`...)
	case text, integer, boolean:
	}
	quoted, _ := json.Marshal(v) // a string always marshals
	return append(b, quoted...)
}

// now is the current time as it is stored.
func now() string { return time.Now().UTC().Format(timeLayout) }
