package rules

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/health"
)

// Condition is a status condition, as expressions see it. An absent condition has an empty status.
//
// Source: API conventions, "Typical status properties"; severity is Knative's and Cluster API's.
type Condition struct {
	Status             string    `cel:"status"`
	Reason             string    `cel:"reason"`
	Message            string    `cel:"message"`
	Severity           string    `cel:"severity"`
	ObservedGeneration int64     `cel:"observedGeneration"`
	LastTransitionTime time.Time `cel:"lastTransitionTime"`
	// Stale means that the condition is about an earlier generation of the object.
	Stale bool `cel:"stale"`
}

// findCondition returns the condition of a type. It is an error if its status cannot be read, or if two of the type have different
// statuses. Other fields that cannot be read are left out.
func findCondition(object map[string]any, name string) (Condition, error) {
	list, err := findList(object, []string{"status", "conditions"})
	if err != nil {
		return Condition{}, err
	}
	var found Condition
	for _, item := range list {
		c, _ := item.(map[string]any)
		if t, _ := c["type"].(string); t != name {
			continue
		}
		read, err := readCondition(object, c)
		if err != nil {
			return Condition{}, fmt.Errorf("condition %s: %w", name, err)
		}
		if found.Status != "" && found.Status != read.Status {
			return Condition{}, fmt.Errorf("duplicate condition %s, with different statuses", name)
		}
		found = read
	}
	return found, nil
}

func readCondition(object, c map[string]any) (Condition, error) {
	status, ok := health.ConditionStatus(c["status"])
	if !ok {
		text, err := findText(c, []string{"status"})
		if err != nil {
			return Condition{}, err
		}
		status = text // a word of its own, which a rule may compare
	}
	out := Condition{Status: status}
	out.Reason, _ = c["reason"].(string)
	out.Message, _ = c["message"].(string)
	out.Severity, _ = c["severity"].(string)
	out.LastTransitionTime, _ = findTime(c, []string{"lastTransitionTime"})
	observed, there, _ := findNumber(c, []string{"observedGeneration"})
	generation, _, err := findNumber(object, []string{"metadata", "generation"})
	out.ObservedGeneration, out.Stale = observed, there && observed < generation
	return out, err
}

// find returns the value at a path; nil if there is none. It is an error if the path leads through a value that is no
// object.
func find(object map[string]any, path []string) (any, error) {
	var at any = object
	for i, name := range path {
		if at == nil {
			return nil, nil
		}
		m, ok := at.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is %s, not an object", strings.Join(path[:i], "."), typeName(at))
		}
		at = m[name]
	}
	return at, nil
}

func mistyped(path []string, v any, want string) error {
	return fmt.Errorf("%s is %s, not %s", strings.Join(path, "."), typeName(v), want)
}

func findText(object map[string]any, path []string) (string, error) {
	v, err := find(object, path)
	if v == nil || err != nil {
		return "", err
	}
	text, ok := v.(string)
	if !ok {
		return "", mistyped(path, v, "a string")
	}
	return text, nil
}

func findFlag(object map[string]any, path []string) (bool, error) {
	v, err := find(object, path)
	if v == nil || err != nil {
		return false, err
	}
	flag, ok := v.(bool)
	if !ok {
		return false, mistyped(path, v, "a boolean")
	}
	return flag, nil
}

func findList(object map[string]any, path []string) ([]any, error) {
	v, err := find(object, path)
	if v == nil || err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok {
		return nil, mistyped(path, v, "a list")
	}
	return list, nil
}

// findNumber reads a whole number. It may be a string, because some controllers write generations so.
func findNumber(object map[string]any, path []string) (n int64, there bool, err error) {
	v, err := find(object, path)
	if v == nil || err != nil {
		return 0, false, err
	}
	if n, there = wholeNumber(v); !there {
		err = mistyped(path, v, "a whole number")
	}
	return n, there, err
}

func wholeNumber(v any) (n int64, ok bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), v == math.Trunc(v) && math.Abs(v) < 1<<53
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	}
	return 0, false
}

// findTime reads a time; zero if there is none.
func findTime(object map[string]any, path []string) (time.Time, error) {
	text, err := findText(object, path)
	if text == "" || err != nil {
		return time.Time{}, err
	}
	t, ok := health.ParseTime(text)
	if !ok {
		return time.Time{}, mistyped(path, text, "a time such as 2026-01-31T12:00:00Z")
	}
	return t.UTC(), nil
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "of another type"
}
