package threeport

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Changes returns the names of the fields that an update with e would change in a row; none if e cannot be sent.
func (e WorkloadEvent) Changes(row WorkloadEvent) []string {
	e, err := e.clean()
	if err != nil {
		return nil
	}
	var names []string
	for _, f := range []struct {
		name    string
		changes bool
	}{
		{"RuntimeEventUID", sets(e.RuntimeEventUID, row.RuntimeEventUID)},
		{"Type", sets(e.Type, row.Type)},
		{"Reason", sets(e.Reason, row.Reason)},
		{"Message", sets(e.Message, row.Message)},
		{"Timestamp", setsTime(e.Timestamp, row.Timestamp)},
		{"WorkloadInstanceID", sets(e.WorkloadInstanceID, row.WorkloadInstanceID)},
		{"WorkloadResourceInstanceID", sets(e.WorkloadResourceInstanceID, row.WorkloadResourceInstanceID)},
		{"HelmWorkloadInstanceID", sets(e.HelmWorkloadInstanceID, row.HelmWorkloadInstanceID)},
	} {
		if f.changes {
			names = append(names, f.name)
		}
	}
	return names
}

// Changes returns which of LastOperation and RuntimeDefinition an update with r would change in a row; none if r cannot be
// sent. Redacted values of the row count as unchanged.
func (r WorkloadResourceInstance) Changes(row WorkloadResourceInstance) []string {
	r, err := r.clean()
	if err != nil {
		return nil
	}
	var names []string
	if sets(r.LastOperation, row.LastOperation) {
		names = append(names, "LastOperation")
	}
	if r.RuntimeDefinition != nil && !sameJSON(r.RuntimeDefinition, row.RuntimeDefinition) {
		names = append(names, "RuntimeDefinition")
	}
	return names
}

// sets reports whether a field of an update changes that of a row. A nil field does not.
func sets[T comparable](field, of *T) bool { return field != nil && (of == nil || *field != *of) }

// setsTime is sets for a time, which databases keep to the microsecond.
func setsTime(field, of *time.Time) bool {
	return field != nil && (of == nil || !field.Truncate(time.Microsecond).Equal(of.Truncate(time.Microsecond)))
}

// sameJSON compares two documents as a database with a JSON type does. The order of keys and the notation of strings and
// numbers do not matter, and numbers are compared exactly. Invalid JSON equals nothing.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return json.Valid(a)
	}
	x, err := decodeExactly(a)
	if err != nil {
		return false
	}
	y, err := decodeExactly(b)
	return err == nil && sameValue(x, y)
}

func decodeExactly(raw json.RawMessage) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

// sameValue compares decoded values. A redacted value in b, the row, equals any value: the control plane redacts rows for agents
// by rules that the agent does not know. Otherwise each resync would find a difference that no repair removes.
func sameValue(a, b any) bool {
	if text, ok := b.(string); ok && IsRedacted(text) {
		return true
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, value := range a {
			if other, ok := b[key]; !ok || !sameValue(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	case json.Number:
		b, ok := b.(json.Number)
		return ok && (a == b || decimalOf(a) == decimalOf(b))
	}
	return a == b // a string, a boolean or null
}

// decimal is a number as 0.DIGITS × 10^exponent, without leading and trailing zeros. Its value could be too large to compute.
type decimal struct {
	negative bool
	digits   string
	exponent int64
}

func decimalOf(n json.Number) decimal {
	text, negative := strings.CutPrefix(string(n), "-")
	mantissa, power, _ := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent, err := strconv.ParseInt(power, 10, 32)
	if err != nil && power != "" {
		return decimal{digits: string(n)} // beyond any database: equal to the same text only
	}
	exponent += int64(len(whole))
	digits := strings.TrimLeft(whole+fraction, "0")
	exponent -= int64(len(whole) + len(fraction) - len(digits))
	digits = strings.TrimRight(digits, "0")
	if digits == "" {
		return decimal{}
	}
	return decimal{negative, digits, exponent}
}
