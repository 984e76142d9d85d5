package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// typedCondition is a condition with its type.
type typedCondition struct {
	name string
	condition
	minor bool // its severity says that it does not count for the whole
}

// readConditions reads a list or a table of conditions, under whatever name, and reports whether the field has one.
func (v *statusScan) readConditions(f statusField, value any) bool {
	named := f.key == "conditions" || strings.HasSuffix(f.key, "Conditions")
	standard := f.ofWhole() && f.key == "conditions"
	var found []typedCondition
	switch value := value.(type) {
	case []any:
		if !named && !areConditions(value) {
			return false
		}
		if !v.budget.take(len(value)) {
			return true
		}
		if namesPause(f.key) {
			return false
		}
		found = v.conditionList(f.path, standard, value)
	case map[string]any:
		if !named {
			return false
		}
		if !v.budget.take(len(value)) {
			return true
		}
		found = v.conditionTable(value)
	default:
		v.noteConditions(standard)
		return standard
	}
	for _, c := range found {
		v.readCondition(f.path, c)
	}
	return true
}

// noteConditions notes malformed conditions if they are in the standard place.
func (v *statusScan) noteConditions(standard bool) {
	if standard {
		v.object.note("status", "conditions")
	}
}

// readConditionFields reads a condition that a part of the status is itself, or has in fields with a common prefix:
// nodeConditionType and nodeConditionStatus.
func (v *statusScan) readConditionFields(path []string, in map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(in)) {
		prefix, ok := strings.CutSuffix(key, "Type")
		statusKey := prefix + "Status"
		if key == "type" {
			ok, statusKey = len(path) > 0, "status"
		}
		name, isText := in[key].(string)
		if ok && isText && areConditions([]any{map[string]any{"type": name, "status": in[statusKey]}}) {
			v.readCondition(path, v.parseCondition(false, name, map[string]any{
				"status": in[statusKey], "reason": in["reason"], "message": in["message"], "lastTransitionTime": in["lastTransitionTime"],
			}))
		}
	}
}

// areConditions reports whether all items of a list have a type and a standard status.
func areConditions(list []any) bool {
	for _, item := range list {
		in, ok := item.(map[string]any)
		if _, typed := in["type"].(string); !ok || !typed {
			return false
		}
		if text, ok := in["status"].(string); !ok || text != "True" && text != "False" && text != "Unknown" {
			return false
		}
	}
	return len(list) > 0
}

// conditionList parses a list of conditions. The latest of a type counts, because some lists are logs of states.
func (v *statusScan) conditionList(path []string, standard bool, list []any) []typedCondition {
	var out []typedCondition
	at := map[string]int{}
	for i, item := range list {
		in, ok := item.(map[string]any)
		if !ok {
			v.noteConditions(standard)
			continue
		}
		name, isCondition := v.conditionType(path, i, in)
		if !isCondition {
			continue
		}
		c := v.parseCondition(standard, name, in)
		old, again := at[name]
		switch {
		case !again:
			at[name] = len(out)
			out = append(out, c)
		case out[old].since.IsZero() || c.since.IsZero() || out[old].since.Equal(c.since):
			if out[old].status != c.status {
				v.noteConditions(standard)
			}
			out[old] = c
		case c.since.After(out[old].since):
			out[old] = c
		}
	}
	if standard {
		return v.latestOfLog(out)
	}
	return out
}

// conditionType returns the type of a condition, which some kinds call its name; false if the item is no condition. Such
// an item of a part is read as a part. A phase with its time is an entry of a log, which says nothing about the present.
func (v *statusScan) conditionType(path []string, i int, in map[string]any) (string, bool) {
	if name, ok := in["type"].(string); ok {
		return name, true
	}
	_, isLog := in["phase"].(string)
	name, ok := in["name"].(string)
	switch {
	case in["type"] == nil && isLog:
		return "", false
	case in["type"] == nil && ok:
		return name, true
	case len(path) == 0:
		v.noteConditions(true)
	default:
		v.readTable(append(slices.Clip(path), fmt.Sprintf("conditions[%d]", i)), in)
	}
	return "", false
}

// latestOfLog returns the latest condition alone if the conditions are a log whose types are the states.
func (v *statusScan) latestOfLog(all []typedCondition) []typedCondition {
	isLog := false
	latest := -1
	for i, c := range all {
		if c.status != "True" || c.since.IsZero() {
			return all
		}
		isLog = isLog || strings.EqualFold(c.name, v.statusText("state")) || strings.EqualFold(c.name, v.statusText("phase"))
		if latest < 0 || !c.since.Before(all[latest].since) {
			latest = i
		}
	}
	if isLog {
		return all[latest : latest+1]
	}
	return all
}

// statusText returns a text at the top of the status; empty if there is none.
func (v *statusScan) statusText(key string) string {
	status, _ := v.object.object["status"].(map[string]any)
	text, _ := status[key].(string)
	return text
}

// conditionTable parses a table of conditions by their types. Its values are words, truth values or conditions.
func (v *statusScan) conditionTable(in map[string]any) []typedCondition {
	var out []typedCondition
	for _, name := range slices.Sorted(maps.Keys(in)) {
		switch value := in[name].(type) {
		case map[string]any:
			out = append(out, v.parseCondition(false, name, value))
		case string, bool:
			out = append(out, v.parseCondition(false, name, map[string]any{"status": value}))
		}
	}
	return out
}

// statusByWord returns the status of a condition that a word means; empty if it means none.
func statusByWord(word string) string {
	switch classify(word) {
	case good, done:
		return "True"
	case bad:
		return "False"
	case busy, unknownWord:
		return "Unknown"
	case unclassified, neutral, step, rest:
	}
	return ""
}

// parseCondition parses a condition. Some controllers write a word such as Online or Degraded in place of a status.
func (v *statusScan) parseCondition(standard bool, name string, in map[string]any) typedCondition {
	inner := &fields{kind: v.object.kind, object: v.object.object}
	c := typedCondition{name: name, condition: inner.readCondition(name, in), minor: in["severity"] == "Info"}
	if text, ok := in["status"].(string); ok && c.status == "" {
		if c.status = statusByWord(text); c.status != "" {
			c.reason = text
			return c
		}
	}
	if inner.malformed != "" && standard {
		v.object.note("status", "conditions", name)
	}
	return c
}
