package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/testing/databases"
)

const moment = int64(1767323045600000) // 2026-01-02T03:04:05.6Z

// eventValues are the values of a WorkloadEvent with this UID.
func eventValues(uid string) []any {
	return []any{uid, "Normal", "Created", "m", moment, nil, nil, nil}
}

func TestCreate_RowsReadBackAsWritten(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		instance := create(t, s, "WorkloadInstance", "wëb", "Healthy", true)
		chart := create(t, s, "HelmWorkloadInstance", "chart", nil, false)
		of := create(t, s, "WorkloadResourceInstance", `{"a":1}`, instance.ID, "ADDED", `{"b":"\u2028"}`, nil, int64(-62135596800000000))
		event := create(t, s, "WorkloadEvent", "uid", "", "", "", int64(math.MinInt64/2), instance.ID, of.ID, chart.ID)
		for _, want := range []struct {
			object string
			row    Row
		}{{"WorkloadInstance", instance}, {"HelmWorkloadInstance", chart}, {"WorkloadResourceInstance", of}, {"WorkloadEvent", event}} {
			got, err := s.Get(t.Context(), resource(t, want.object), want.row.ID)
			if err != nil || !reflect.DeepEqual(got, want.row) {
				t.Errorf("%s: got %+v, %v, want %+v", want.object, got, err, want.row)
			}
			if all := rows(t, s, want.object); len(all) != 1 || !reflect.DeepEqual(all[0], want.row) {
				t.Errorf("%s: the list has %+v, want %+v", want.object, all, want.row)
			}
		}
		orphan := eventValues("orphan")
		orphan[5] = int64(1)
		if _, created, err := s.Create(t.Context(), resource(t, "WorkloadEvent"), orphan); created || !errors.Is(err, ErrReference) {
			t.Errorf("an Event of an unknown instance: created %t, %v, want %v", created, err, ErrReference)
		}
	})
}

func TestCreate_InvalidValue_ReturnsFieldError(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		r := resource(t, "WorkloadEvent")
		noise := make([]byte, maxEventUIDBytes/2) // incompressible for an index
		_, _ = rand.Read(noise)
		longest := hex.EncodeToString(noise)
		kept := create(t, s, "WorkloadEvent", eventValues(longest)...)
		for _, uid := range []string{longest + "x", strings.Repeat(longest, 6), "\x00", "\xff"} {
			_, _, err := s.Create(t.Context(), r, eventValues(uid))
			if wrong, ok := errors.AsType[*FieldError](err); !ok || wrong.Field != "RuntimeEventUID" {
				t.Errorf("creating an Event with a UID of %d bytes returned %v, want an error for RuntimeEventUID", len(uid), err)
			}
			_, err = s.Update(t.Context(), r, kept.ID, append([]any{uid}, make([]any, 7)...))
			if _, ok := errors.AsType[*FieldError](err); !ok {
				t.Errorf("updating the UID to %d bytes returned %v, want an error for the field", len(uid), err)
			}
		}
		create(t, s, "WorkloadInstance", strings.Repeat(longest, 6), strings.Repeat(longest, 6))
	})
}

func TestList_Pages(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		r := resource(t, "WorkloadEvent")
		for i := range 5 {
			create(t, s, "WorkloadEvent", fmt.Sprint("uid", i), []string{"Normal", "Warning"}[i%2], "", "", moment)
		}
		last := rows(t, s, "WorkloadEvent")[4]
		if _, err := s.Remove(t.Context(), r, last.ID); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			reason      string
			selection   Selection
			rows, total int
		}{
			{reason: "the first page", selection: Selection{Page: 1, Size: 3}, rows: 3, total: 4},
			{reason: "the rest", selection: Selection{Page: 2, Size: 3}, rows: 1, total: 4},
			{reason: "beyond", selection: Selection{Page: 3, Size: 3}, total: 4},
			{reason: "size 0", selection: Selection{Page: 1, Size: 0}, total: 4},
			{reason: "far beyond the last page", selection: Selection{Page: math.MaxInt, Size: math.MaxInt}, total: 4},
			{reason: "a page before the first", selection: Selection{Page: -1, Size: 2}, rows: 2, total: 4},
			{reason: "all", selection: Selection{Page: 7, Size: -1}, rows: 4, total: 4},
			{reason: "filtered", selection: Selection{Page: 1, Size: 50, Filters: []Filter{{1, "Warning"}}}, rows: 2, total: 2},
			{
				reason:    "filtered twice",
				selection: Selection{Page: 1, Size: 50, Filters: []Filter{{1, "Warning"}, {0, "uid1"}}},
				rows:      1, total: 1,
			},
		} {
			rows, total, err := list(t.Context(), s, r, c.selection)
			if err != nil || len(rows) != c.rows || total != int64(c.total) {
				t.Errorf("%s: %d rows of %d, %v, want %d of %d", c.reason, len(rows), total, err, c.rows, c.total)
			}
		}
	})
}

func TestCreate_ConcurrentDuplicates_CreateOneRow(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		r := resource(t, "WorkloadEvent")
		const posts = 32
		ids := make([]int64, posts)
		made := make([]bool, posts)
		var group sync.WaitGroup
		for i := range posts {
			group.Go(func() {
				o, created, err := s.Create(t.Context(), r, eventValues("same"))
				if err != nil {
					t.Error(err)
				}
				ids[i], made[i] = o.ID, created
			})
		}
		group.Wait()
		creations := 0
		for i := range posts {
			if made[i] {
				creations++
			}
			if ids[i] != ids[0] {
				t.Errorf("concurrent creations returned the IDs %d and %d for one UID", ids[0], ids[i])
			}
		}
		if all := rows(t, s, "WorkloadEvent"); creations != 1 || len(all) != 1 {
			t.Errorf("%d creations, %d rows, want 1 and 1", creations, len(all))
		}
	})
}

func TestUpdate_ConcurrentChangesOfOneRow(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		r, o := resource(t, "WorkloadInstance"), create(t, s, "WorkloadInstance", "web")
		var group sync.WaitGroup
		for i := range 16 {
			group.Go(func() {
				if _, err := s.Update(t.Context(), r, o.ID, []any{nil, statuses[i%len(statuses)], nil}); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		got, err := s.Get(t.Context(), r, o.ID)
		if err != nil {
			t.Fatal(err)
		}
		var said string
		readRow(t, s, "SELECT said FROM workloads WHERE id = ?", []any{o.ID}, &said)
		if said != got.Values[instanceStatus] {
			t.Errorf("the instance has the status %v, the workloads row %q", got.Values[instanceStatus], said)
		}
	})
}

func TestUpdate_UniqueValueExists_IsConflict(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		create(t, s, "WorkloadEvent", eventValues("a")...)
		b := create(t, s, "WorkloadEvent", eventValues("b")...)
		values := make([]any, len(b.Values))
		values[0] = "a"
		if _, err := s.Update(t.Context(), resource(t, "WorkloadEvent"), b.ID, values); !errors.Is(err, ErrConflict) {
			t.Errorf("got %v, want %v", err, ErrConflict)
		}
	})
}

// The owner of an Event is an instance or, without one, a resource.
func TestCreate_UIDOfAnotherOwner_CreatesRow(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		r, a, b := resource(t, "WorkloadEvent"), newWorld(t, s), newWorld(t, s)
		for _, owner := range [][]any{
			{nil, nil, nil},
			{int64(a.workload.ID), nil, nil},
			{int64(b.workload.ID), b.resource, nil},
			{nil, nil, int64(a.helm.ID)},
			{nil, nil, int64(b.helm.ID)},
			{nil, a.resource, nil},
			{nil, b.resource, nil},
		} {
			values := slices.Concat(eventValues("uid")[:5], owner)
			first, created, err := s.Create(t.Context(), r, values)
			if err != nil || !created {
				t.Errorf("of %v: created %t, error %v, want a new row", owner, created, err)
			}
			if again, created, err := s.Create(t.Context(), r, values); err != nil || created || again.ID != first.ID {
				t.Errorf("of %v again: row %d, created %t, error %v, want row %d", owner, again.ID, created, err, first.ID)
			}
		}
	})
}

func TestStore_Reopened_KeepsRows(t *testing.T) {
	databases.ForEach(t, func(t *testing.T, address string) {
		t.Helper()
		r := resource(t, "WorkloadEvent")
		s, err := Open(t.Context(), Config{Address: address})
		if err != nil {
			t.Fatal(err)
		}
		s.ids = newIDs(1 << 61) // the newest ID came from a clock ahead of this one
		first := create(t, s, "WorkloadEvent", eventValues("uid")...)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, Config{Address: address})
		if got, err := s.Get(t.Context(), r, first.ID); err != nil || !reflect.DeepEqual(got, first) {
			t.Errorf("got %+v, %v, want no error and %+v", got, err, first)
		}
		again, created, err := s.Create(t.Context(), r, eventValues("uid"))
		if err != nil || created || again.ID != first.ID {
			t.Errorf("the same UID: %d, created %v, %v, want no error and %d", again.ID, created, err, first.ID)
		}
		if next := create(t, s, "WorkloadEvent", eventValues("other")...); next.ID <= first.ID {
			t.Errorf("the new ID is %d, want more than %d", next.ID, first.ID)
		}
	})
}

func TestInMemory_CancelledRequests_KeepRows(t *testing.T) {
	s, r := open(t, Config{Address: "sqlite::memory:"}), resource(t, "WorkloadEvent")
	o := create(t, s, "WorkloadEvent", eventValues("uid")...)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for ctx.Err() == nil {
				_, _ = s.Get(ctx, r, o.ID)
				_, _, _ = list(ctx, s, r, Selection{Page: 1, Size: 50})
			}
		})
	}
	for range 50 {
		brief, stop := context.WithTimeout(t.Context(), 100*time.Microsecond)
		_, _, _ = list(brief, s, r, Selection{Page: 1, Size: -1})
		stop()
	}
	cancel()
	group.Wait()
	if _, err := s.Get(t.Context(), r, o.ID); err != nil {
		t.Error(err)
	}
}

// removeOne deletes a row of a database that is opened with StrictV0.
func removeOne(t *testing.T, address string, r *Resource) {
	t.Helper()
	s, err := Open(t.Context(), Config{Address: address, StrictV0: true})
	if err != nil {
		t.Fatal(err)
	}
	rows, _, err := list(t.Context(), s, r, Selection{Page: 1, Size: 1})
	if err == nil {
		_, err = s.Remove(t.Context(), r, rows[0].ID)
	}
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
}

// A database can be opened in either mode, whichever it was created in, as long as its rows allow it.
func TestCreate_StrictV0_CreatesDuplicates(t *testing.T) {
	databases.ForEach(t, func(t *testing.T, address string) {
		t.Helper()
		r, values := resource(t, "WorkloadEvent"), eventValues("uid")
		post := func(strict bool) (created bool) {
			t.Helper()
			s, err := Open(t.Context(), Config{Address: address, StrictV0: strict})
			if err != nil {
				t.Fatal(err)
			}
			_, created, err = s.Create(t.Context(), r, values)
			if err := errors.Join(err, s.Close()); err != nil {
				t.Fatal(err)
			}
			return created
		}
		if first, again := post(false), post(false); !first || again {
			t.Errorf("by default, two posts created rows: %t, %t, want only the first", first, again)
		}
		if !post(true) {
			t.Error("with StrictV0, the second post created no row")
		}
		s, err := Open(t.Context(), Config{Address: address, KeepIndexes: true})
		if err != nil {
			t.Fatalf("a command cannot open the database of a server with StrictV0: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		s, err = Open(t.Context(), Config{Address: address})
		if err == nil {
			t.Error("Open without StrictV0 accepted a database with a duplicate UID")
			_ = s.Close()
		} else if !strings.Contains(err.Error(), "start with --strict-v0") {
			t.Errorf("the error does not describe the fix for duplicates: %v", err)
		}
		removeOne(t, address, r)
		if first := post(false); first {
			t.Error("without StrictV0, a post created a duplicate after the second row was deleted")
		}
	})
}
