package health

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Trace has how a verdict came about, for people. The nil Trace collects nothing.
type Trace struct {
	// By is what decided: a rule, the built-in rule of a kind, or the conventions.
	By string
	// Fields are the fields that were read, in their order, each with its value or its meaning: "status.readyReplicas: 2".
	Fields []string

	at   string // the field that a status scan reads
	seen map[string]bool
}

// maxTraceFields bounds the fields of a trace. A status may have thousands.
const maxTraceFields = 40

// decidedBy notes which rule for a kind decided.
func (t *Trace) decidedBy(rule string, kind schema.GroupKind) {
	if t != nil {
		t.By = rule + kind.String()
	}
}

// read adds a field with its value. Tables and lists are left out, because their fields are read too, and the name of the object.
func (t *Trace) read(path []string, value any) {
	if t == nil || value == nil || len(path) == 2 && path[1] == "name" {
		return
	}
	if text := textOf(value); text != "" {
		t.add(strings.Join(path, ".") + text)
	}
}

// reading notes which field of the status is read, and its value.
func (t *Trace) reading(path []string, field string, value any) {
	if t != nil {
		t.at = strings.Join(append([]string{"status"}, path...), ".") + "." + field + textOf(value)
	}
}

// textOf returns a value behind a colon; empty for a table or a list.
func textOf(value any) string {
	switch value.(type) {
	case nil, map[string]any, []any:
		return ""
	}
	return ": " + brief(fmt.Sprint(value))
}

// says adds what the field that is read says.
func (t *Trace) says(text string) {
	if t != nil {
		t.add(t.at + " → " + text)
	}
}

func (t *Trace) add(field string) {
	if t.seen == nil {
		t.seen = map[string]bool{}
	}
	if !t.seen[field] && len(t.Fields) < maxTraceFields {
		t.seen[field], t.Fields = true, append(t.Fields, field)
	}
}
