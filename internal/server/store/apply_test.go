package store

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("answered %q, want %q", got, want)
	}
}

// A set of several transactions has the answers of one.
func TestApply_LargeSet_AnswersAllReports(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		reports := []threeport.Report{statusOf(w.helm, "Healthy", 2), eventOf(w.helm, "first", 2)}
		want := []string{"created", "created"}
		for i := range reportsPerTx {
			reports, want = append(reports, eventOf(w.helm, fmt.Sprint("event-", i), 1)), append(want, "created")
		}
		reports = append(reports, statusOf(w.helm, "Down", 1), eventOf(w.helm, "first", 3))
		expect(t, apply(t, s, "one", reports...), append(want, "stale 2", "updated")...)
	})
}

func TestApply_RepeatedSet_IsUnchanged(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		set := func(version int64) []threeport.Report {
			return []threeport.Report{
				eventOf(w.workload, "event-b", version),
				operationOf(w.workload, w.resource, "object", threeport.OperationAdded, version),
				statusOf(w.helm, "Healthy", version),
				treeOf(w.workload, version, nodeOf("web", "object", "Healthy")),
				eventOf(w.helm, "event-a", version),
				operationOf(w.helm, 0, "other", threeport.OperationModified, version),
			}
		}
		expect(t, apply(t, s, "one", set(5)...), "created", "created", "created", "created", "created", "created")
		expect(t, apply(t, s, "one", set(5)...), "unchanged", "unchanged", "unchanged", "unchanged", "unchanged", "unchanged")
		expect(t, apply(t, s, "one", set(9)...), "updated", "updated", "updated", "updated", "updated", "updated")
		expect(t, apply(t, s, "one", set(7)...), "stale 9", "stale 9", "stale 9", "stale 9", "stale 9", "stale 9")
		if n := len(rows(t, s, "WorkloadEvent")); n != 2 {
			t.Errorf("found %d Events, want 2", n)
		}
	})
}

func TestApply_SeveralReportsOfOneKey_AppliesNewest(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		expect(t, apply(t, s, "one",
			eventOf(w.workload, "event", 2), eventOf(w.workload, "event", 4), eventOf(w.workload, "event", 3), eventOf(w.workload, "event", 4),
			statusOf(w.workload, "Down", 8), statusOf(w.workload, "Healthy", 7),
			operationOf(w.workload, w.resource, "object", threeport.OperationDeleted, 3),
			operationOf(w.workload, w.resource, "object", threeport.OperationModified, 4),
			eventOf(threeport.Instance{Type: workload, ID: 1}, "lost", 2), eventOf(threeport.Instance{Type: workload, ID: 1}, "lost", 1),
		), "stale 4", "created", "stale 4", "unchanged", "created", "stale 8", "created", "stale 3", "not_found", "not_found")
		if got := workloadRowOf(t, s, w.workload); !strings.HasPrefix(got, "reported Down 8") {
			t.Error(got)
		}
	})
}

func TestApply_InvalidReport_RejectsOnlyThat(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		other := create(t, s, workload, "other")
		foreign := create(t, s, "WorkloadResourceInstance", "{}", other.ID)
		removed := create(t, s, workload, "removed")
		if _, err := s.Remove(t.Context(), resource(t, workload), removed.ID); err != nil {
			t.Fatal(err)
		}
		bad := eventOf(w.workload, "bad", 1)
		bad.Event.Message = "a\x00b"
		twofold := eventOf(w.workload, "bad", 1)
		twofold.Status = statusOf(w.workload, "Down", 1).Status
		resourceGone := eventOf(w.workload, "bad", 1)
		resourceGone.Event.ResourceInstanceID = 12345
		expect(t, apply(t, s, "one",
			bad, twofold, resourceGone,
			eventOf(threeport.Instance{Type: workload, ID: 7}, "nobody", 1),
			eventOf(threeport.Instance{Type: helm, ID: w.workload.ID}, "wrong type", 1),
			eventOf(threeport.Instance{Type: workload, ID: threeport.ID(removed.ID)}, "removed", 1),
			operationOf(w.workload, foreign.ID, "object", threeport.OperationAdded, 1),
			operationOf(w.helm, w.resource, "object", threeport.OperationAdded, 1),
			eventOf(w.workload, "good", 1),
		), "invalid", "invalid", "not_found", "not_found", "not_found", "not_found", "invalid", "invalid", "created")
	})
}

// An agent with a wrong clock reports first. Then an agent with the right clock continues from the version that it
// finds.
func TestApply_VersionFromWrongClock_CanBeSuperseded(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		beyond, within := time.Now().Add(maxVersionLead+time.Hour).UnixMicro(), time.Now().Add(maxVersionLead).UnixMicro()
		expect(t, apply(t, s, "one",
			statusOf(w.workload, "Down", math.MaxInt64), treeOf(w.workload, math.MaxInt64), statusOf(w.workload, "Down", beyond), treeOf(w.helm, beyond),
			statusOf(w.workload, "Healthy", 1), treeOf(w.workload, 1),
		), "invalid", "invalid", "invalid", "invalid", "created", "created")
		expect(t, apply(t, s, "one", statusOf(w.workload, "Down", within), treeOf(w.workload, within)), "updated", "updated")
		expect(t, apply(t, s, "one", statusOf(w.workload, "Healthy", within+1), treeOf(w.workload, within+1)), "updated", "updated")
		// Kubernetes resource versions are not times.
		event := eventOf(w.workload, "event", 1)
		event.Version = math.MaxInt64
		expect(t, apply(t, s, "one", event, operationOf(w.helm, 0, "object", threeport.OperationAdded, math.MaxInt64)),
			"created", "created")
	})
}

// The set has one Event twice: the newer report is invalid, the older one is valid.
func TestApply_RejectedReport_SupersedesNone(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		nowhere := threeport.Instance{Type: workload, ID: 7}
		expect(t, apply(t, s, "two", statusOf(w.helm, "Healthy", 1)), "created")
		resourceGone := eventOf(w.workload, "resource", 2)
		resourceGone.Event.ResourceInstanceID = 12345
		rejectMessages(t, s, "poison")
		poisoned := eventOf(w.workload, "poisoned", 2)
		poisoned.Event.Message = "poison"
		expect(t, apply(t, s, "one",
			eventOf(w.workload, "nowhere", 1), eventOf(nowhere, "nowhere", 2),
			eventOf(w.helm, "foreign", 2), eventOf(w.workload, "foreign", 1),
			eventOf(w.workload, "resource", 1), resourceGone,
			eventOf(w.workload, "poisoned", 1), poisoned,
		), "created", "not_found", "forbidden", "created", "created", "not_found", "created", "invalid")
		if n := count(t, s, "SELECT COUNT(*) FROM workload_events WHERE objectversion = 1"); n != 4 {
			t.Errorf("there are %d Events, want 4", n)
		}
	})
}

// rejectMessages adds a constraint, so that the database rejects a message that validation accepts.
func rejectMessages(t *testing.T, s *Store, message string) {
	t.Helper()
	if s.dialect == postgresDialect {
		mustExec(t, s, "ALTER TABLE workload_events ADD CHECK (message <> '"+message+"')")
		return
	}
	for _, write := range []string{"INSERT", "UPDATE"} {
		mustExec(t, s, "CREATE TRIGGER on_"+write+" BEFORE "+write+" ON workload_events WHEN NEW.message = '"+message+"' BEGIN SELECT RAISE(ABORT, 'refused'); END")
	}
}

func TestApply_SecondCluster_IsForbidden(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		expect(t, apply(t, s, "one", eventOf(w.workload, "event", 1)), "created")
		expect(t, apply(t, s, "two", eventOf(w.workload, "event", 2), statusOf(w.workload, "Down", 9), statusOf(w.helm, "Down", 1)),
			"forbidden", "forbidden", "created")
		expect(t, apply(t, s, "one", statusOf(w.helm, "Healthy", 2), eventOf(w.workload, "event", 2)), "forbidden", "updated")
		// By the UID of another cluster's Event, reported for the cluster's own workload.
		expect(t, apply(t, s, "two", eventOf(w.helm, "event", 99)), "created")
		if got := rows(t, s, "WorkloadEvent")[0].Values[3]; got != "message 2" {
			t.Errorf("Event is %q, want \"message 2\"", got)
		}
	})
}

// Each kind of rejection happens before the workload's own cluster reports it.
func TestApply_RejectedReport_ClaimsNoWorkload(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		other := create(t, s, workload, "other")
		foreign := create(t, s, "WorkloadResourceInstance", "{}", other.ID)
		resourceGone := eventOf(w.workload, "bad", 1)
		resourceGone.Event.ResourceInstanceID = 12345
		invalid := statusOf(w.workload, "Down", -1)
		expect(t, apply(t, s, "two",
			resourceGone,
			operationOf(w.workload, foreign.ID, "object", threeport.OperationAdded, 1),
			invalid,
		), "not_found", "invalid", "invalid")
		expect(t, apply(t, s, "one", statusOf(w.workload, "Healthy", 1)), "created")
		expect(t, apply(t, s, "two", statusOf(w.workload, "Down", 2)), "forbidden")

		// A valid report claims the workload, whatever the other reports are.
		expect(t, apply(t, s, "two", operationOf(threeport.Instance{Type: workload, ID: threeport.ID(other.ID)}, w.resource, "object", threeport.OperationAdded, 1),
			treeOf(threeport.Instance{Type: workload, ID: threeport.ID(other.ID)}, 1)), "invalid", "created")
		expect(t, apply(t, s, "one", statusOf(threeport.Instance{Type: workload, ID: threeport.ID(other.ID)}, "Down", 2)), "forbidden")
	})
}

func TestApply_InvalidSet_ReturnsSetError(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		noTime := setOf("one")
		noTime.Agent.Time = noTime.Agent.Time.AddDate(-2000, 0, 0)
		for _, set := range []threeport.ReportSet{setOf(""), noTime, setOf("one", make([]threeport.Report, MaxReports+1)...)} {
			if _, err := s.Apply(t.Context(), set); err == nil {
				t.Errorf("the invalid set of cluster %q with %d reports was applied", set.Agent.ClusterUID, len(set.Reports))
			} else if _, ok := errors.AsType[*SetError](err); !ok {
				t.Errorf("the error %v is not a SetError", err)
			}
		}
		if n := count(t, s, "SELECT COUNT(*) FROM clusters"); n != 0 {
			t.Errorf("%d clusters have a heartbeat, want none", n)
		}
	})
}

func TestApply_StrictV0_IsRefused(t *testing.T) {
	s := open(t, Config{Address: "sqlite::memory:", StrictV0: true})
	if _, err := s.Apply(t.Context(), setOf("one")); !errors.Is(err, ErrNoReportSets) {
		t.Error(err)
	}
}

// The database rejects data that validation accepts.
func TestApply_DatabaseRejectsData_RejectsOnlyThatReport(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		rejectMessages(t, s, "poison")
		if s.dialect == postgresDialect {
			mustExec(t, s, "ALTER TABLE objects ADD CHECK (name <> 'poison')")
		} else {
			mustExec(t, s, "CREATE TRIGGER b BEFORE INSERT ON objects WHEN NEW.name = 'poison' BEGIN SELECT RAISE(ABORT, 'poison'); END")
		}
		var reports []threeport.Report
		var want []string
		for i := range 40 {
			report, outcome := eventOf(w.workload, string(rune('A'+i)), 1), "created"
			if i == 7 || i == 31 {
				report.Event.Message, outcome = "poison", "invalid"
			}
			reports, want = append(reports, report), append(want, outcome)
		}
		reports = append(reports, treeOf(w.workload, 1, nodeOf("poison", "uid", "Healthy")), statusOf(w.workload, "Healthy", 1))
		answer, err := s.Apply(t.Context(), setOf("one", reports...))
		if err != nil {
			t.Fatal(err)
		}
		expect(t, outcomes(answer), append(want, "invalid", "created")...)
		for _, detail := range details(answer) {
			if strings.Contains(detail, "poison") {
				t.Errorf("the detail contains a value of the report: %s", detail)
			}
		}
		if n := count(t, s, "SELECT COUNT(*) FROM workload_events"); n != 38 {
			t.Errorf("found %d Events, want 38", n)
		}
		if n := count(t, s, "SELECT treeversion FROM workloads WHERE id = ?", int64(w.workload.ID)); n != 0 {
			t.Errorf("tree version is %d, want 0", n)
		}
	})
}
