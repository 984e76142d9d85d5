package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/testing/databases"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// keepTen keeps 10 Events per workload.
var keepTen = Retention{EventAge: time.Hour, EventCount: 10, TombstoneAge: time.Hour}

// addEvents adds one Event per minute to a workload, named after its age in minutes; the youngest is 0.
func addEvents(t *testing.T, s *Store, of threeport.Instance, name string, n int) {
	t.Helper()
	for from := 0; from < n; from += MaxReports {
		var reports []threeport.Report
		for i := from; i < min(from+MaxReports, n); i++ {
			report := eventOf(of, fmt.Sprint(name, i), 1)
			report.Event.Time = time.Now().Add(-time.Duration(i) * time.Minute)
			reports = append(reports, report)
		}
		apply(t, s, "one", reports...)
	}
}

func prune(t *testing.T, s *Store, keep Retention, want Pruned) {
	t.Helper()
	pruned, err := s.Prune(t.Context(), keep)
	if err != nil {
		t.Fatal(err)
	}
	if pruned != want {
		t.Errorf("pruned %+v, want %+v", pruned, want)
	}
}

func TestPrune_Events_ByAgeAndCount(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		addEvents(t, s, w.workload, "w", 70) // 60 to 69 are expired, and 10 to 59 exceed the count
		addEvents(t, s, w.helm, "h", 9)
		create(t, s, "WorkloadEvent", "no workload", "Normal", "Created", "", reportTime.UnixMicro()-1e12)
		create(t, s, "WorkloadEvent", "no workload, young", "Normal", "Created", "", time.Now().UnixMicro())
		prune(t, s, keepTen, Pruned{Events: 61})
		for i := range 10 {
			if count(t, s, "SELECT COUNT(*) FROM workload_events WHERE runtimeeventuid = ?", fmt.Sprint("w", i)) != 1 {
				t.Errorf("pruning deleted Event %d", i)
			}
		}
		prune(t, s, keepTen, Pruned{})
	})
}

// A node whose clock is ahead must not displace all other Events of a workload.
func TestPrune_EventsAheadOfClock_DisplaceNoOthers(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		var reports []threeport.Report
		for i := range 13 {
			report := eventOf(w.workload, fmt.Sprint("future ", i), 1)
			report.Event.Time = time.Now().Add(1000*time.Hour + time.Duration(i)*time.Minute)
			reports = append(reports, report)
		}
		apply(t, s, "one", reports...)
		addEvents(t, s, w.workload, "w", 12)
		prune(t, s, keepTen, Pruned{Events: 5})
		for uid, want := range map[string]int64{"w0": 1, "w9": 1, "w10": 0, "future 2": 0, "future 3": 1, "future 12": 1} {
			if n := count(t, s, "SELECT COUNT(*) FROM workload_events WHERE runtimeeventuid = ?", uid); n != want {
				t.Errorf("event %s: %d rows, want %d", uid, n, want)
			}
		}
		if after, err := s.EventsKeptAfter(t.Context(), w.workload, keepTen); err != nil || after.After(time.Now()) {
			t.Errorf("Events are kept after %v, error %v; want a time in the past", after, err)
		}
		prune(t, s, keepTen, Pruned{})
	})
}

func TestPrune_EventsOfEqualTime_ByCount(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		var reports []threeport.Report
		for i := range 25 {
			report := eventOf(w.workload, fmt.Sprint(i), 1)
			report.Event.Time = time.Now().Truncate(time.Hour).Add(-time.Minute)
			reports = append(reports, report)
		}
		apply(t, s, "one", reports...)
		prune(t, s, Retention{EventAge: 3 * time.Hour, EventCount: 10, TombstoneAge: time.Hour}, Pruned{Events: 15})
	})
}

func TestPrune_LongEvents_OldestAreDeleted(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		for _, of := range []threeport.Instance{w.workload, w.helm} {
			addEvents(t, s, of, of.Type, maxLongEvents+3)
		}
		mustExec(t, s, "UPDATE workload_events SET message = ?", strings.Repeat("x", 4097))
		addEvents(t, s, w.workload, "short", maxLongEvents+3)
		keep := Retention{EventAge: 1000 * time.Hour, EventCount: 1000, TombstoneAge: time.Hour}
		prune(t, s, keep, Pruned{Events: 6})
		for _, of := range []threeport.Instance{w.workload, w.helm} {
			for name, want := range map[string]int64{fmt.Sprint(of.Type, maxLongEvents): 0, fmt.Sprint(of.Type, maxLongEvents-1): 1} {
				if n := count(t, s, "SELECT COUNT(*) FROM workload_events WHERE runtimeeventuid = ?", name); n != want {
					t.Errorf("Event %s has %d rows, want %d", name, n, want)
				}
			}
		}
		prune(t, s, keep, Pruned{})
	})
}

func TestPruneGrown_ReportedEvents(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		keep := Retention{EventAge: 1000 * time.Hour, EventCount: 1000, TombstoneAge: time.Hour}
		w := newWorld(t, s)
		expectPruned := func(want int64) {
			t.Helper()
			pruned, err := s.PruneGrown(t.Context(), keep)
			if err != nil {
				t.Fatal(err)
			}
			if pruned != (Pruned{Events: want}) {
				t.Errorf("pruned %+v, want %d events", pruned, want)
			}
		}
		addEvents(t, s, w.workload, "a", 1010)
		expectPruned(10)
		addEvents(t, s, w.workload, "b", 99)
		expectPruned(0) // it is not checked yet
		addEvents(t, s, w.workload, "c", 1)
		expectPruned(100)
	})
}

// An Event without an instance may name a time that is far ahead.
func TestPrune_EventsWithoutInstance_ByAge(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		ahead := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
		for _, uid := range []string{"old", "new"} {
			create(t, s, "WorkloadEvent", uid, "Normal", "Created", "", ahead, nil, w.resource)
		}
		mustExec(t, s, "UPDATE workload_events SET updatedat = ? WHERE runtimeeventuid = 'old'", time.Now().Add(-2*time.Hour).UnixMicro())
		prune(t, s, Retention{EventAge: time.Hour, EventCount: 10, TombstoneAge: time.Hour}, Pruned{Events: 1})
		if n := count(t, s, "SELECT COUNT(*) FROM workload_events WHERE runtimeeventuid = 'new'"); n != 1 {
			t.Errorf("%d new Events are left, want 1", n)
		}
	})
}

// Events that become long, or move to another workload, count as new ones.
func TestPruneGrown_EventsBecomeLongOrMove(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		keep := Retention{EventAge: 1000 * time.Hour, EventCount: 1000, TombstoneAge: time.Hour}
		w := newWorld(t, s)
		const n = maxLongEvents + 44
		addEvents(t, s, w.workload, "a", n)
		expect := func(want int64) {
			t.Helper()
			pruned, err := s.PruneGrown(t.Context(), keep)
			if err != nil || pruned != (Pruned{Events: want}) {
				t.Errorf("pruned %+v, %v, want %d events", pruned, err, want)
			}
		}
		expect(0)
		report := func(of threeport.Instance, version int64) {
			t.Helper()
			var reports []threeport.Report
			for i := range n {
				report := eventOf(of, fmt.Sprint("a", i), version)
				report.Event.Message = strings.Repeat("x", 4097)
				report.Event.Time = time.Now().Add(-time.Duration(i) * time.Minute)
				reports = append(reports, report)
			}
			apply(t, s, "one", reports...)
		}
		report(w.workload, 2)
		expect(44)
		addEvents(t, s, w.helm, "b", 1) // so that it has Events of its own
		report(w.helm, 3)               // 256 move, 44 are new
		expect(44)
	})
}

func TestPruneGrown_EventsOfV0BecomeLong(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		keep := Retention{EventAge: 1000 * time.Hour, EventCount: 1000, TombstoneAge: time.Hour}
		w := newWorld(t, s)
		const n = maxLongEvents + 10
		events := resource(t, "WorkloadEvent")
		for i := range n {
			row := create(t, s, "WorkloadEvent", fmt.Sprint(i), "Normal", "Created", "", time.Now().UnixMicro(), int64(w.workload.ID), nil)
			values := make([]any, len(events.Fields))
			message, _ := events.Field("Message")
			values[message] = strings.Repeat("x", 4097)
			if _, err := s.Update(t.Context(), events, row.ID, values); err != nil {
				t.Fatal(err)
			}
		}
		if pruned, err := s.PruneGrown(t.Context(), keep); err != nil || pruned != (Pruned{Events: 10}) {
			t.Errorf("pruned %+v, %v, want 10 events", pruned, err)
		}
	})
}

func TestPruneGrown_EventsOfV0(t *testing.T) {
	for _, strict := range []bool{false, true} {
		databases.ForEachPrepared(t, migrated, func(t *testing.T, address string) {
			t.Helper()
			s := open(t, Config{Address: address, StrictV0: strict})
			w := newWorld(t, s)
			for i := range 13 {
				uid, at := fmt.Sprint(i), time.Now().Add(-time.Duration(i)*time.Minute).UnixMicro()
				create(t, s, "WorkloadEvent", "w"+uid, "Normal", "Created", "", at, int64(w.workload.ID), w.resource)
				create(t, s, "WorkloadEvent", "h"+uid, "Normal", "Created", "", at, nil, nil, int64(w.helm.ID))
			}
			want := Pruned{Events: 6}
			if strict {
				want = Pruned{}
			}
			if pruned, err := s.PruneGrown(t.Context(), keepTen); err != nil || pruned != want {
				t.Errorf("strict %t: pruned %+v, %v, want no error and %+v", strict, pruned, err, want)
			}
		})
	}
}

func TestPrune_OtherReplicaHasLock_IsSkipped(t *testing.T) {
	onPostgres(t, Config{}, func(t *testing.T, s *Store) { // a SQLite file has one process
		t.Helper()
		w := newWorld(t, s)
		addEvents(t, s, w.workload, "w", 20)
		other := open(t, s.config)
		unlock, ok, err := other.tryLock(t.Context(), lockPruning)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		prune(t, s, keepTen, Pruned{Skipped: true})
		if pruned, err := s.PruneGrown(t.Context(), keepTen); err != nil || pruned != (Pruned{Skipped: true}) {
			t.Errorf("%+v %v, want no error and %+v", pruned, err, Pruned{Skipped: true})
		}
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
		if pruned, err := s.PruneGrown(t.Context(), keepTen); err != nil || pruned != (Pruned{Events: 10}) {
			t.Errorf("the growth was forgotten: %+v %v, want no error and %+v", pruned, err, Pruned{Events: 10})
		}
	})
}

// EventsKeptAfter must match what pruning deletes.
func TestEventsKeptAfter_MatchesPruning(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		keptAfter := func(keep Retention) time.Time {
			t.Helper()
			after, err := s.EventsKeptAfter(t.Context(), w.helm, keep)
			if err != nil {
				t.Fatal(err)
			}
			return after
		}
		// Three Events share each time, so that the limit falls between equal times.
		var reports []threeport.Report
		for i := range 30 {
			report := eventOf(w.helm, fmt.Sprint("three ", i), 1)
			report.Event.Time = time.Now().Truncate(time.Minute).Add(-time.Duration(i/3) * time.Minute)
			reports = append(reports, report)
		}
		apply(t, s, "one", reports[:9]...)
		age := keepTen.EventAge + time.Microsecond
		earliest := fromMicros(databaseTime(t, s)).Add(-age)
		got := keptAfter(keepTen)
		if latest := fromMicros(databaseTime(t, s)).Add(-age); got.Before(earliest) || got.After(latest) {
			t.Errorf("below the limit: kept after %v, want between %v and %v", got, earliest, latest)
		}

		apply(t, s, "one", reports...)
		after := keptAfter(keepTen)
		prune(t, s, keepTen, Pruned{Events: 20})
		if got := keptAfter(keepTen); !got.Equal(after) {
			t.Errorf("after pruning, Events are kept after %v, want %v", got, after)
		}
		var again []threeport.Report
		for _, report := range reports {
			gone := count(t, s, "SELECT COUNT(*) FROM workload_events WHERE runtimeeventuid = ?", report.Event.UID) == 0
			if gone != !report.Event.Time.After(after) && !report.Event.Time.Equal(after) {
				t.Errorf("Event %s of %v is pruned: %t; Events are kept after %v", report.Event.UID, report.Event.Time, gone, after)
			}
			if gone && report.Event.Time.Before(after) {
				again = append(again, report)
			}
		}
		apply(t, s, "one", again...)
		prune(t, s, keepTen, Pruned{Events: int64(len(again))})

		// After the deletion of newer Events, older ones fit again.
		mustExec(t, s, "DELETE FROM workload_events WHERE runtimeeventuid = 'three 0'")
		if got := keptAfter(keepTen); !got.Before(after) {
			t.Errorf("with nine Events, Events are kept after %v, want before %v", got, after)
		}
		none := threeport.Instance{Type: workload, ID: w.helm.ID}
		if _, err := s.EventsKeptAfter(t.Context(), none, keepTen); !errors.Is(err, ErrNotFound) {
			t.Errorf("the Events of an unknown workload: %v, want %v", err, ErrNotFound)
		}
	})
}

// past is older than TombstoneAge.
var past = time.Now().Add(-2 * time.Hour).UnixMicro()

func TestPrune_DeletedRows_AfterTombstoneAge(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		old := create(t, s, workload, "old")
		oldResource := create(t, s, "WorkloadResourceInstance", "{}", old.ID)
		of := threeport.Instance{Type: workload, ID: threeport.ID(old.ID)}
		event := eventOf(of, "of the old", 1)
		event.Event.Time, event.Event.ResourceInstanceID = time.Now(), threeport.ID(oldResource.ID)
		young := eventOf(w.workload, "of the young", 1)
		young.Event.Time = time.Now()
		apply(t, s, "one",
			event, young,
			operationOf(of, oldResource.ID, "old", threeport.OperationAdded, 1), treeOf(of, 1, nodeOf("old", "old", "Healthy")),
			operationOf(w.helm, 0, "gone", threeport.OperationDeleted, 1), operationOf(w.helm, 0, "there", threeport.OperationAdded, 1),
			treeOf(w.helm, 1, nodeOf("gone", "gone", "Healthy"), nodeOf("there", "there", "Healthy")),
		)
		apply(t, s, "one", treeOf(w.helm, 2, nodeOf("there", "there", "Healthy")))
		for _, one := range []struct {
			r  *Resource
			id int64
		}{{resource(t, workload), old.ID}, {resource(t, "WorkloadResourceInstance"), oldResource.ID}} {
			if _, err := s.Remove(t.Context(), one.r, one.id); err != nil {
				t.Fatal(err)
			}
		}
		prune(t, s, keepTen, Pruned{}) // nothing is old enough

		for _, table := range []string{"workloads", "workload_instances", "workload_resource_instances"} {
			mustExec(t, s, "UPDATE "+table+" SET deletedat = ? WHERE deletedat IS NOT NULL", past)
		}
		for _, table := range []string{"objects", "definitions"} {
			mustExec(t, s, "UPDATE "+table+" SET goneat = ? WHERE goneat IS NOT NULL", past)
		}
		prune(t, s, keepTen, Pruned{Events: 1, Objects: 2, Definitions: 2, Workloads: 1, Rows: 2})
		prune(t, s, keepTen, Pruned{})
		for query, want := range map[string]int64{
			"SELECT COUNT(*) FROM workloads": 2, "SELECT COUNT(*) FROM workload_instances": 1, "SELECT COUNT(*) FROM workload_events": 1,
			"SELECT COUNT(*) FROM objects": 1, "SELECT COUNT(*) FROM definitions": 1, "SELECT COUNT(*) FROM workload_resource_instances": 1,
		} {
			if got := count(t, s, query); got != want {
				t.Errorf("%s: %d, want %d", query, got, want)
			}
		}
	})
}

func TestPrune_ReferencedV0Row_IsKept(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		second := create(t, s, "WorkloadResourceInstance", "{}", int64(w.workload.ID))
		event := create(t, s, "WorkloadEvent", "of both", "Normal", "Created", "", time.Now().UnixMicro(), nil, second.ID, int64(w.helm.ID))
		if _, err := s.Remove(t.Context(), resource(t, workload), int64(w.workload.ID)); err != nil {
			t.Fatal(err)
		}
		mustExec(t, s, "UPDATE workload_instances SET deletedat = ?", past)
		mustExec(t, s, "UPDATE workloads SET deletedat = ? WHERE deletedat IS NOT NULL", past)
		prune(t, s, keepTen, Pruned{Workloads: 1, Rows: 1}) // the resource without a deletion goes with its instance
		if n := count(t, s, "SELECT COUNT(*) FROM workload_instances"); n != 1 {
			t.Error("pruning deleted the instance of a resource that another Event references")
		}
		if n := count(t, s, "SELECT COUNT(*) FROM workload_resource_instances WHERE id = ?", second.ID); n != 1 {
			t.Error("pruning deleted a resource that another Event references")
		}
		if n := count(t, s, "SELECT COUNT(*) FROM workload_events WHERE id = ?", event.ID); n != 1 {
			t.Error("pruning deleted another workload's Event")
		}
		if _, err := s.Remove(t.Context(), resource(t, "WorkloadEvent"), event.ID); err != nil {
			t.Fatal(err)
		}
		mustExec(t, s, "UPDATE workload_events SET deletedat = ?", past)
		prune(t, s, keepTen, Pruned{Events: 1, Rows: 2})
	})
}

func TestRetention_Validate(t *testing.T) {
	for _, wrong := range []Retention{
		{},
		{EventAge: time.Second, EventCount: 1, TombstoneAge: time.Hour},
		{EventAge: time.Hour, EventCount: 0, TombstoneAge: time.Hour},
		{EventAge: time.Hour, EventCount: 1, TombstoneAge: -time.Hour},
		{EventAge: time.Hour, EventCount: 1, TombstoneAge: time.Hour, AuditAge: time.Second},
		{EventAge: time.Hour, EventCount: 1, TombstoneAge: time.Hour, AuditAge: -time.Hour},
	} {
		if err := wrong.Validate(); err == nil {
			t.Errorf("retention %+v returned no error", wrong)
		}
	}
	if err := DefaultRetention().Validate(); err != nil {
		t.Error(err)
	}
}
