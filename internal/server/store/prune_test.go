package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/testing/databases"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// keepTen is a retention of 10 Events.
var keepTen = Retention{EventAge: time.Hour, EventCount: 10, TombstoneAge: time.Hour}

// addEvents adds Events of the last minutes to a workload, one a minute, each named after its age; the youngest is 0.
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

func TestEventsArePrunedByAgeAndByCount(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		addEvents(t, s, w.workload, "w", 70) // of which 60 to 69 are too old, and 10 to 59 too many
		addEvents(t, s, w.helm, "h", 9)
		create(t, s, "WorkloadEvent", "nobody's", "Normal", "Created", "", told.UnixMicro()-1e12)
		create(t, s, "WorkloadEvent", "nobody's, young", "Normal", "Created", "", time.Now().UnixMicro())
		prune(t, s, keepTen, Pruned{Events: 61})
		for i := range 10 {
			if count(t, s, "SELECT COUNT(*) FROM workload_events WHERE runtimeeventuid = ?", fmt.Sprint("w", i)) != 1 {
				t.Errorf("event %d is gone", i)
			}
		}
		prune(t, s, keepTen, Pruned{})
	})
}

// A node whose clock is wrong is no reason to keep nothing else of a workload until its time has come.
func TestEventsOfTheFuturePushOutNone(t *testing.T) {
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
			t.Errorf("kept after %v, %v", after, err)
		}
		prune(t, s, keepTen, Pruned{})
	})
}

func TestEventsOfOneMomentArePrunedByCount(t *testing.T) {
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

func TestWorkloadsThatGrewArePrunedInBetween(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		keep := Retention{EventAge: 1000 * time.Hour, EventCount: 1000, TombstoneAge: time.Hour}
		w := newWorld(t, s)
		grown := func(want int64) {
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
		grown(10)
		addEvents(t, s, w.workload, "b", 99)
		grown(0) // it is not looked at yet
		addEvents(t, s, w.workload, "c", 1)
		grown(100)
	})
}

func TestEventsOfV0ArePrunedInBetween(t *testing.T) {
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
				t.Errorf("strict %t: pruned %+v, %v", strict, pruned, err)
			}
		})
	}
}

func TestOneReplicaPrunes(t *testing.T) {
	onPostgres(t, Config{}, func(t *testing.T, s *Store) { // a file of SQLite has one process
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
			t.Errorf("%+v %v", pruned, err)
		}
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
		if pruned, err := s.PruneGrown(t.Context(), keepTen); err != nil || pruned != (Pruned{Events: 10}) {
			t.Errorf("what had grown is forgotten: %+v %v", pruned, err)
		}
	})
}

// What is said not to be kept is what pruning takes, and would take again.
func TestWhatIsSaidNotToBeKeptIsPruned(t *testing.T) {
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
		// Of three at each moment, so that the bound is in the midst of a moment.
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
			t.Errorf("with room for more, what is after %v is kept, which is not between %v and %v", got, earliest, latest)
		}

		apply(t, s, "one", reports...)
		after := keptAfter(keepTen)
		prune(t, s, keepTen, Pruned{Events: 20})
		if got := keptAfter(keepTen); !got.Equal(after) {
			t.Errorf("pruning made %v of %v", got, after)
		}
		var again []threeport.Report
		for _, report := range reports {
			gone := count(t, s, "SELECT COUNT(*) FROM workload_events WHERE runtimeeventuid = ?", report.Event.UID) == 0
			if gone != !report.Event.Time.After(after) && !report.Event.Time.Equal(after) {
				t.Errorf("%s of %v is pruned: %t; kept is what is after %v", report.Event.UID, report.Event.Time, gone, after)
			}
			if gone && report.Event.Time.Before(after) {
				again = append(again, report)
			}
		}
		apply(t, s, "one", again...)
		prune(t, s, keepTen, Pruned{Events: int64(len(again))})

		// Where newer ones are gone there is room for older ones.
		mustExec(t, s, "DELETE FROM workload_events WHERE runtimeeventuid = 'three 0'")
		if got := keptAfter(keepTen); !got.Before(after) {
			t.Errorf("with nine, what is after %v is kept", got)
		}
		none := threeport.Instance{Type: workload, ID: w.helm.ID}
		if _, err := s.EventsKeptAfter(t.Context(), none, keepTen); !errors.Is(err, ErrNotFound) {
			t.Errorf("of no workload: %v", err)
		}
	})
}

// past is a time before which everything is forgotten.
var past = time.Now().Add(-2 * time.Hour).UnixMicro()

func TestWhatIsGoneIsForgotten(t *testing.T) {
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
		prune(t, s, keepTen, Pruned{}) // all of it is young

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

func TestARowOfV0StaysWhileOthersReferToIt(t *testing.T) {
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
		prune(t, s, keepTen, Pruned{Workloads: 1, Rows: 1}) // the resource that nobody deleted goes with its instance
		if n := count(t, s, "SELECT COUNT(*) FROM workload_instances"); n != 1 {
			t.Error("the instance of a resource that another workload's Event refers to is gone")
		}
		if n := count(t, s, "SELECT COUNT(*) FROM workload_resource_instances WHERE id = ?", second.ID); n != 1 {
			t.Error("a resource that another workload's Event refers to is gone")
		}
		if n := count(t, s, "SELECT COUNT(*) FROM workload_events WHERE id = ?", event.ID); n != 1 {
			t.Error("another workload's Event is gone")
		}
		if _, err := s.Remove(t.Context(), resource(t, "WorkloadEvent"), event.ID); err != nil {
			t.Fatal(err)
		}
		mustExec(t, s, "UPDATE workload_events SET deletedat = ?", past)
		prune(t, s, keepTen, Pruned{Events: 1, Rows: 2})
	})
}

func TestRetentionIsValidated(t *testing.T) {
	for _, wrong := range []Retention{
		{},
		{EventAge: time.Second, EventCount: 1, TombstoneAge: time.Hour},
		{EventAge: time.Hour, EventCount: 0, TombstoneAge: time.Hour},
		{EventAge: time.Hour, EventCount: 1, TombstoneAge: -time.Hour},
	} {
		if err := wrong.Validate(); err == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
	if err := DefaultRetention().Validate(); err != nil {
		t.Error(err)
	}
}
