package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/server/store/canonicaljson"
)

// readValues reads a body into the values of the resource's fields, in their order; nil for a field that is absent or null.
//
// Threeport's API checks names first and answers 400 to a bad one. It answers 500 to everything that it checks later: the
// content type and the type of a value.
func readValues(r *store.Resource, body []byte, contentType string) ([]any, error) {
	object, err := readNames(r, body)
	if err != nil {
		return nil, err
	}
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media != "application/json" {
		return nil, &httpError{http.StatusInternalServerError, "code=415, message=Unsupported Media Type"}
	}
	values := make([]any, len(r.Fields))
	for name, raw := range object {
		i, _ := r.Field(name)
		if values[i], err = readValue(r.Fields[i], raw); err != nil {
			return nil, &httpError{http.StatusInternalServerError, "field " + name + ": " + describe(err)}
		}
	}
	return values, nil
}

// readNames parses the body and checks the names in it.
func readNames(r *store.Resource, body []byte) (map[string]json.RawMessage, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err == nil {
		return object, checkNames(r, object)
	}
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, &httpError{http.StatusInternalServerError, describe(err)}
	}
	if len(list) == 0 {
		return nil, &httpError{http.StatusBadRequest, "JSON payload is empty"}
	}
	for _, object := range list {
		if err := checkNames(r, object); err != nil {
			return nil, err
		}
	}
	return nil, &httpError{http.StatusInternalServerError, "the body is a list and not an object"}
}

// serverFields are the fields that only the server sets.
var serverFields = []string{"ID", "CreatedAt", "UpdatedAt", "DeletedAt"}

func checkNames(r *store.Resource, object map[string]json.RawMessage) error {
	if len(object) == 0 {
		return &httpError{http.StatusBadRequest, "JSON payload is empty"}
	}
	var reserved, unknown []string
	for name := range object {
		if slices.Contains(serverFields, name) {
			reserved = append(reserved, name)
		} else if _, ok := r.Field(name); !ok {
			unknown = append(unknown, name)
		}
	}
	if len(reserved) > 0 {
		return &httpError{http.StatusBadRequest, "Update of GORM Model fields is not allowed : " + join(reserved)}
	}
	if len(unknown) > 0 {
		return &httpError{http.StatusBadRequest, "Unsupported fields are not allowed : " + join(unknown)}
	}
	return nil
}

// checkComplete checks that the values have every required field.
func checkComplete(r *store.Resource, values []any) error {
	var missing []string
	for i, f := range r.Fields {
		if f.Required && values[i] == nil {
			missing = append(missing, f.Name)
		}
	}
	if len(missing) > 0 {
		return &httpError{http.StatusBadRequest, "Missing required field(s) : " + strings.Join(missing, ",")}
	}
	return nil
}

// readValue reads a field's JSON into the value that a row stores; nil for null, which leaves the field unchanged.
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

// storedTime is a time in microseconds since 1970. It drops nanoseconds, as the database of Threeport's API does.
func storedTime(t time.Time) (int64, error) {
	if year := t.UTC().Year(); year < 0 || year > 9999 {
		return 0, errors.New("a time is outside the years 0 to 9999")
	}
	return t.UnixMicro(), nil
}

// join lists names from a map in a stable order.
func join(names []string) string {
	slices.Sort(names)
	return strings.Join(names, ",")
}

// describe is the text of a decoder's error without the value that it quotes.
func describe(err error) string {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		jsonType, _, _ := strings.Cut(e.Value, " ") // as in "number 1.5"
		return "a JSON value of the wrong type, " + jsonType
	}
	if errors.Is(err, canonicaljson.ErrNUL) {
		return canonicaljson.ErrNUL.Error()
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return e.Error()
	}
	return "a value that cannot be read"
}
