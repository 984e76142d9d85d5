package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/server/store/canonicaljson"
)

// readValues reads a body into the values of the resource's fields, in their order; nil for a field that is absent or null.
// It keeps at most one value of each field, and a bounded number of names.
//
// Threeport's API checks names first and answers 400 to a bad one. It answers 500 to everything that it checks later: the
// content type and the type of a value.
func readValues(r *store.Resource, body []byte, contentType string, names nameCheck) ([]any, error) {
	raw, err := readFields(r, body, names)
	if err != nil {
		return nil, err
	}
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media != "application/json" {
		return nil, &httpError{http.StatusInternalServerError, "code=415, message=Unsupported Media Type"}
	}
	values := make([]any, len(r.Fields))
	for i, f := range r.Fields {
		if raw[i] == nil {
			continue
		}
		values[i], err = readValue(f, raw[i])
		if _, invalid := errors.AsType[*store.FieldError](err); invalid {
			return nil, err
		}
		if err != nil {
			return nil, &httpError{http.StatusInternalServerError, "field " + f.Name + ": " + describe(err)}
		}
	}
	return values, nil
}

// readFields checks the names in a body, and returns the JSON of each field; nil for an absent one. The last of several values
// counts, as in encoding/json.
func readFields(r *store.Resource, body json.RawMessage, names nameCheck) ([]json.RawMessage, error) {
	if !json.Valid(body) {
		return nil, &httpError{http.StatusInternalServerError, describe(json.Unmarshal(body, new(struct{})))}
	}
	switch body = skip(body, 0); body[0] {
	case '{', 'n':
		return names.check(r, body)
	case '[':
		return nil, checkList(r, body, names)
	default:
		return nil, &httpError{http.StatusInternalServerError, describe(json.Unmarshal(body, new(struct{})))}
	}
}

// checkList is the error of a body that is a list. Threeport's API checks the names in it all the same.
func checkList(r *store.Resource, body json.RawMessage, names nameCheck) error {
	count := 0
	for element := range elements(body) {
		if count++; count > maxMembers {
			break
		}
		if element[0] != '{' && element[0] != 'n' {
			return &httpError{http.StatusInternalServerError, describe(json.Unmarshal(element, new(struct{})))}
		}
		if _, err := names.check(r, element); err != nil {
			return err
		}
	}
	if count == 0 {
		return errEmptyPayload
	}
	return &httpError{http.StatusInternalServerError, "the body is a list and not an object"}
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
// It rejects a value by its length first, because the decoder and its errors take more memory than the value.
func readValue(f store.Field, raw json.RawMessage) (any, error) {
	if string(raw) == "null" {
		return nil, nil
	}
	if most := maxRawBytes(f); len(raw) > most {
		if f.MaxBytes > 0 {
			return nil, f.TooLong()
		}
		return nil, fmt.Errorf("a value has more than %d bytes", most)
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

// maxRawBytes limits the JSON of a field, in bytes.
func maxRawBytes(f store.Field) int {
	switch f.Kind {
	case store.Text:
		return len(`""`) + len(`\u0000`)*f.MaxBytes
	case store.Document:
		return f.MaxBytes
	case store.Integer, store.Boolean, store.Timestamp:
	}
	return 1 << 10 // more than a number, a word or a time has
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
