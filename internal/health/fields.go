package health

import (
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fields reads an object that may be malformed. A field of an unexpected type reads as absent and is noted. An object
// with a noted field is never Healthy.
type fields struct {
	kind      schema.GroupKind
	object    map[string]any
	malformed string // the path of the first malformed field; empty for none
	trace     *Trace
}

// subject returns the name of the object in a sentence: "Deployment web".
func (f *fields) subject() string {
	if name := f.text("metadata", "name"); name != "" {
		return f.kind.Kind + " " + name
	}
	return f.kind.Kind
}

// value returns the value at a path; nil if there is none.
func (f *fields) value(path ...string) any {
	v, _, err := unstructured.NestedFieldNoCopy(f.object, path...)
	if err != nil {
		f.note(path...)
		return nil
	}
	f.trace.read(path, v)
	return v
}

func (f *fields) note(path ...string) {
	if f.malformed == "" {
		f.malformed = strings.Join(path, ".")
	}
}

func (f *fields) text(path ...string) string {
	switch v := f.value(path...).(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		f.note(path...)
		return ""
	}
}

// number returns a count or a generation. A negative number is malformed.
func (f *fields) number(path ...string) (int64, bool) {
	v := f.value(path...)
	if v == nil {
		return 0, false
	}
	n, ok := whole(v)
	if !ok {
		f.note(path...)
	}
	return n, ok
}

func (f *fields) numberOr(fallback int64, path ...string) int64 {
	if n, ok := f.number(path...); ok {
		return n
	}
	return fallback
}

// whole returns a whole number of JSON. Some decoders return floats.
func whole(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, n >= 0
	case float64:
		if n >= 0 && n < 1<<53 && n == math.Trunc(n) {
			return int64(n), true
		}
	}
	return 0, false
}

// generation returns a generation that a controller wrote. Some write it as a string.
func (f *fields) generation(path ...string) (int64, bool) {
	v := f.value(path...)
	if v == nil {
		return 0, false
	}
	n, ok := numeral(v)
	if !ok {
		f.note(path...)
	}
	return n, ok
}

// numeral returns a whole number that may be a string.
func numeral(v any) (int64, bool) {
	if text, ok := v.(string); ok {
		n, err := strconv.ParseInt(text, 10, 64)
		return n, err == nil && n >= 0
	}
	return whole(v)
}

// list returns the items of a list.
func (f *fields) list(path ...string) []any {
	v := f.value(path...)
	list, ok := v.([]any)
	if !ok && v != nil {
		f.note(path...)
	}
	return list
}

// table returns an object within the object.
func (f *fields) table(path ...string) map[string]any {
	v := f.value(path...)
	table, ok := v.(map[string]any)
	if !ok && v != nil {
		f.note(path...)
	}
	return table
}

// flag returns a boolean; false if there is none.
func (f *fields) flag(path ...string) bool {
	switch v := f.value(path...).(type) {
	case nil:
		return false
	case bool:
		return v
	default:
		f.note(path...)
		return false
	}
}

// time returns a time; zero if there is none.
func (f *fields) time(path ...string) time.Time {
	text := f.text(path...)
	if text == "" {
		return time.Time{}
	}
	t, ok := moment(text)
	if !ok {
		f.note(path...)
	}
	return t
}

// created returns the creation time; zero if there is none.
func (f *fields) created() time.Time { return f.time("metadata", "creationTimestamp") }

// moment parses a time. The result is zero for the Unix epoch, which some kinds write for none.
func moment(v any) (time.Time, bool) {
	text, ok := v.(string)
	if !ok {
		return time.Time{}, false
	}
	t, ok := ParseTime(text)
	if ok && t.Unix() <= 0 {
		return time.Time{}, true
	}
	return t, ok
}

// timeLayouts are the forms in which controllers write times. One without a zone is in UTC.
var timeLayouts = []string{
	time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02 15:04:05 -0700 MST", "2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05",
}

// ParseTime parses a time as Kubernetes writes it, or in a similar form: 2026-01-31T12:00:00+0000, or without a zone.
func ParseTime(text string) (t time.Time, ok bool) {
	if len(text) < len(time.DateTime) || text[0] < '0' || text[0] > '9' { // most texts are no time
		return time.Time{}, false
	}
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// condition is a status condition; zero if the object has none of the type.
type condition struct {
	status, reason, message string
	since                   time.Time // the last transition; zero if unknown
	stale                   bool      // the condition is about an earlier generation of the object
}

func (f *fields) condition(name string) condition {
	conditions := f.value("status", "conditions")
	list, ok := conditions.([]any)
	if !ok && conditions != nil {
		f.note("status", "conditions")
	}
	var found condition
	for _, item := range list {
		c, ok := item.(map[string]any)
		if !ok {
			f.note("status", "conditions")
			continue
		}
		if t, ok := c["type"].(string); !ok || t != name {
			if !ok {
				f.note("status", "conditions")
			}
			continue
		}
		if found.status != "" && found.status != c["status"] { // types are unique
			f.note("status", "conditions", name)
		}
		found = f.readCondition(name, c)
		if f.trace != nil {
			f.trace.read([]string{"status", "conditions[" + name + "]"}, found.status)
		}
	}
	return found
}

// readCondition reads a condition. Fields that cannot be read are left out, except for the status, which is noted.
func (f *fields) readCondition(name string, c map[string]any) condition {
	var out condition
	out.reason, _ = c["reason"].(string)
	out.message, _ = c["message"].(string)
	out.since, _ = moment(c["lastTransitionTime"])
	var ok bool
	if out.status, ok = ConditionStatus(c["status"]); !ok {
		f.note("status", "conditions", name)
	}
	if observed, ok := numeral(c["observedGeneration"]); ok {
		out.stale = observed < f.numberOr(0, "metadata", "generation")
	}
	return out
}

// ConditionStatus returns the status of a condition: True, False or Unknown. Some controllers write a boolean, or another case.
func ConditionStatus(v any) (status string, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return "True", true
		}
		return "False", true
	case string:
		for _, status := range []string{"True", "False", "Unknown"} {
			if strings.EqualFold(v, status) {
				return status, true
			}
		}
	}
	return "", false
}
