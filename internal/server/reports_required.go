package server

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// required finds the fields that a value has to have, as the document of the API says, and that its text has not, or has
// as null; text is what the value was read from. A field is required unless its tag has omitempty.
func (d *setDecoder) required(at string, value reflect.Value, text json.RawMessage) {
	for value.Kind() == reflect.Pointer && !value.IsNil() {
		value = value.Elem()
	}
	if complete(value) {
		return
	}
	for i, below := range fieldsOf(value.Type(), text) { // none if it is no object: that is another fault
		name, needed := fieldOf(value.Type().Field(i))
		switch {
		case below != nil && string(below) != "null":
			d.required(at+"."+name, value.Field(i), below)
		case needed:
			d.fault(at+"."+name, "is required")
		}
	}
}

// complete tells that nothing can be missing, since all that is required has a value other than the zero of its type: for
// nearly all that agents send it saves reading the text again.
func complete(value reflect.Value) bool {
	if value.Kind() == reflect.Pointer && !value.IsNil() {
		value = value.Elem()
	}
	if value.Kind() != reflect.Struct || value.Type() == reflect.TypeFor[time.Time]() {
		return true
	}
	for i := range value.NumField() {
		field := value.Field(i)
		if _, needed := fieldOf(value.Type().Field(i)); needed && field.IsZero() || !complete(field) {
			return false
		}
	}
	return true
}

// fieldOf is a field's name in JSON, and whether it is required.
func fieldOf(field reflect.StructField) (name string, needed bool) {
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name, options != "omitempty"
}
