package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// minimalSet is a set with every type of report, with the required fields only and zero values.
func minimalSet(t *testing.T) map[string]any {
	t.Helper()
	text, err := json.Marshal(threeport.ReportSet{Reports: []threeport.Report{
		{Operation: &threeport.OperationReport{}},
		{Event: &threeport.EventReport{Gap: &threeport.Gap{}, FirstTime: &time.Time{}}},
		{Status: &threeport.StatusReport{}},
		{Tree: &threeport.TreeReport{Objects: []threeport.TreeObject{{Pod: &threeport.PodFacts{Containers: []threeport.ContainerFacts{
			{LastExit: &threeport.ContainerExit{}},
		}}}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var set map[string]any
	if err := json.Unmarshal(text, &set); err != nil {
		t.Fatal(err)
	}
	return set
}

// Each field that the document requires is left out, and then set to null. The wire types themselves write all of them.
func TestDecodeReportSet_RequiredFields_MatchDocument(t *testing.T) {
	schemas := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	schemas.RegisterTypeAlias(reflect.TypeFor[threeport.ID](), reflect.TypeFor[idSchema]())
	set := minimalSet(t)
	decode := func() error {
		t.Helper()
		text, err := json.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		_, err = decodeReportSet(strings.NewReader(string(text)), 10)
		return err
	}
	if err := decode(); err != nil {
		t.Fatal(err)
	}
	left := 0
	eachRequired(schemas, schemas.Schema(reflect.TypeFor[threeport.ReportSet](), false, ""), "body", set, func(at, name string, in map[string]any) {
		value := in[name]
		delete(in, name)
		wantProblem(t, decode(), http.StatusUnprocessableEntity, at)
		in[name] = nil
		wantProblem(t, decode(), http.StatusUnprocessableEntity, at)
		in[name] = value
		left++
	})
	if least := 40; left < least {
		t.Errorf("the test omitted only %d required fields, want %d or more", left, least)
	}
}

// eachRequired calls visit for each field of a value that its schema requires.
func eachRequired(schemas huma.Registry, schema *huma.Schema, at string, value any, visit func(at, name string, in map[string]any)) {
	if schema.Ref != "" {
		schema = schemas.SchemaFromRef(schema.Ref)
	}
	switch value := value.(type) {
	case []any:
		for i := range value {
			eachRequired(schemas, schema.Items, fmt.Sprintf("%s[%d]", at, i), value[i], visit)
		}
	case map[string]any:
		for _, name := range schema.Required {
			visit(at+"."+name, name, value)
		}
		for name, property := range schema.Properties {
			if below, found := value[name]; found {
				eachRequired(schemas, property, at+"."+name, below, visit)
			}
		}
	}
}
