package threeport

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEventChanges(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.FixedZone("", 3600))
	event := func(edit func(*WorkloadEvent)) WorkloadEvent {
		e := WorkloadEvent{
			ID: new(bigID), RuntimeEventUID: new("uid"), Type: new("Normal"), Reason: new("Created"), Message: new("m"),
			Timestamp: new(at), WorkloadInstanceID: new(bigID), WorkloadResourceInstanceID: new(bigID + 1),
		}
		edit(&e)
		return e
	}
	none := func(*WorkloadEvent) {}
	for _, tc := range []struct {
		reason     string
		patch, row func(*WorkloadEvent)
		want       string
	}{
		{"the same", none, none, ""},
		{"the same moment, to the microsecond", none, func(e *WorkloadEvent) { e.Timestamp = new(at.UTC().Truncate(time.Microsecond)) }, ""},
		{"another moment", none, func(e *WorkloadEvent) { e.Timestamp = new(at.Add(time.Microsecond)) }, "Timestamp"},
		{"an unsent field", func(e *WorkloadEvent) { *e = WorkloadEvent{Message: new("m")} }, none, ""},
		{"a field that the server sets", func(e *WorkloadEvent) { e.ID, e.UpdatedAt = new(int64(1)), &at }, none, ""},
		{"a character that the server cannot store", func(e *WorkloadEvent) { e.Message = new("a\x00b") }, func(e *WorkloadEvent) { e.Message = new("a\uFFFDb") }, ""},
		{"an unsendable time", func(e *WorkloadEvent) { e.Timestamp = &time.Time{} }, func(e *WorkloadEvent) { e.Message = nil }, ""},
		{"an ID that is the same as a float", none, func(e *WorkloadEvent) { e.WorkloadInstanceID = new(bigID + 1) }, "WorkloadInstanceID"},
		{
			"everything", func(e *WorkloadEvent) { e.HelmWorkloadInstanceID = new(bigID) },
			func(e *WorkloadEvent) { *e = WorkloadEvent{} },
			"RuntimeEventUID Type Reason Message Timestamp WorkloadInstanceID WorkloadResourceInstanceID HelmWorkloadInstanceID",
		},
	} {
		if got := strings.Join(event(tc.patch).Changes(event(tc.row)), " "); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
	}
}

func TestResourceInstanceChanges(t *testing.T) {
	row := WorkloadResourceInstance{LastOperation: new(OperationAdded), RuntimeDefinition: json.RawMessage(`{"a":1,"b":"\ufffd"}`)}
	for _, tc := range []struct {
		reason string
		patch  WorkloadResourceInstance
		want   []string
	}{
		{"the same", WorkloadResourceInstance{LastOperation: new(OperationAdded), RuntimeDefinition: json.RawMessage(`{"b":"\u0000", "a":1.0}`)}, nil},
		{"unsent fields", WorkloadResourceInstance{}, nil},
		{"both", WorkloadResourceInstance{LastOperation: new(OperationDeleted), RuntimeDefinition: json.RawMessage(`{}`)}, []string{"LastOperation", "RuntimeDefinition"}},
		{"an unsendable time", WorkloadResourceInstance{LastOperation: new(OperationDeleted), ScheduledForDeletion: &time.Time{}}, nil},
	} {
		if got := tc.patch.Changes(row); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
	}
}

func TestResourceInstanceChanges_RedactedRow(t *testing.T) {
	for _, tc := range []struct {
		reason, definition, row string
		changes                 bool
	}{
		{"the control plane redacts more than the agent", `{"a":"hush","b":{"c":1}}`, `{"a":"[redacted]","b":"[redacted 0123456789abcdef]"}`, false},
		{"another field differs", `{"a":"hush","b":1}`, `{"a":"[redacted]","b":2}`, true},
		{"a field is missing", `{"a":"hush"}`, `{}`, true},
		{"the agent redacts more than before", `{"a":"[redacted]"}`, `{"a":"hush"}`, true},
	} {
		patch := WorkloadResourceInstance{RuntimeDefinition: json.RawMessage(tc.definition)}
		got := patch.Changes(WorkloadResourceInstance{RuntimeDefinition: json.RawMessage(tc.row)})
		if (len(got) > 0) != tc.changes {
			t.Errorf("%s: got %q, want a change: %t", tc.reason, got, tc.changes)
		}
	}
}

func TestSameJSON(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{`{"a":[1,{"b":null}],"c":true}`, ` {"c":true, "a":[1,{"b":null}]}`, true},
		{`"é/<"`, `"\u00e9\/\u003c"`, true},
		{`9223372036854775807`, `9223372036854775806`, false},
		{`12345678901234567890.1`, `12345678901234567890.10`, true},
		{`1`, `"1"`, false},
		{`{"a":1}`, `{"b":1}`, false},
		{`{"a":null}`, `{}`, false},
		{`[1,2]`, `[2,1]`, false},
		{`[1]`, `[1,2]`, false},
		{`[]`, `{}`, false},
		{`null`, `false`, false},
		{`1 2`, `1 3`, false},
		{``, ``, false},
		{`{`, `{`, false},
		{`1`, ``, false},
		// Numbers.
		{`100`, `1e2`, true},
		{`1.50`, `15E-1`, true},
		{`0.001`, `1e-3`, true},
		{`10`, `1`, false},
		{`0.1`, `1`, false},
		{`-1`, `1`, false},
		{`-0`, `0.0e7`, true},
		{`1e999999999`, `10e999999998`, true},
		{`1e999999999`, `1e999999998`, false},
		{`1e99999999999`, `1e99999999999`, true},
		{`1e99999999999`, `10e99999999998`, false}, // no database has it
		{`1e99999999999`, `0`, false},
	} {
		if got := sameJSON(json.RawMessage(tc.a), json.RawMessage(tc.b)); got != tc.same {
			t.Errorf("%s and %s: got %v", tc.a, tc.b, got)
		}
		if got := sameJSON(json.RawMessage(tc.b), json.RawMessage(tc.a)); got != tc.same {
			t.Errorf("%s and %s: got %v", tc.b, tc.a, got)
		}
	}
}
