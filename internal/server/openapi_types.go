package server

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// descriptionsJSON has the comments of the API's types. hack/cmd/describe makes it.
//
//go:embed zz_generated.descriptions.json
var descriptionsJSON []byte

// describeTypes adds the comments of the API's types and of their fields to schemas that have no description.
func describeTypes(schemas huma.Registry) error {
	var texts map[string]map[string]string
	if err := json.Unmarshal(descriptionsJSON, &texts); err != nil {
		return fmt.Errorf("read the descriptions of the API's types: %w", err)
	}
	for name, schema := range schemas.Map() {
		t := schemas.TypeFromRef("#/components/schemas/" + name)
		if t == nil || t.Kind() != reflect.Struct {
			continue
		}
		describeAs(schema, texts[typeName(t)][""])
		for _, field := range reflect.VisibleFields(t) {
			key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if property := schema.Properties[key]; property != nil {
				describeAs(property, texts[typeName(declarer(t, field))][key])
			}
		}
	}
	return nil
}

func describeAs(schema *huma.Schema, text string) {
	if schema.Description == "" {
		schema.Description = text
	}
}

// declarer is the struct that declares a field: t, or one that is embedded in it.
func declarer(t reflect.Type, field reflect.StructField) reflect.Type {
	if len(field.Index) == 1 {
		return t
	}
	return t.FieldByIndex(field.Index[:len(field.Index)-1]).Type
}

// typeName is a type's name without its package and type arguments.
func typeName(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return name
}
