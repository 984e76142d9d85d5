package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

var errNUL = errors.New("a string contains \\u0000, which cannot be stored")

// value reads one field's JSON into what the database keeps: a string, an int64
// or a bool; nil for a JSON null, which leaves the field as it is.
func (f field) value(raw json.RawMessage) (any, error) {
	if string(raw) == "null" {
		return nil, nil
	}
	switch f.kind {
	case text:
		s, err := decode[string](raw)
		if err == nil && strings.ContainsRune(s, 0) {
			err = errNUL
		}
		return s, err
	case integer:
		return decode[int64](raw)
	case boolean:
		return decode[bool](raw)
	case timestamp:
		t, err := decode[time.Time](raw)
		if err != nil {
			return nil, err
		}
		return storedTime(t)
	case document:
		return normalise(raw)
	default:
		return nil, fmt.Errorf("field %s has kind %d", f.name, f.kind)
	}
}

func decode[T any](raw json.RawMessage) (T, error) {
	var v T
	err := json.Unmarshal(raw, &v)
	return v, err
}

// timeLayout has a fixed width, so that its texts sort as their times do.
const timeLayout = "2006-01-02T15:04:05.000000000Z"

func storedTime(t time.Time) (string, error) {
	t = t.UTC()
	if t.Year() < 0 || t.Year() > 9999 {
		return "", errors.New("a time is outside the years 0 to 9999")
	}
	return t.Format(timeLayout), nil
}

// wireTime is a stored time as RFC 3339, without the zeros that pad it.
func wireTime(stored string) string {
	return strings.TrimRight(strings.TrimRight(strings.TrimSuffix(stored, "Z"), "0"), ".") + "Z"
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
