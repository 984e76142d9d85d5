package server

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// appendRow appends a row of v0 as it is on the wire; fields without a value are left out.
func appendRow(b []byte, r *store.Resource, o store.Row) []byte {
	b = append(b, `{"ID":`...)
	b = strconv.AppendInt(b, o.ID, 10)
	b = append(b, `,"CreatedAt":"`+wireTime(o.CreatedAt)+`","UpdatedAt":"`+wireTime(o.UpdatedAt)+`"`...)
	if o.DeletedAt != nil {
		b = append(b, `,"DeletedAt":"`+wireTime(*o.DeletedAt)+`"`...)
	}
	for i, f := range r.Fields {
		if o.Values[i] != nil {
			b = appendValue(append(b, `,"`+f.Name+`":`...), f.Kind, o.Values[i])
		}
	}
	return append(b, '}')
}

func appendValue(b []byte, kind store.Kind, value any) []byte {
	switch v := value.(type) {
	case int64:
		if kind == store.Timestamp {
			return append(b, `"`+wireTime(v)+`"`...)
		}
		return strconv.AppendInt(b, v, 10)
	case bool:
		return strconv.AppendBool(b, v)
	case string:
		if kind == store.Document {
			return append(b, v...)
		}
		quoted, _ := json.Marshal(v) // a string always marshals
		return append(b, quoted...)
	default:
		return append(b, "null"...) // a row has none such
	}
}

// wireTime is a time in microseconds as RFC 3339, without zeros that pad it.
func wireTime(micros int64) string { return time.UnixMicro(micros).UTC().Format(time.RFC3339Nano) }
