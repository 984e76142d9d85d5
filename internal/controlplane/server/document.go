package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/controlplane/server/store"
)

var errNUL = errors.New("a string contains \\u0000, which cannot be stored")

// readValue reads one field's JSON into what a row keeps; nil for a JSON null, which leaves the field as it is.
func readValue(f store.Field, raw json.RawMessage) (any, error) {
	if string(raw) == "null" {
		return nil, nil
	}
	switch f.Kind {
	case store.Text:
		s, err := decode[string](raw)
		if err == nil && strings.ContainsRune(s, 0) {
			err = errNUL
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
		return normalise(raw)
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

// normalise sorts the keys of every object and drops white space, as a database
// with a JSON type does. Numbers keep their digits.
func normalise(raw json.RawMessage) (string, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return "", err
	}
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return "", err
	}
	doc := strings.TrimSuffix(buf.String(), "\n")
	if hasNUL(doc) {
		return "", errNUL
	}
	return doc, nil
}

// hasNUL looks for the escape of NUL in normalised JSON, which is not the end of
// an escaped backslash before the letters u0000.
func hasNUL(doc string) bool {
	for {
		i := strings.IndexByte(doc, '\\')
		if i < 0 {
			return false
		}
		doc = doc[i:]
		if strings.HasPrefix(doc, `\u0000`) {
			return true
		}
		doc = doc[2:] // valid JSON: a backslash is never last
	}
}
