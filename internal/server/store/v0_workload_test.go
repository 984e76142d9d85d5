package store

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
)

// workloadText is the part of a workloads row that v0 changes, and its changedat.
func workloadText(t *testing.T, s *Store, o Row) (text string, changed int64) {
	t.Helper()
	var kind, name, said, reason, cause, status string
	var rank int
	var since, saidAt int64
	var deleted sql.NullInt64
	readRow(t, s, "SELECT type, name, said, reason, cause, status, rank, since, saidat, deletedat, changedat FROM workloads WHERE id = ?",
		[]any{o.ID}, &kind, &name, &said, &reason, &cause, &status, &rank, &since, &saidAt, &deleted, &changed)
	when := func(at int64) string {
		switch at {
		case 0:
			return "never"
		case o.CreatedAt:
			return "created"
		case o.UpdatedAt:
			return "updated"
		default:
			return "then"
		}
	}
	return fmt.Sprintf("%s %q reported %q, shown %s %d, since %s, reported at %s, reason %q %q, deleted %t",
		kind, name, said, status, rank, when(since), when(saidAt), reason, cause, deleted.Valid), changed
}

func TestV0Write_UpdatesWorkload(t *testing.T) {
	cases := make(map[string]func(*testing.T, *Store))
	for _, object := range []string{"WorkloadInstance", "HelmWorkloadInstance"} {
		for _, c := range []struct {
			reason string
			made   []any  // Name, Status
			before string // SQL on the workloads row
			given  []any  // Name, Status, Reconciled; nil removes the row
			want   string
			still  bool // no copied field changed
		}{
			{
				reason: "a new one without a status", made: []any{"a"}, given: []any{nil, nil, true},
				want:  `"a" reported "", shown Unknown 3, since never, reported at never, reason "" "", deleted false`,
				still: true,
			},
			{
				reason: "a new one with a status", made: []any{"a", "Down"}, given: []any{nil, nil, true},
				want:  `"a" reported "Down", shown Down 0, since created, reported at created, reason "" "", deleted false`,
				still: true,
			},
			{
				reason: "a status", made: []any{"a"}, given: []any{nil, "Healthy", nil},
				want: `"a" reported "Healthy", shown Healthy 5, since updated, reported at updated, reason "" "", deleted false`,
			},
			{
				reason: "another status resets the cause", made: []any{"a", "Down"}, before: "reason = 'R', cause = 'c'",
				given: []any{nil, "Error", nil},
				want:  `"a" reported "Error", shown Error 1, since updated, reported at updated, reason "" "", deleted false`,
			},
			{
				reason: "the same status again", made: []any{"a", "Down"}, before: "reason = 'R', cause = 'c'",
				given: []any{nil, "Down", nil},
				want:  `"a" reported "Down", shown Down 0, since created, reported at updated, reason "R" "c", deleted false`,
			},
			{
				reason: "an unknown status", made: []any{"a", "Down"}, given: []any{nil, "Sideways", nil},
				want: `"a" reported "Sideways", shown Unknown 3, since updated, reported at updated, reason "" "", deleted false`,
			},
			{
				reason: "an empty status", made: []any{"a", "Down"}, given: []any{nil, "", nil},
				want: `"a" reported "", shown Unknown 3, since updated, reported at updated, reason "" "", deleted false`,
			},
			{
				reason: "a status while the cluster is silent", made: []any{"a", "Down"},
				before: "silent = TRUE, status = 'Unknown', rank = 3", given: []any{nil, "Healthy", nil},
				want: `"a" reported "Healthy", shown Unknown 3, since updated, reported at updated, reason "" "", deleted false`,
			},
			{
				reason: "a name", made: []any{"a", "Down"}, before: "reason = 'R'", given: []any{"b", nil, nil},
				want: `"b" reported "Down", shown Down 0, since created, reported at created, reason "R" "", deleted false`,
			},
			{
				reason: "a name and a status", made: []any{"a", "Down"}, given: []any{"b", "Unhealthy", nil},
				want: `"b" reported "Unhealthy", shown Unhealthy 2, since updated, reported at updated, reason "" "", deleted false`,
			},
			{
				reason: "removed", made: []any{"a", "Down"}, before: "reason = 'R'",
				want: `"a" reported "Down", shown Down 0, since created, reported at created, reason "R" "", deleted true`,
			},
		} {
			cases[object+": "+c.reason] = func(t *testing.T, s *Store) {
				t.Helper()
				r, o := resource(t, object), create(t, s, object, c.made...)
				if c.before != "" {
					err := s.exec(t.Context(), "UPDATE workloads SET "+c.before+" WHERE id = ?", o.ID)
					if err != nil {
						t.Fatal(err)
					}
				}
				_, before := workloadText(t, s, o)
				var err error
				if c.given == nil {
					o, err = s.Remove(t.Context(), r, o.ID)
				} else {
					o, err = s.Update(t.Context(), r, o.ID, c.given)
				}
				if err != nil {
					t.Fatal(err)
				}
				got, changed := workloadText(t, s, o)
				if want := object + " " + c.want; got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				if c.still && changed != before || !c.still && changed <= before {
					t.Errorf("changedat is %d, before the change %d", changed, before)
				}
			}
		}
	}
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		for reason, test := range cases {
			t.Run(reason, func(t *testing.T) { test(t, s) })
		}
	})
}

// An instance and its workloads row change in one transaction.
func TestV0Write_WorkloadFails_ChangesNothing(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		o, r := create(t, s, "WorkloadInstance", "web", "Healthy"), resource(t, "WorkloadInstance")
		if err := s.exec(t.Context(), "ALTER TABLE workloads RENAME TO hidden"); err != nil {
			t.Fatal(err)
		}
		if _, created, err := s.Create(t.Context(), r, []any{"other", nil, nil}); err == nil {
			t.Errorf("an instance was created although its workloads row failed: created %t", created)
		}
		if _, err := s.Update(t.Context(), r, o.ID, []any{nil, "Down", nil}); err == nil {
			t.Error("a status was written although that of the workloads row failed")
		}
		if _, err := s.Remove(t.Context(), r, o.ID); err == nil {
			t.Error("an instance was removed although its workloads row failed")
		}
		if err := s.exec(t.Context(), "ALTER TABLE hidden RENAME TO workloads"); err != nil {
			t.Fatal(err)
		}
		all := rows(t, s, "WorkloadInstance")
		if len(all) != 1 || all[0].Values[instanceStatus] != "Healthy" {
			t.Errorf("the instances are %+v, want one that is Healthy", all)
		}
	})
}

// The end of a request does not cancel its write.
func TestV0Write_CancelledRequest_Completes(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		o, created, err := s.Create(ended, resource(t, "WorkloadInstance"), []any{"web", nil, nil})
		if err != nil || !created {
			t.Fatalf("create: created %t, error %v", created, err)
		}
		for _, object := range []string{"WorkloadInstance", "WorkloadEvent"} {
			values := []any{"web", "Down", nil}
			if object == "WorkloadEvent" {
				o, values = create(t, s, object, eventValues("uid")...), eventValues("other")
			}
			if _, err := s.Update(ended, resource(t, object), o.ID, values); err != nil {
				t.Errorf("update of %s by a cancelled request: %v", object, err)
			}
			if _, err := s.Remove(ended, resource(t, object), o.ID); err != nil {
				t.Errorf("remove of %s by a cancelled request: %v", object, err)
			}
		}
	})
}
