package server

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// documentV0 documents v0, which is served without huma, from the table of its resources.
func documentV0(document *huma.OpenAPI) {
	for _, r := range store.Resources {
		d := v0Document{document, r}
		d.schemas()
		path, name := "/v0/"+r.Path, strings.TrimSuffix(r.Path, "s")
		d.add(http.MethodGet, path, "v0-list-"+r.Path, "List, ordered by ID", d.listParameters(), false, http.StatusOK)
		d.add(http.MethodPost, path, "v0-create-"+name, "Create", d.createParameters(), true, http.StatusOK, http.StatusCreated)
		id := []*huma.Param{{Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeInteger, Format: "int64"}}}
		d.add(http.MethodGet, path+"/{id}", "v0-get-"+name, "Read", id, false, http.StatusOK)
		d.add(http.MethodPatch, path+"/{id}", "v0-update-"+name, "Change the given fields", id, true, http.StatusOK)
		d.add(http.MethodDelete, path+"/{id}", "v0-delete-"+name, "Delete", id, false, http.StatusOK)
		d.addVersions("v0-versions-of-" + name)
	}
}

// v0Document documents one resource.
type v0Document struct {
	document *huma.OpenAPI
	r        *store.Resource
}

// schemas adds the object as answered, its fields as sent, and the envelope.
func (d v0Document) schemas() {
	sent := map[string]*huma.Schema{}
	for _, f := range d.r.Fields {
		sent[f.Name] = fieldSchema(f.Kind)
		if f.MaxBytes > 0 {
			sent[f.Name].Description = strings.TrimLeft(fmt.Sprintf("%s At most %d bytes.", sent[f.Name].Description, f.MaxBytes), " ")
		}
	}
	answered := map[string]*huma.Schema{
		"ID":        {Type: huma.TypeInteger, Format: "int64"},
		"CreatedAt": fieldSchema(store.Timestamp), "UpdatedAt": fieldSchema(store.Timestamp), "DeletedAt": fieldSchema(store.Timestamp),
	}
	required := []string{"ID", "CreatedAt", "UpdatedAt"}
	for _, f := range d.r.Fields {
		answered[f.Name] = fieldSchema(f.Kind)
		if f.Required {
			required = append(required, f.Name)
		}
	}
	schemas := d.document.Components.Schemas.Map()
	schemas["V0"+d.r.Object+"Fields"] = object(sent)
	schemas["V0"+d.r.Object] = object(answered, required...)
	number := &huma.Schema{Type: huma.TypeInteger}
	text := &huma.Schema{Type: huma.TypeString}
	schemas["V0"+d.r.Object+"Answer"] = object(map[string]*huma.Schema{
		"Meta": object(map[string]*huma.Schema{"Page": number, "Size": number, "TotalCount": number}, "Page", "Size", "TotalCount"),
		"Type": {Type: huma.TypeString, Enum: []any{d.r.Object}},
		"Data": {
			Type: huma.TypeArray, Nullable: true, Description: "null on an error",
			Items: &huma.Schema{Ref: "#/components/schemas/V0" + d.r.Object},
		},
		"Status": object(map[string]*huma.Schema{"code": number, "message": text, "error": text}, "code", "message", "error"),
	}, "Meta", "Type", "Data", "Status")
}

// object is a schema that allows only these properties.
func object(properties map[string]*huma.Schema, required ...string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, Properties: properties, Required: required, AdditionalProperties: false}
}

// fieldSchema is the schema of a field's kind on the wire.
func fieldSchema(kind store.Kind) *huma.Schema {
	switch kind {
	case store.Integer:
		return &huma.Schema{Type: huma.TypeInteger, Format: "int64"}
	case store.Boolean:
		return &huma.Schema{Type: huma.TypeBoolean}
	case store.Timestamp:
		return &huma.Schema{Type: huma.TypeString, Format: "date-time"}
	case store.Document:
		return &huma.Schema{Description: "Any JSON."}
	case store.Text:
	}
	return &huma.Schema{Type: huma.TypeString}
}

// createParameters are those of a new row: an instance may be assigned to a cluster at once.
func (d v0Document) createParameters() []*huma.Param {
	if d.r.Object != threeport.TypeWorkloadInstance && d.r.Object != threeport.TypeHelmWorkloadInstance {
		return nil
	}
	return []*huma.Param{{
		Name: threeport.ClusterHeader, In: "header", Description: "The UID of the cluster to assign the instance to. Default: none.",
		Schema: &huma.Schema{Type: huma.TypeString},
	}}
}

func (d v0Document) listParameters() []*huma.Param {
	parameters := []*huma.Param{
		{Name: "page", In: "query", Description: "From 1.", Schema: &huma.Schema{Type: huma.TypeInteger, Default: 1}},
		{Name: "size", In: "query", Description: "-1 for all, 0 for none.", Schema: &huma.Schema{Type: huma.TypeInteger, Default: 50}},
	}
	for _, f := range d.r.Fields {
		if f.Filterable {
			parameters = append(parameters, &huma.Param{Name: f.Column(), In: "query", Schema: fieldSchema(f.Kind)})
		}
	}
	return parameters
}

// addVersions documents how a client discovers the object.
func (d v0Document) addVersions(id string) {
	versions := object(map[string]*huma.Schema{
		"API":      {Type: huma.TypeString, Enum: []any{d.r.Object}},
		"Versions": {Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString, Enum: []any{"v0"}}},
	}, "API", "Versions")
	d.document.AddOperation(&huma.Operation{
		OperationID: id, Method: http.MethodGet, Path: "/" + d.r.Path + "/versions", Tags: []string{tagV0},
		Summary:     "List the versions: " + d.r.Object,
		Description: "A server without the object answers 404.",
		Responses: map[string]*huma.Response{
			"200":     {Description: http.StatusText(http.StatusOK), Content: map[string]*huma.MediaType{"application/json": {Schema: versions}}},
			"default": {Description: "An error."},
		},
	})
}

// add documents an operation.
func (d v0Document) add(method, path, id, summary string, parameters []*huma.Param, body bool, codes ...int) {
	envelope := map[string]*huma.MediaType{
		"application/json": {Schema: &huma.Schema{Ref: "#/components/schemas/V0" + d.r.Object + "Answer"}},
	}
	responses := map[string]*huma.Response{"default": {Description: "An error.", Content: envelope}}
	for _, code := range codes {
		responses[strconv.Itoa(code)] = &huma.Response{Description: http.StatusText(code), Content: envelope}
	}
	op := &huma.Operation{
		OperationID: id, Method: method, Path: path, Tags: []string{tagV0}, Summary: summary + ": " + d.r.Object,
		Parameters: parameters, Responses: responses,
	}
	if body {
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"application/json": {Schema: &huma.Schema{Ref: "#/components/schemas/V0" + d.r.Object + "Fields"}},
		}}
	}
	d.document.AddOperation(op)
}
