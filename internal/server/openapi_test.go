package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// The schemas follow OpenAPI and JSON Schema, without additions of huma.
func TestOpenAPI_HasNoSchemaLinks(t *testing.T) {
	url := run(t, plain())
	_, body := call(t, exchange{method: http.MethodGet, path: url + "/openapi.json"})
	for _, unwanted := range []string{"$schema", "/schemas/Workload.json", `["array","null"]`} {
		if strings.Contains(body, unwanted) && unwanted != `["array","null"]` {
			t.Errorf("the document has %s", unwanted)
		}
	}
	for _, wanted := range []string{"text/event-stream", "Last-Event-ID", "Content-Encoding", "application/problem+json", `"ReportSet"`} {
		if !strings.Contains(body, wanted) {
			t.Errorf("the document has no %s", wanted)
		}
	}
	for _, path := range []string{"/docs", "/schemas/Workload.json", "/openapi.yaml"} {
		if code, _ := call(t, exchange{method: http.MethodGet, path: url + path}); code != http.StatusNotFound {
			t.Errorf("%s: the answer is %d, want %d", path, code, http.StatusNotFound)
		}
	}
}

func TestOpenAPI_TemporaryErrors_HaveRetryAfter(t *testing.T) {
	_, body := call(t, exchange{method: http.MethodGet, path: run(t, plain()) + "/openapi.json"})
	var document struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct{ Headers map[string]any }
		}
	}
	if err := json.Unmarshal([]byte(body), &document); err != nil {
		t.Fatal(err)
	}
	described := 0
	for path, methods := range document.Paths {
		for method, op := range methods {
			for _, code := range []string{"429", "503"} {
				answer, found := op.Responses[code]
				if found && answer.Headers["Retry-After"] == nil {
					t.Errorf("%s %s: %s has no Retry-After", method, path, code)
				}
				if found {
					described++
				}
			}
		}
	}
	if described < 20 {
		t.Errorf("the document describes only %d temporary errors, want 20 or more", described)
	}
}

// The descriptions are the comments of the Go types.
func TestOpenAPI_Types_HaveDescriptions(t *testing.T) {
	_, body := call(t, exchange{method: http.MethodGet, path: run(t, onFile(t)) + "/openapi.json"})
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Description string
				Properties  map[string]struct{ Description string }
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &document); err != nil {
		t.Fatal(err)
	}
	schemas := document.Components.Schemas
	for _, name := range []string{"ReportSet", "Report", "EventReport", "Workload", "WorkloadDetail", "ListWorkload", "Token", "AuditRecord"} {
		if schemas[name].Description == "" {
			t.Errorf("%s has no description", name)
		}
	}
	for schema, property := range map[string]string{
		"EventReport": "derived", "TimelineEvent": "derived", "Workload": "said", "Object": "listed", "CreatedToken": "role", "ListWorkload": "total",
	} {
		if schemas[schema].Properties[property].Description == "" {
			t.Errorf("%s of %s has no description", property, schema)
		}
	}
}
