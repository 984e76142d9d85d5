package server

import "strings"

// kind is the type of a field, on the wire and in the database.
type kind int

const (
	text      kind = iota // a JSON string
	integer               // an int64
	boolean               // true or false
	timestamp             // RFC 3339; kept in UTC with its sub-second part
	document              // any JSON; kept normalised
)

// field is one field of an object. In the database and as a filter its name is
// in lower case.
type field struct {
	name       string
	kind       kind
	required   bool   // on create
	filterable bool   // as a query key of a list
	unique     bool   // among rows that are not deleted, unless empty
	references string // the path of the object whose ID it holds
}

func (f field) column() string { return strings.ToLower(f.name) }

// indexed fields are those that rows are looked up by.
func (f field) indexed() bool { return f.references != "" }

// resource is one object of the API: a table, and the routes below its path.
type resource struct {
	object string // its Type in answers
	path   string // plural, as in /v0/{path}
	fields []field
}

func (r *resource) table() string { return strings.ReplaceAll(r.path, "-", "_") }

// field finds a field by its wire name.
func (r *resource) field(name string) (index int, ok bool) {
	for i, f := range r.fields {
		if f.name == name {
			return i, true
		}
	}
	return 0, false
}

// unique is the field that identifies a row besides its ID, if there is one.
func (r *resource) unique() (index int, ok bool) {
	for i, f := range r.fields {
		if f.unique {
			return i, true
		}
	}
	return 0, false
}

// serverFields are those that a request must not carry.
var serverFields = []string{"ID", "CreatedAt", "UpdatedAt", "DeletedAt"}

// resources are the objects of the API; one that is referred to comes first.
var resources = []*resource{
	{
		object: "WorkloadInstance", path: "workload-instances",
		fields: []field{
			{name: "Name", kind: text, required: true, filterable: true},
			{name: "Status", kind: text, filterable: true},
			{name: "Reconciled", kind: boolean, filterable: true},
		},
	},
	{
		object: "HelmWorkloadInstance", path: "helm-workload-instances",
		fields: []field{
			{name: "Name", kind: text, required: true, filterable: true},
			{name: "Status", kind: text, filterable: true},
			{name: "Reconciled", kind: boolean, filterable: true},
		},
	},
	{
		object: "WorkloadResourceInstance", path: "workload-resource-instances",
		fields: []field{
			{name: "JSONDefinition", kind: document, required: true},
			{name: "WorkloadInstanceID", kind: integer, required: true, filterable: true, references: "workload-instances"},
			{name: "LastOperation", kind: text, filterable: true},
			{name: "RuntimeDefinition", kind: document},
			{name: "Reconciled", kind: boolean, filterable: true},
			{name: "ScheduledForDeletion", kind: timestamp},
		},
	},
	{
		object: "WorkloadEvent", path: "workload-events",
		fields: []field{
			{name: "RuntimeEventUID", kind: text, required: true, filterable: true, unique: true},
			{name: "Type", kind: text, required: true, filterable: true},
			{name: "Reason", kind: text, required: true, filterable: true},
			{name: "Message", kind: text, required: true, filterable: true},
			{name: "Timestamp", kind: timestamp, required: true},
			{name: "WorkloadInstanceID", kind: integer, filterable: true, references: "workload-instances"},
			{name: "WorkloadResourceInstanceID", kind: integer, filterable: true, references: "workload-resource-instances"},
			{name: "HelmWorkloadInstanceID", kind: integer, filterable: true, references: "helm-workload-instances"},
		},
	},
}
