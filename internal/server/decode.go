package server

import (
	"encoding/json"
	"reflect"
	"sync"
	"time"

	strictjson "sigs.k8s.io/json"

	"github.com/threeport/threeport-agent/internal/threeport"
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
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() {
		return "", accepted(t)
	}
	for i, below := range fieldsOf(t, text) {
		field := t.Field(i)
		if below == nil || json.Unmarshal(below, reflect.New(field.Type).Interface()) == nil {
			continue
		}
		name, _ := fieldOf(field)
		path, expected = misfitOf(field.Type, below)
		return "." + name + path, expected
	}
	return "", accepted(t)
}

// fieldsOf is the text of each field of a struct, in its order, nil for one that the text of the whole has not; none if that
// is no object. A map would keep the fields that the struct has not as well, in many times the memory of their text.
func fieldsOf(t reflect.Type, text json.RawMessage) []json.RawMessage {
	read := reflect.New(textsOf(t))
	if strictjson.UnmarshalCaseSensitivePreserveInts(text, read.Interface()) != nil {
		return nil
	}
	fields := make([]json.RawMessage, t.NumField())
	for i := range fields {
		fields[i] = read.Elem().Field(i).Bytes()
	}
	return fields
}

// textTypes are what textsOf made: of each type that is read, once.
var textTypes sync.Map

// textsOf is a struct whose fields are the text of those of another.
func textsOf(t reflect.Type) reflect.Type {
	if known, ok := textTypes.Load(t); ok {
		return known.(reflect.Type)
	}
	texts := make([]reflect.StructField, t.NumField())
	for i := range texts {
		texts[i] = reflect.StructField{Name: t.Field(i).Name, Tag: t.Field(i).Tag, Type: reflect.TypeFor[json.RawMessage]()}
	}
	made := reflect.StructOf(texts)
	textTypes.Store(t, made)
	return made
}

// accepted says what JSON a type takes.
func accepted(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Time]():
		return "a time of RFC 3339"
	case reflect.TypeFor[threeport.ID]():
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
