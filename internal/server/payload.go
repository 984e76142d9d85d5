package server

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/server/store/canonicaljson"
)

// readValues reads a request's body into the values of the resource's fields, in
// their order; nil for a field that is absent or null.
//
// v0 checks names before anything else, and answers 400 for them; what it finds
// wrong after that (the content type, a value's type) it answers with 500.
func readValues(r *store.Resource, body []byte, contentType string) ([]any, error) {
	object, err := readNames(r, body)
	if err != nil {
		return nil, err
	}
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media != "application/json" {
		return nil, &failure{http.StatusInternalServerError, "code=415, message=Unsupported Media Type"}
	}
	values := make([]any, len(r.Fields))
	for name, raw := range object {
		i, _ := r.Field(name)
		if values[i], err = readValue(r.Fields[i], raw); err != nil {
			return nil, &failure{http.StatusInternalServerError, "field " + name + ": " + describe(err)}
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
		return nil, &failure{http.StatusInternalServerError, describe(err)}
	}
	if len(list) == 0 {
		return nil, &failure{http.StatusBadRequest, "JSON payload is empty"}
	}
	for _, object := range list {
		if err := checkNames(r, object); err != nil {
			return nil, err
		}
	}
	return nil, &failure{http.StatusInternalServerError, "the body is a list and not an object"}
}

// serverFields are those that a request must not carry.
var serverFields = []string{"ID", "CreatedAt", "UpdatedAt", "DeletedAt"}

func checkNames(r *store.Resource, object map[string]json.RawMessage) error {
	if len(object) == 0 {
		return &failure{http.StatusBadRequest, "JSON payload is empty"}
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
		return &failure{http.StatusBadRequest, "Update of GORM Model fields is not allowed : " + join(reserved)}
	}
	if len(unknown) > 0 {
		return &failure{http.StatusBadRequest, "Unsupported fields are not allowed : " + join(unknown)}
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
		return &failure{http.StatusBadRequest, "Missing required field(s) : " + strings.Join(missing, ",")}
	}
	return nil
}

// join lists names from a map in one order.
func join(names []string) string {
	slices.Sort(names)
	return strings.Join(names, ",")
}

// describe is a decoder's error without the value that it quotes.
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
