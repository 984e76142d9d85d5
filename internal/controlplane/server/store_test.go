package server

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// eventValues are those of a WorkloadEvent with this UID.
func eventValues(uid string) []any {
	return []any{uid, "Normal", "Created", "m", "2026-01-02T03:04:05.600000000Z", nil, nil, nil}
}

func events(t *testing.T) *resource {
	t.Helper()
	for _, r := range resources {
		if r.object == "WorkloadEvent" {
			return r
		}
	}
	t.Fatal("no such resource")
	return nil
}

func open(t *testing.T, address string) *Store {
	t.Helper()
	s, err := Open(t.Context(), address, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestConcurrentDuplicatesMakeOneRow(t *testing.T) {
	for _, address := range []string{"sqlite::memory:", "sqlite:" + filepath.Join(t.TempDir(), "a b%#?.db")} {
		s, r := open(t, address), events(t)
		const posts = 32
		ids := make([]int64, posts)
		made := make([]bool, posts)
		var group sync.WaitGroup
		for i := range posts {
			group.Go(func() {
				o, created, err := s.create(t.Context(), r, eventValues("same"))
				if err != nil {
					t.Error(err)
				}
				ids[i], made[i] = o.id, created
			})
		}
		group.Wait()
		creations := 0
		for i := range posts {
			if made[i] {
				creations++
			}
			if ids[i] != ids[0] {
				t.Errorf("IDs %d and %d for one UID", ids[0], ids[i])
			}
		}
		_, total, err := s.list(t.Context(), r, selection{page: 1, size: -1, where: "deletedat IS NULL"})
		if err != nil || creations != 1 || total != 1 {
			t.Errorf("%s: %d creations, %d rows, %v", address, creations, total, err)
		}
	}
}

func TestUniqueConflictInChange(t *testing.T) {
	s, r := open(t, "sqlite::memory:"), events(t)
	for _, uid := range []string{"a", "b"} {
		if _, _, err := s.create(t.Context(), r, eventValues(uid)); err != nil {
			t.Fatal(err)
		}
	}
	rows, _, err := s.list(t.Context(), r, selection{page: 1, size: -1, where: "deletedat IS NULL"})
	if err != nil {
		t.Fatal(err)
	}
	values := make([]any, len(r.fields))
	values[0] = "a"
	if _, err := s.update(t.Context(), r, rows[1].id, values); failureOf(err).code != 409 {
		t.Errorf("got %v", err)
	}
}

func TestRowsOutliveTheStore(t *testing.T) {
	address, r := "sqlite:"+filepath.Join(t.TempDir(), "rows.db"), events(t)
	s, err := Open(t.Context(), address, false)
	if err != nil {
		t.Fatal(err)
	}
	// A clock ahead of ours made the newest row.
	s.ids = newIDs(1 << 61)
	first, _, err := s.create(t.Context(), r, eventValues("uid"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, address)
	if got, err := s.get(t.Context(), r, first.id); err != nil || got.values[0] != "uid" || got.createdAt != first.createdAt {
		t.Errorf("got %+v, %v", got, err)
	}
	again, created, err := s.create(t.Context(), r, eventValues("uid"))
	if err != nil || created || again.id != first.id {
		t.Errorf("the same UID: %d, created %v, %v", again.id, created, err)
	}
	next, _, err := s.create(t.Context(), r, eventValues("other"))
	if err != nil || next.id <= first.id {
		t.Errorf("ID %d after %d, %v", next.id, first.id, err)
	}
}

func TestMemorySurvivesCancelledRequests(t *testing.T) {
	s, r := open(t, "sqlite::memory:"), events(t)
	o, _, err := s.create(t.Context(), r, eventValues("uid"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for ctx.Err() == nil {
				_, _ = s.get(ctx, r, o.id)
				_, _, _ = s.list(ctx, r, selection{page: 1, size: 50, where: "deletedat IS NULL"})
			}
		})
	}
	for range 50 {
		brief, stop := context.WithTimeout(t.Context(), 100*time.Microsecond)
		_, _, _ = s.list(brief, r, selection{page: 1, size: -1, where: "deletedat IS NULL"})
		stop()
	}
	cancel()
	group.Wait()
	if _, err := s.get(t.Context(), r, o.id); err != nil {
		t.Error(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, address := range []string{"", "sqlite:", "rows.db", "postgres://user:hunter2@host/db", "sqlite:" + t.TempDir(), "sqlite:/nowhere/at/all.db"} {
		if s, err := Open(t.Context(), address, false); err == nil {
			t.Errorf("%q was opened", address)
			_ = s.Close()
		}
	}
}

func TestIDs(t *testing.T) {
	g := newIDs(0)
	seen := make(map[int64]bool)
	var newest int64
	for range 10_000 {
		id := g.next()
		if seen[id] || id <= newest {
			t.Fatalf("%d after %d", id, newest)
		}
		if id < 1<<53 || int64(float64(id)) == id {
			t.Fatalf("%d passes through a float", id)
		}
		seen[id], newest = true, id
	}
}

// A database can be opened in either mode, whatever it was made in, as long as its rows allow it.
func TestStrictV0MakesARowOfEachPost(t *testing.T) {
	address := "sqlite:" + filepath.Join(t.TempDir(), "rows.db")
	r, values := events(t), eventValues("uid")
	post := func(strict bool) (created bool) {
		t.Helper()
		s, err := Open(t.Context(), address, strict)
		if err != nil {
			t.Fatal(err)
		}
		_, created, err = s.create(t.Context(), r, values)
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		return created
	}
	if first, again := post(false), post(false); !first || again {
		t.Errorf("by default two posts made rows: %t, %t, want only the first", first, again)
	}
	if !post(true) {
		t.Error("strictly, the second post made no row")
	}
	if s, err := Open(t.Context(), address, false); err == nil {
		t.Error("a database with two rows of one UID was opened as one without")
		_ = s.Close()
	}
}
