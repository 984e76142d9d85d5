package store

import (
	"database/sql"
	"fmt"
	"strings"
)

// Kind is the type of a field: on the wire, in a [Row] and in the database.
type Kind int

// The kinds of fields.
const (
	Text      Kind = iota // a JSON string; a string
	Integer               // a JSON number; an int64
	Boolean               // true or false; a bool
	Timestamp             // RFC 3339; an int64, microseconds since 1970
	Document              // any JSON; a string in canonical form
)

// Field is a field of a v0 object. Its column and filter have its name in lower case.
type Field struct {
	Name       string
	Kind       Kind
	Required   bool   // on create
	Filterable bool   // as a query parameter of a list
	unique     bool   // among the live rows of an owner, unless empty; see eventOwnerSQL
	references string // table of the object whose ID it contains
	// MaxBytes limits a text or a document, in bytes; 0 for the other kinds.
	MaxBytes int
}

// Column is the field's column in the database.
func (f Field) Column() string { return strings.ToLower(f.Name) }

// hasUnique is the condition that a unique field has a value that is not empty. SQLite uses the partial index of the field only
// with the second term.
func (f Field) hasUnique() string { return f.Column() + " = ? AND " + f.Column() + " <> ''" }

// Resource is a type of v0 objects: a table, and the routes below its path. Resources are compared by address.
type Resource struct {
	Object string // Type in answers
	Path   string // plural, as in /v0/{path}
	Fields []Field
	// Associations are fields of Threeport's object with rows of other resources. The store has none of them.
	Associations []string
	// isWorkload reports whether each row has a row in workloads.
	isWorkload bool
}

func (r *Resource) table() string { return strings.ReplaceAll(r.Path, "-", "_") }

// Field finds a field by its wire name, in any case.
func (r *Resource) Field(name string) (index int, ok bool) {
	for i, f := range r.Fields {
		if strings.EqualFold(f.Name, name) {
			return i, true
		}
	}
	return 0, false
}

// unique is the field that identifies a row of an owner besides its ID; ok is false if there is none.
func (r *Resource) unique() (index int, ok bool) {
	for i, f := range r.Fields {
		if f.unique {
			return i, true
		}
	}
	return 0, false
}

// eventOwnerSQL identifies the owner of an Event: its WorkloadInstance, the negative ID of its HelmWorkloadInstance or, if it has no
// instance, its resource; 0 for none. prefix is that of the columns.
//
// The same UID may occur once per owner. An agent may write only Events with owners of its cluster, so it cannot occupy the UIDs of
// another cluster. The Events of an instance move with it to another cluster.
func eventOwnerSQL(prefix string) string {
	return fmt.Sprintf("COALESCE(%[1]sworkloadinstanceid, -%[1]shelmworkloadinstanceid, %[1]sworkloadresourceinstanceid, 0)", prefix)
}

// eventOwner is eventOwnerSQL for the values of an Event.
func (r *Resource) eventOwner(values []any) int64 {
	for _, of := range []struct {
		field string
		sign  int64
	}{{"WorkloadInstanceID", 1}, {"HelmWorkloadInstanceID", -1}, {"WorkloadResourceInstanceID", 1}} {
		i, _ := r.Field(of.field)
		if id, given := values[i].(int64); given {
			return of.sign * id
		}
	}
	return 0
}

// maxEventUIDBytes limits the UID of an Event, since PostgreSQL limits the size of index entries. It is twice the limit
// of report sets.
const maxEventUIDBytes = 2048

// maxTextBytes limits texts that have no limit of their own. A report set has the same limit, in characters.
const maxTextBytes = maxMessage

// The limits of the type and the reason of an Event are those of report sets in bytes: a workload keeps thousands of Events.
const (
	maxTypeBytes   = 4 * maxWord
	maxReasonBytes = 4 * maxReason
)

// Indexes of the fields of an instance that are copied to its workloads row.
const (
	instanceName   = 0
	instanceStatus = 1
)

// Resources are the objects of v0; referenced objects come first.
var Resources = []*Resource{
	{
		Object: "WorkloadInstance", Path: "workload-instances", isWorkload: true,
		Associations: []string{"WorkloadResourceInstances"},
		Fields: []Field{
			instanceName:   {Name: "Name", Kind: Text, Required: true, Filterable: true, MaxBytes: maxTextBytes},
			instanceStatus: {Name: "Status", Kind: Text, Filterable: true, MaxBytes: maxTextBytes},
			2:              {Name: "Reconciled", Kind: Boolean, Filterable: true},
		},
	},
	{
		Object: "HelmWorkloadInstance", Path: "helm-workload-instances", isWorkload: true,
		Fields: []Field{
			instanceName:   {Name: "Name", Kind: Text, Required: true, Filterable: true, MaxBytes: maxTextBytes},
			instanceStatus: {Name: "Status", Kind: Text, Filterable: true, MaxBytes: maxTextBytes},
			2:              {Name: "Reconciled", Kind: Boolean, Filterable: true},
		},
	},
	{
		Object: "WorkloadResourceInstance", Path: "workload-resource-instances",
		Fields: []Field{
			{Name: "JSONDefinition", Kind: Document, Required: true, MaxBytes: maxDefinition},
			{Name: "WorkloadInstanceID", Kind: Integer, Required: true, Filterable: true, references: "workload_instances"},
			{Name: "LastOperation", Kind: Text, Filterable: true, MaxBytes: maxTextBytes},
			{Name: "RuntimeDefinition", Kind: Document, MaxBytes: maxDefinition},
			{Name: "Reconciled", Kind: Boolean, Filterable: true},
			{Name: "ScheduledForDeletion", Kind: Timestamp},
		},
	},
	{
		Object: "WorkloadEvent", Path: "workload-events",
		Fields: []Field{
			{Name: "RuntimeEventUID", Kind: Text, Required: true, Filterable: true, unique: true, MaxBytes: maxEventUIDBytes},
			{Name: "Type", Kind: Text, Required: true, Filterable: true, MaxBytes: maxTypeBytes},
			{Name: "Reason", Kind: Text, Required: true, Filterable: true, MaxBytes: maxReasonBytes},
			{Name: "Message", Kind: Text, Required: true, Filterable: true, MaxBytes: maxTextBytes},
			{Name: "Timestamp", Kind: Timestamp, Required: true},
			{Name: "WorkloadInstanceID", Kind: Integer, Filterable: true, references: "workload_instances"},
			{Name: "WorkloadResourceInstanceID", Kind: Integer, Filterable: true, references: "workload_resource_instances"},
			{Name: "HelmWorkloadInstanceID", Kind: Integer, Filterable: true, references: "helm_workload_instances"},
		},
	},
}

// Row is a stored v0 object. Values has a string, an int64, a bool or nil for each field of the resource: see [Kind].
// Times are microseconds since 1970.
type Row struct {
	ID                   int64
	CreatedAt, UpdatedAt int64
	DeletedAt            *int64 // nil for a live row
	Values               []any
}

// columns are the columns of a row, in the order of boundedColumns.
func (r *Resource) columns() string { return r.columnList(Field.Column) }

// columnList lists the columns of a row, in the order of scan, with an expression for each field.
func (r *Resource) columnList(of func(Field) string) string {
	columns := []string{"id", "createdat", "updatedat", "deletedat"}
	for _, f := range r.Fields {
		columns = append(columns, of(f))
	}
	return strings.Join(columns, ", ")
}

// scan reads a row of boundedColumns. Typed targets make it independent of the driver's representation of BOOLEAN and TEXT.
func (r *Resource) scan(scan func(...any) error) (Row, error) {
	out := Row{Values: make([]any, len(r.Fields))}
	targets := []any{&out.ID, &out.CreatedAt, &out.UpdatedAt, &out.DeletedAt}
	for _, f := range r.Fields {
		switch f.Kind {
		case Integer, Timestamp:
			targets = append(targets, new(sql.NullInt64))
		case Boolean:
			targets = append(targets, new(sql.NullBool))
		case Text, Document:
			targets = append(targets, new(sql.NullString))
		}
	}
	if err := scan(targets...); err != nil {
		return Row{}, err
	}
	for i, target := range targets[len(targets)-len(r.Fields):] {
		switch v := target.(type) {
		case *sql.NullInt64:
			if v.Valid {
				out.Values[i] = v.Int64
			}
		case *sql.NullBool:
			if v.Valid {
				out.Values[i] = v.Bool
			}
		case *sql.NullString:
			if v.Valid {
				out.Values[i] = v.String
			}
		}
	}
	return out, nil
}
