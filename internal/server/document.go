package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/server/store/canonicaljson"
)

// readValue reads one field's JSON into what a row keeps; nil for a JSON null, which leaves the field as it is.
func readValue(f store.Field, raw json.RawMessage) (any, error) {
	if string(raw) == "null" {
		return nil, nil
	}
	switch f.Kind {
	case store.Text:
		s, err := decode[string](raw)
		if err == nil && strings.ContainsRune(s, 0) {
			err = canonicaljson.ErrNUL
		}
		return s, err
	case store.Integer:
		return decode[int64](raw)
	case store.Boolean:
		return decode[bool](raw)
	case store.Timestamp:
		t, err := decode[time.Time](raw)
		if err != nil {
			return nil, err
		}
		return storedTime(t)
	case store.Document:
		return canonicaljson.Canonicalize(raw)
	default:
		return nil, fmt.Errorf("field %s has kind %d", f.Name, f.Kind)
	}
}

func decode[T any](raw json.RawMessage) (T, error) {
	var v T
	err := json.Unmarshal(raw, &v)
	return v, err
}

// storedTime is a time in microseconds since 1970; what is shorter is cut off, as the database of Threeport's own API
// does.
func storedTime(t time.Time) (int64, error) {
	if year := t.UTC().Year(); year < 0 || year > 9999 {
		return 0, errors.New("a time is outside the years 0 to 9999")
	}
	return t.UnixMicro(), nil
}
