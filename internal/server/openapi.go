package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// openAPI serves the OpenAPI document. Its text is complete once all operations are registered.
type openAPI struct {
	limits Limits
	text   []byte
}

// write makes the document of an API's operations, and of v0.
func (o *openAPI) write(api huma.API) error {
	document, schemas := api.OpenAPI(), api.OpenAPI().Components.Schemas
	documentReportSet(document, o.limits)
	documentEventStream(document)
	documentWorkload(document)
	for _, schema := range schemas.Map() {
		withoutNullLists(schema)
	}
	if err := describeTypes(schemas); err != nil {
		return err
	}
	documentV0(document) // after withoutNullLists: v0 has null lists
	text, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("write the OpenAPI document: %w", err)
	}
	o.text = text
	return nil
}

func (o *openAPI) serve(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/openapi+json")
	w.Header().Set("Content-Length", strconv.Itoa(len(o.text)))
	_, _ = w.Write(o.text) // fails only if the client has gone
}

// newAPI is an API without operations. With secured, its document has the ways to authenticate.
func newAPI(adapter huma.Adapter, version string, secured bool) huma.API {
	format := huma.Format{Marshal: marshalAnswer, Unmarshal: unmarshalBody}
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	registry.RegisterTypeAlias(reflect.TypeFor[threeport.ID](), reflect.TypeFor[idSchema]())
	document := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Threeport control-plane API", Version: version,
			Description: "The workloads in the clusters of a control plane, with their status. Errors are problems of RFC 9457, and in v0 " +
				"envelopes. IDs are decimals of 64 bits in strings, in v0 numbers. Unknown parameters and " +
				"fields are refused; v0 ignores unknown parameters.",
		},
		Components: &huma.Components{Schemas: registry},
		Tags: []*huma.Tag{
			{Name: tagReports, Description: "Reports of agents, many in one request."},
			{Name: tagWorkloads, Description: "Workloads and clusters, for people."},
			{Name: tagAccess, Description: "Tokens and audit records. For administrators, and for an agent its own token."},
			{Name: tagV0, Description: "Threeport's REST API, version v0, row by row."},
		},
	}
	document.OnAddOperation = append(document.OnAddOperation, documentRetryAfter)
	if secured {
		document.Components.SecuritySchemes = securitySchemes()
		document.Security = []map[string][]string{{"certificate": {}}, {"bearer": {}}, {"session": {}}}
	}
	api := huma.NewAPI(huma.Config{
		OpenAPI:       document,
		Formats:       map[string]huma.Format{"application/json": format, "json": format},
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{withoutValues},

		RejectUnknownQueryParameters: true,
	}, adapter)
	api.UseMiddleware(strictQuery(api))
	return api
}

func securitySchemes() map[string]*huma.SecurityScheme {
	return map[string]*huma.SecurityScheme{
		"certificate": {Type: "mutualTLS", Description: "A client certificate. The organization of its subject names its role; certificates of v0 have none."},
		"bearer":      {Type: "http", Scheme: "bearer", Description: "A token of /v0/tokens."},
		"session":     {Type: "apiKey", In: "cookie", Name: "__Host-threeport-session", Description: "A browser's session. /login opens it with a token or by single sign-on."},
	}
}

// documentRetryAfter documents the Retry-After of temporary failures.
func documentRetryAfter(_ *huma.OpenAPI, op *huma.Operation) {
	for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		if answer := op.Responses[strconv.Itoa(code)]; answer != nil {
			answer.Headers = map[string]*huma.Param{"Retry-After": {
				Description: "The number of seconds to wait before a repeat.",
				Schema:      &huma.Schema{Type: huma.TypeInteger, Minimum: new(1.0)},
			}}
		}
	}
}

// idSchema is the schema of [threeport.ID].
type idSchema struct{}

// Schema is called by huma.
func (idSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeString, Pattern: "^-?[0-9]{1,19}$", PatternDescription: "a decimal of 64 bits",
		Description: "A decimal of 64 bits.",
	}
}

// documentReportSet documents the body of report sets, which huma does not know because [reportSets] reads it.
func documentReportSet(document *huma.OpenAPI, limits Limits) {
	schemas := document.Components.Schemas
	op := document.Paths["/v0/workload-report-sets"].Post
	op.RequestBody = &huma.RequestBody{
		Required: true,
		Description: fmt.Sprintf("At most %d bytes as sent and %d before compression; at most %d objects and %d containers in all trees; "+
			"at most %d bytes for one operation, Event, status, or object of a tree.",
			limits.BodyBytes, limits.DecodedBytes, maxObjects, maxContainers, maxValue),
		Content: map[string]*huma.MediaType{"application/json": {
			Schema: schemas.Schema(reflect.TypeFor[threeport.ReportSet](), true, ""),
		}},
	}
	schemas.Map()["ReportSet"].Properties["reports"].MaxItems = &limits.Reports
	op.Parameters = append(op.Parameters, &huma.Param{
		Name: "Content-Encoding", In: "header", Description: "How the body is compressed.",
		Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"identity", "gzip", "zstd"}},
	})
}

// documentWorkload documents the answer of a workload, which its handler writes itself.
func documentWorkload(document *huma.OpenAPI) {
	document.Paths[workloadPath].Get.Responses["200"] = &huma.Response{
		Description: http.StatusText(http.StatusOK),
		Content: map[string]*huma.MediaType{"application/json": {
			Schema: document.Components.Schemas.Schema(reflect.TypeFor[threeport.WorkloadDetail](), true, ""),
		}},
	}
}

// documentEventStream documents the server-sent events of a watch as a list, each item one event.
func documentEventStream(document *huma.OpenAPI) {
	schemas := document.Components.Schemas
	event := func(name, description string, id *huma.Schema, data *huma.Schema) *huma.Schema {
		s := &huma.Schema{
			Type: huma.TypeObject, Title: name, Description: description,
			Properties: map[string]*huma.Schema{
				"event": {Type: huma.TypeString, Enum: []any{name}}, "data": data,
			},
			Required: []string{"event", "data"}, AdditionalProperties: false,
		}
		if id != nil {
			s.Properties["id"] = id
			s.Required = append(s.Required, "id")
		}
		return s
	}
	empty := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: false}
	document.Paths["/v0/workloads/watch"].Get.Responses["200"] = &huma.Response{
		Description: "A stream of server-sent events.",
		Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{
			Type: huma.TypeArray, Description: "Each item is one event of the stream.",
			Items: &huma.Schema{OneOf: []*huma.Schema{
				event(eventWorkload, "A changed row.", idSchema{}.Schema(schemas),
					schemas.Schema(reflect.TypeFor[threeport.Workload](), true, "")),
				event(eventReset, "Events were missed: reload everything.",
					&huma.Schema{Type: huma.TypeString, Enum: []any{""}}, empty),
				event(eventPing, "The connection is alive.", nil, empty),
			}},
		}}},
	}
}

// withoutNullLists corrects huma's schemas of Go slices: this API answers with an empty list instead of null, and accepts no
// null.
func withoutNullLists(schema *huma.Schema) {
	for _, property := range schema.Properties {
		if property.Type == huma.TypeArray {
			property.Nullable = false
		}
	}
}
