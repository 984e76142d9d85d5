package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// errEmptyPayload is the answer to a body without members.
var errEmptyPayload = &httpError{http.StatusBadRequest, "JSON payload is empty"}

// maxMembers limits the members of an object, and the elements of a list, that are checked. No object has as many fields.
const maxMembers = 1000

var errTooManyMembers = &httpError{http.StatusBadRequest, "Unsupported fields are not allowed : the object has more than 1000 members"}

// serverFields are the fields that only the server sets.
var serverFields = []string{"ID", "CreatedAt", "UpdatedAt", "DeletedAt"}

// nameCheck is how the names in a body are checked.
type nameCheck int

const (
	onCreate nameCheck = iota
	onUpdate           // an association has an error of its own
)

// check returns the JSON of each field of an object, or the error of its names.
func (c nameCheck) check(r *store.Resource, object json.RawMessage) ([]json.RawMessage, error) {
	fields := make([]json.RawMessage, len(r.Fields))
	var reserved, associated, unknown nameList
	count := 0
	if object[0] == '{' { // or null
		for quoted, value := range members(object) {
			if count++; count > maxMembers {
				return nil, errTooManyMembers
			}
			name := fieldName(quoted)
			i, known := r.Field(name)
			switch {
			case hasName(serverFields, name):
				reserved.add(name)
			case known:
				fields[i] = value
			case c == onUpdate && hasName(r.Associations, name):
				associated.add(name)
			default:
				unknown.add(name)
			}
		}
	}
	switch {
	case count == 0:
		return nil, errEmptyPayload
	case len(reserved) > 0:
		return nil, &httpError{http.StatusBadRequest, "Update of GORM Model fields is not allowed : " + reserved.String()}
	case len(associated) > 0:
		return nil, &httpError{http.StatusBadRequest, "Update of associated objects is not allowed. Use PUT for each associated object : " + associated.String()}
	case len(unknown) > 0:
		return nil, &httpError{http.StatusBadRequest, "Unsupported fields are not allowed : " + unknown.String()}
	}
	return fields, nil
}

// hasName reports whether a list has a name, in any case, as Threeport's API compares names.
func hasName(list []string, name string) bool {
	return slices.ContainsFunc(list, func(one string) bool { return strings.EqualFold(one, name) })
}

// maxNameBytes limits a name as an error quotes it, and maxNames the number of names in an error.
const (
	maxNameBytes = 128
	maxNames     = 20
)

// fieldName decodes the name of a member. No field has a name that is longer than the result.
func fieldName(quoted json.RawMessage) (name string) {
	if len(quoted) > len(`\u0000`)*maxNameBytes || json.Unmarshal(quoted, &name) != nil || len(name) > maxNameBytes {
		return "(a name of more than 128 bytes)"
	}
	return name
}

// nameList has the names of an error.
type nameList []string

// add adds a name once, up to one more than maxNames.
func (l *nameList) add(name string) {
	if len(*l) <= maxNames && !slices.Contains(*l, name) {
		*l = append(*l, name)
	}
}

// String is the names in a stable order.
func (l nameList) String() string {
	names := slices.Clone(l[:min(len(l), maxNames)])
	slices.Sort(names)
	if len(l) > maxNames {
		names = append(names, "…")
	}
	return strings.Join(names, ",")
}
