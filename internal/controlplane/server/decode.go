package server

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/controlplane"
)

// misfit finds the first part of a value that its target cannot hold, for a value that was found not to fit. It says
// where that part is, such as .object.name, and what is accepted there. It looks into structs, and for the field's name
// only: nothing that it returns is the sender's.
func misfit(target any, text json.RawMessage) (path, expected string) {
	return misfitOf(reflect.TypeOf(target), text)
}

func misfitOf(t reflect.Type, text json.RawMessage) (path, expected string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var fields map[string]json.RawMessage
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() || json.Unmarshal(text, &fields) != nil {
		return "", accepted(t)
	}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		below, ok := fields[name]
		if !ok || json.Unmarshal(below, reflect.New(field.Type).Interface()) == nil {
			continue
		}
		path, expected = misfitOf(field.Type, below)
		return "." + name + path, expected
	}
	return "", accepted(t)
}

// accepted says what JSON a type takes.
func accepted(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Time]():
		return "a time of RFC 3339"
	case reflect.TypeFor[controlplane.ID]():
		return "a decimal of 64 bits in a string"
	}
	switch t.Kind() { //nolint:exhaustive // those that the wire types have
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
	default:
		return "what the document of the API says"
	}
}
