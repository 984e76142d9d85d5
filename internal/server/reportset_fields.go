package server

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	strictjson "sigs.k8s.io/json"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// required records the fields that the OpenAPI document requires of a value and that are missing or null in its text, from
// which the value was decoded. A field is required unless its tag has omitempty.
func (d *setDecoder) required(at string, value reflect.Value, text json.RawMessage) {
	for value.Kind() == reflect.Pointer && !value.IsNil() {
		value = value.Elem()
	}
	if isComplete(value) {
		return
	}
	if value.Kind() == reflect.Slice {
		items := rawItems(text)
		for i := range min(len(items), value.Len()) {
			d.required(at+"["+strconv.Itoa(i)+"]", value.Index(i), items[i])
		}
		return
	}
	for i, below := range rawFields(value.Type(), text) { // empty unless the text is an object: a fault of its own
		name, required := jsonField(value.Type().Field(i))
		switch {
		case below != nil && string(below) != "null":
			d.required(at+"."+name, value.Field(i), below)
		case required:
			d.fault(at+"."+name, "is required")
		}
	}
}

// isComplete reports that no required field can be missing, because each has a value other than zero. For nearly all that
// agents send this saves decoding the text again.
func isComplete(value reflect.Value) bool {
	if value.Kind() == reflect.Pointer && !value.IsNil() {
		value = value.Elem()
	}
	if isList(value.Type()) {
		for i := range value.Len() {
			if !isComplete(value.Index(i)) {
				return false
			}
		}
		return true
	}
	if value.Kind() != reflect.Struct || value.Type() == reflect.TypeFor[time.Time]() {
		return true
	}
	for i := range value.NumField() {
		field := value.Field(i)
		if _, required := jsonField(value.Type().Field(i)); required && field.IsZero() || !isComplete(field) {
			return false
		}
	}
	return true
}

// jsonField is a field's name in JSON, and whether the field is required.
func jsonField(field reflect.StructField) (name string, required bool) {
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name, options != "omitempty"
}

// findMismatch finds the first part of a value that its target cannot hold, after decoding has failed. It returns the path
// of that part, such as .object.name, and what is accepted there. It returns names of Go's structs only, and nothing that
// the sender wrote.
func findMismatch(target any, text json.RawMessage) (path, expected string) {
	return findMismatchOf(reflect.TypeOf(target), text)
}

func findMismatchOf(t reflect.Type, text json.RawMessage) (path, expected string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if isList(t) {
		for i, below := range rawItems(text) {
			if json.Unmarshal(below, reflect.New(t.Elem()).Interface()) != nil {
				path, expected = findMismatchOf(t.Elem(), below)
				return "[" + strconv.Itoa(i) + "]" + path, expected
			}
		}
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() {
		return "", acceptedJSON(t)
	}
	for i, below := range rawFields(t, text) {
		field := t.Field(i)
		if below == nil || json.Unmarshal(below, reflect.New(field.Type).Interface()) == nil {
			continue
		}
		name, _ := jsonField(field)
		path, expected = findMismatchOf(field.Type, below)
		return "." + name + path, expected
	}
	return "", acceptedJSON(t)
}

// isList reports whether a type is a list of structs. A definition is a list of bytes to Go.
func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct
}

// rawItems is the text of each item of a list; empty if the text is no list.
func rawItems(text json.RawMessage) (items []json.RawMessage) {
	if json.Unmarshal(text, &items) != nil {
		return nil
	}
	return items
}

// rawFields is the text of each field of a struct, in the struct's order and nil for a field that is missing; empty if the
// text is no object. A map would also keep unknown fields, in many times the memory of their text.
func rawFields(t reflect.Type, text json.RawMessage) []json.RawMessage {
	read := reflect.New(rawStructOf(t))
	if strictjson.UnmarshalCaseSensitivePreserveInts(text, read.Interface()) != nil {
		return nil
	}
	fields := make([]json.RawMessage, t.NumField())
	for i := range fields {
		fields[i] = read.Elem().Field(i).Bytes()
	}
	return fields
}

// rawStructs are the types that rawStructOf made.
var rawStructs sync.Map

// rawStructOf is a struct with the fields of another, each as its text.
func rawStructOf(t reflect.Type) reflect.Type {
	if known, ok := rawStructs.Load(t); ok {
		return known.(reflect.Type)
	}
	texts := make([]reflect.StructField, t.NumField())
	for i := range texts {
		texts[i] = reflect.StructField{Name: t.Field(i).Name, Tag: t.Field(i).Tag, Type: reflect.TypeFor[json.RawMessage]()}
	}
	made := reflect.StructOf(texts)
	rawStructs.Store(t, made)
	return made
}

// acceptedJSON describes the JSON that a type accepts.
func acceptedJSON(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Time]():
		return "a time of RFC 3339"
	case reflect.TypeFor[threeport.ID]():
		return "a decimal of 64 bits in a string"
	}
	switch t.Kind() { //nolint:exhaustive // the kinds of the wire types
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "an integer of 64 bits"
	case reflect.Float64:
		return "a number"
	case reflect.Struct:
		return "an object"
	case reflect.Slice:
		return "a list"
	default:
		return "as /openapi.json describes"
	}
}
