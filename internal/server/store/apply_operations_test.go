package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// resourceOf is the row that v0 shows for a resource.
func resourceOf(t *testing.T, s *Store, id int64) string {
	t.Helper()
	o, err := s.Get(t.Context(), resource(t, "WorkloadResourceInstance"), id)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(o.Values[2], " ", o.Values[3])
}

// definitionOf is the stored definition of an object of cluster one.
func definitionOf(t *testing.T, s *Store, uid string) string {
	t.Helper()
	d, err := s.Definition(t.Context(), "one", uid)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %d %s < %s", d.Operation, d.Version, d.Current, d.Previous)
}

// Edits in quick succession are one change: the previous definition is the last one that was current for a minute.
func TestApplyOperations_EditsWithinMinute_KeepPreviousDefinition(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		var previousAt, changedAt time.Time
		for version, step := range []struct {
			reason         string
			later          bool // than a minute after the last change
			spec, previous string
		}{
			{"the first version", false, "1", ""},
			{"the first change", false, "2", "1"},
			{"an edit within a minute", false, "3", "1"},
			{"another one", false, "4", "1"},
			{"an edit of a spec that was current for a minute", true, "5", "4"},
			{"the edit is reverted within a minute", false, "4", "5"},
			{"a deletion within a minute", false, "", "4"},
		} {
			if step.later {
				mustExec(t, s, "UPDATE definitions SET changedat = changedat - ? WHERE uid = 'a'", time.Minute.Microseconds())
			}
			one := operationOf(w.helm, 0, "a", threeport.OperationModified, int64(version)+1)
			one.Operation.Definition = json.RawMessage(`{"spec":"` + step.spec + `"}`)
			if step.spec == "" {
				one.Operation.Operation, one.Operation.Definition = threeport.OperationDeleted, nil
			}
			apply(t, s, "one", one)
			d, err := s.Definition(t.Context(), "one", "a")
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			if step.previous != "" {
				want = `{"spec":"` + step.previous + `"}`
			}
			if string(d.Previous) != want {
				t.Errorf("%s: the previous definition is %s, want %s", step.reason, d.Previous, want)
			}
			if !d.ChangedAt.After(changedAt) {
				t.Errorf("%s: the spec changed at %s, want later than %s", step.reason, d.ChangedAt, changedAt)
			}
			if changedAt = *d.ChangedAt; d.PreviousAt != nil {
				if d.PreviousAt.Before(previousAt) || !d.PreviousAt.Before(changedAt) {
					t.Errorf("%s: the previous definition is of %s, want from %s to %s", step.reason, d.PreviousAt, previousAt, changedAt)
				}
				previousAt = *d.PreviousAt
			}
		}
		storedBytesOf(t, s)
	})
}

func TestApplyOperations(t *testing.T) {
	const added, modified, deleted = threeport.OperationAdded, threeport.OperationModified, threeport.OperationDeleted
	for _, test := range []struct {
		reason     string
		reports    []threeport.Report // of the resource {r}, one set each
		outcomes   []string
		row        string
		definition string // of object a
	}{
		{
			reason:     "a change keeps the previous definition",
			reports:    []threeport.Report{operationOf(ofR, 1, "a", added, 3), operationOf(ofR, 1, "a", modified, 5)},
			outcomes:   []string{"created", "updated"},
			row:        `MODIFIED {"uid":"a","version":5}`,
			definition: `MODIFIED 5 {"uid":"a","version":5} < {"uid":"a","version":3}`,
		},
		{
			reason:     "a late report reverts nothing",
			reports:    []threeport.Report{operationOf(ofR, 1, "a", modified, 5), operationOf(ofR, 1, "a", added, 3), operationOf(ofR, 1, "a", modified, 5)},
			outcomes:   []string{"created", "stale 5", "unchanged"},
			row:        `MODIFIED {"uid":"a","version":5}`,
			definition: `MODIFIED 5 {"uid":"a","version":5} < `,
		},
		{
			reason:     "a deletion is final, whatever its version",
			reports:    []threeport.Report{operationOf(ofR, 1, "a", modified, 5), operationOf(ofR, 1, "a", deleted, 4), operationOf(ofR, 1, "a", modified, 9), operationOf(ofR, 1, "a", deleted, 4)},
			outcomes:   []string{"created", "updated", "stale 5", "unchanged"},
			row:        `DELETED {"uid":"a","version":5}`,
			definition: `DELETED 5  < {"uid":"a","version":5}`,
		},
		{
			reason:     "a deletion without an addition",
			reports:    []threeport.Report{operationOf(ofR, 1, "a", deleted, 4), operationOf(ofR, 1, "a", added, 3)},
			outcomes:   []string{"created", "stale 4"},
			row:        `DELETED <nil>`,
			definition: `DELETED 4  < `,
		},
		{
			reason:     "deleted and created again",
			reports:    []threeport.Report{operationOf(ofR, 1, "a", added, 3), operationOf(ofR, 1, "a", deleted, 4), operationOf(ofR, 1, "b", added, 6)},
			outcomes:   []string{"created", "updated", "created"},
			row:        `ADDED {"uid":"b","version":6}`,
			definition: `DELETED 4  < {"uid":"a","version":3}`,
		},
		{
			reason:     "the late deletion of an object does not delete its successor",
			reports:    []threeport.Report{operationOf(ofR, 1, "a", added, 3), operationOf(ofR, 1, "b", added, 6), operationOf(ofR, 1, "a", deleted, 4)},
			outcomes:   []string{"created", "created", "updated"},
			row:        `ADDED {"uid":"b","version":6}`,
			definition: `DELETED 4  < {"uid":"a","version":3}`,
		},
		{
			reason:     "one object in two workloads",
			reports:    []threeport.Report{operationOf(ofR, 1, "a", added, 3), operationOf(ofHelm, 0, "a", added, 3), operationOf(ofR, 1, "a", added, 3)},
			outcomes:   []string{"created", "updated", "updated"},
			row:        `ADDED {"uid":"a","version":3}`,
			definition: `ADDED 3 {"uid":"a","version":3} < `,
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			forEachDatabase(t, func(t *testing.T, s *Store) {
				t.Helper()
				w := newWorld(t, s)
				for i, report := range test.reports {
					if report.Instance = w.workload; report.Operation.ResourceInstanceID == 0 {
						report.Instance = w.helm
					} else {
						o := *report.Operation
						o.ResourceInstanceID = threeport.ID(w.resource)
						report.Operation = &o
					}
					expect(t, apply(t, s, "one", report), test.outcomes[i])
				}
				if got := resourceOf(t, s, w.resource); got != test.row {
					t.Errorf("row is %s, want %s", got, test.row)
				}
				if got := definitionOf(t, s, "a"); got != test.definition {
					t.Errorf("the definition is %s, want %s", got, test.definition)
				}
			})
		})
	}
}

// ofR and ofHelm are placeholders for the workloads of a world that is created later.
var ofR, ofHelm threeport.Instance

func TestApplyOperations_OneObjectOfTwoResources(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		other := create(t, s, workload, "other")
		second := create(t, s, "WorkloadResourceInstance", "{}", other.ID)
		of := threeport.Instance{Type: workload, ID: threeport.ID(other.ID)}
		expect(t, apply(t, s, "one",
			operationOf(w.workload, w.resource, "a", threeport.OperationAdded, 3),
			operationOf(of, second.ID, "a", threeport.OperationModified, 4),
		), "created", "updated")
		for id, want := range map[int64]string{w.resource: `ADDED {"uid":"a","version":3}`, second.ID: `MODIFIED {"uid":"a","version":4}`} {
			if got := resourceOf(t, s, id); got != want {
				t.Errorf("row is %s, want %s", got, want)
			}
		}
	})
}

func TestApplyOperations_CreationTime_OutlivesTheObject(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		created := func() string {
			for _, o := range readDetail(t, s, w.workload).Objects {
				if o.Created != nil {
					return o.Created.UTC().Format(time.RFC3339)
				}
			}
			return "unknown"
		}
		operation := func(version int64, operation, definition string) threeport.Report {
			r := operationOf(w.workload, w.resource, "a", operation, version)
			r.Operation.Definition = nil
			if definition != "" {
				r.Operation.Definition = json.RawMessage(definition)
			}
			return r
		}
		apply(t, s, "one", treeOf(w.workload, 1, nodeOf("a", "a", "Healthy")))
		for version, step := range []struct{ operation, definition, want string }{
			{threeport.OperationAdded, `{"metadata": {"name": "a"}}`, "unknown"},
			{threeport.OperationModified, `{"metadata": {"creationTimestamp": null}}`, "unknown"},
			{threeport.OperationModified, `{"metadata": {"creationTimestamp": "now"}}`, "unknown"},
			{threeport.OperationModified, `{"metadata": {"creationTimestamp": "2026-01-02T03:04:05Z"}}`, "2026-01-02T03:04:05Z"},
			{threeport.OperationDeleted, "", "2026-01-02T03:04:05Z"},
		} {
			apply(t, s, "one", operation(int64(version+1), step.operation, step.definition))
			if got := created(); got != step.want {
				t.Errorf("after version %d it was created at %s, want %s", version+1, got, step.want)
			}
		}
	})
}

// The first definition and the deletion are no changes of the spec. A change of the status leaves its time.
func TestApplyOperations_SpecChange_HasTime(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", treeOf(w.workload, 1, nodeOf("a", "a", "Healthy")))
		var last *time.Time
		for i, step := range []struct {
			reason, operation, definition string
			known, moves                  bool
		}{
			{"the first definition", threeport.OperationAdded, `{"spec": 1, "status": 1}`, false, false},
			{"another status", threeport.OperationModified, `{"spec": 1, "status": 2}`, false, false},
			{"another spec", threeport.OperationModified, `{"spec": 2, "status": 2}`, true, true},
			{"another status after it", threeport.OperationModified, `{"spec": 2, "status": 3}`, true, false},
			{"one more spec", threeport.OperationModified, `{"spec": 3, "status": 3}`, true, true},
			{"the deletion", threeport.OperationDeleted, "", false, false},
		} {
			r := operationOf(w.workload, w.resource, "a", step.operation, int64(i+1))
			if r.Operation.Definition = nil; step.definition != "" {
				r.Operation.Definition = json.RawMessage(step.definition)
			}
			apply(t, s, "one", r)
			got := readDetail(t, s, w.workload).Objects[0].SpecChanged
			if (got != nil) != step.known {
				t.Errorf("after %s the spec changed at %v, want a time: %t", step.reason, got, step.known)
			}
			if got != nil && last != nil && got.After(*last) != step.moves {
				t.Errorf("after %s the spec changed at %v, before at %v, want a later time: %t", step.reason, got, last, step.moves)
			}
			last = got
		}
	})
}

func TestApplyOperations_Deletion_SetsGoneAt(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", operationOf(w.workload, w.resource, "a", threeport.OperationDeleted, 3), operationOf(w.helm, 0, "b", threeport.OperationAdded, 3))
		var gone sql.NullInt64
		readRow(t, s, "SELECT goneat FROM definitions WHERE uid = 'a'", nil, &gone)
		if !gone.Valid {
			t.Error("the deleted object has no goneat")
		}
		readRow(t, s, "SELECT goneat FROM definitions WHERE uid = 'b'", nil, &gone)
		if gone.Valid {
			t.Error("the other object has a goneat, want none")
		}
	})
}
