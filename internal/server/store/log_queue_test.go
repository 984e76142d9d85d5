package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/testing/databases"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// onLogQueues runs a test on a store with a queue of up to this number of Events.
func onLogQueues(t *testing.T, records int64, test func(t *testing.T, s *Store)) {
	t.Helper()
	databases.ForEachPrepared(t, migrated, func(t *testing.T, address string) {
		t.Helper()
		test(t, open(t, Config{Address: address, LogBytes: records * rowBytes}))
	})
}

// exportLogs exports one batch.
func exportLogs(t *testing.T, s *Store) (records []LogRecord, done LogExport) {
	t.Helper()
	done, err := s.ExportLogs(t.Context(), func(_ context.Context, sent []LogRecord) (int, error) {
		records = sent
		return len(sent), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return records, done
}

// trimLogs limits the queue, and returns the number of removed records.
func trimLogs(t *testing.T, s *Store) int64 {
	t.Helper()
	removed, err := s.TrimLogs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return removed
}

// summaries has a line for each record.
func summaries(records []LogRecord) []string {
	all := []string{}
	for _, r := range records {
		line := fmt.Sprintf("%s %s of %s: ", r.Workload.Type, r.Workload.Name, r.Workload.ClusterName)
		if r.Event != nil {
			line += fmt.Sprintf("%s %s ×%d", r.Event.UID, r.Event.Message, r.Event.Count)
		} else {
			line += fmt.Sprintf("%s→%s %s %s", r.Status.Previous, r.Status.Status, r.Status.Reason, r.Status.Cause)
		}
		all = append(all, line)
	}
	return all
}

func expectSummaries(t *testing.T, records []LogRecord, want ...string) {
	t.Helper()
	if got := summaries(records); !slices.Equal(got, want) {
		t.Errorf("the records are\n%q, want\n%q", got, want)
	}
}

func TestLogQueue_EventsAndStatuses_AreExportedOnce(t *testing.T) {
	onLogQueues(t, 100, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", eventOf(w.workload, "a", 1), statusOf(w.helm, "Healthy", 1))
		apply(t, s, "one", eventOf(w.workload, "b", 1), statusOf(w.helm, "Healthy", 2))
		create(t, s, "WorkloadEvent", "v0", "Normal", "Created", "of v0", reportTime.UnixMicro(), int64(w.workload.ID))
		var again []LogRecord
		failure := errors.New("no backend")
		if _, err := s.ExportLogs(t.Context(), func(_ context.Context, sent []LogRecord) (int, error) {
			again = sent
			return 0, failure
		}); !errors.Is(err, failure) {
			t.Fatalf("the error is %v, want that of the backend", err)
		}
		records, _ := exportLogs(t, s)
		expectSummaries(t, records,
			"WorkloadInstance web of name of one: a message 1 ×1", "HelmWorkloadInstance chart of name of one: Unknown→Healthy Reason cause 1",
			"WorkloadInstance web of name of one: b message 1 ×1", "WorkloadInstance web of name of one: v0 of v0 ×0")
		uids := map[string]bool{}
		for i, r := range records {
			uids[r.UID] = true
			if i >= len(again) || r.UID != again[i].UID {
				t.Errorf("the UIDs are %v, want those of the failed export: %v", records, again)
			}
			if time.Since(r.StoredAt).Abs() > time.Minute {
				t.Errorf("%v was stored at %v, want now", r, r.StoredAt)
			}
		}
		if len(uids) != len(records) {
			t.Errorf("%d records have %d UIDs", len(records), len(uids))
		}
		if records, done := exportLogs(t, s); len(records) > 0 || done != (LogExport{}) {
			t.Errorf("after the export there are %v, %+v, want no record", records, done)
		}
	})
}

func TestLogQueue_EventIsUpdated_NewestVersionIsExported(t *testing.T) {
	onLogQueues(t, 100, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", eventOf(w.workload, "a", 1))
		first, _ := exportLogs(t, s)
		apply(t, s, "one", eventOf(w.workload, "a", 2))
		apply(t, s, "one", eventOf(w.workload, "a", 3))
		apply(t, s, "one", eventOf(w.workload, "a", 2)) // stale
		second, _ := exportLogs(t, s)
		expectSummaries(t, first, "WorkloadInstance web of name of one: a message 1 ×1")
		expectSummaries(t, second, "WorkloadInstance web of name of one: a message 3 ×3")
		if first[0].UID == second[0].UID {
			t.Errorf("two versions have the UID %s", first[0].UID)
		}
	})
}

// An update while the records are sent is a record of the next batch.
func TestLogQueue_EventIsUpdatedDuringExport_IsExportedAgain(t *testing.T) {
	onLogQueues(t, 100, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", eventOf(w.workload, "a", 1))
		_, err := s.ExportLogs(t.Context(), func(ctx context.Context, sent []LogRecord) (int, error) {
			_, err := s.Apply(ctx, setOf("one", eventOf(w.workload, "a", 2)))
			return len(sent), err
		})
		if err != nil {
			t.Fatal(err)
		}
		records, _ := exportLogs(t, s)
		expectSummaries(t, records, "WorkloadInstance web of name of one: a message 2 ×2")
	})
}

func TestLogQueue_StatusChanges_EachHasARecord(t *testing.T) {
	onLogQueues(t, 100, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		began := reportTime.Add(time.Hour)
		unhealthy := statusOf(w.workload, "Unhealthy", 2)
		unhealthy.Status.Since = &began
		apply(t, s, "one", statusOf(w.workload, "Healthy", 1))
		apply(t, s, "one", unhealthy)
		if _, err := s.MarkSilent(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		apply(t, s, "one") // the agent returns
		if _, err := s.Update(t.Context(), resource(t, workload), int64(w.workload.ID), []any{nil, "Down", nil}); err != nil {
			t.Fatal(err)
		}
		records, _ := exportLogs(t, s)
		const of = "WorkloadInstance web of name of one: "
		expectSummaries(t, records, of+"Unknown→Healthy Reason cause 1", of+"Healthy→Unhealthy Reason cause 2",
			of+"Unhealthy→Unknown AgentOffline the agent does not report", of+"Unknown→Unhealthy Reason cause 2", of+"Unhealthy→Down  ")
		if at := records[1].Status.Time; !at.Equal(began) {
			t.Errorf("the status began at %v, want the reported %v", at, began)
		}
		if at := records[3].Status.Time; time.Since(at).Abs() > time.Minute {
			t.Errorf("the status returned at %v, want now", at)
		}
	})
}

func TestLogQueue_EventIsPruned_CountsAsLost(t *testing.T) {
	onLogQueues(t, 100, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		for i := range 5 {
			apply(t, s, "one", eventOf(w.workload, fmt.Sprint("event ", i), int64(i+1)))
		}
		keep := DefaultRetention()
		keep.EventAge, keep.EventCount = 100*365*24*time.Hour, 2
		if _, err := s.Prune(t.Context(), keep); err != nil {
			t.Fatal(err)
		}
		records, done := exportLogs(t, s)
		if len(records) != 2 || done.Lost != 3 {
			t.Errorf("%q were exported, %+v, want the two that were kept, and three lost", summaries(records), done)
		}
	})
}

func TestLogQueue_TooManyRecords_OldestAreLost(t *testing.T) {
	onLogQueues(t, 3, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		for i := range 5 {
			apply(t, s, "one", eventOf(w.workload, fmt.Sprint("event ", i), int64(i+1)))
		}
		if n, oldest, err := s.LogBacklog(t.Context()); n != 5 || oldest == nil || time.Since(*oldest).Abs() > time.Minute || err != nil {
			t.Errorf("the backlog is %d since %v, %v, want 5 since now", n, oldest, err)
		}
		removed := trimLogs(t, s)
		records, _ := exportLogs(t, s)
		if len(records) != 3 || removed != 2 || records[0].Event.UID != "event 2" {
			t.Errorf("%q were exported and %d removed, want the three newest, and two removed", summaries(records), removed)
		}
		if n, oldest, err := s.LogBacklog(t.Context()); n != 0 || oldest != nil || err != nil {
			t.Errorf("the backlog is %d since %v, %v, want none", n, oldest, err)
		}
	})
}

// Long messages are exported in several batches.
func TestLogQueue_LongMessages_BatchIsBounded(t *testing.T) {
	onLogQueues(t, 100, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		var reports []threeport.Report
		for i := range 40 {
			report := eventOf(w.workload, fmt.Sprint(i), int64(i+1))
			report.Event.Message = string(slices.Repeat([]byte("x"), maxMessage-100))
			reports = append(reports, report)
		}
		apply(t, s, "one", reports...)
		total := 0
		for more := true; more; {
			records, done := exportLogs(t, s)
			total, more = total+len(records), done.More
			if len(records) > 17 {
				t.Errorf("a batch has %d records of 64 KiB, want about 1 MiB", len(records))
			}
		}
		if total != len(reports) {
			t.Errorf("%d records were exported, want %d", total, len(reports))
		}
	})
}

func TestLogQueue_NotEnabled_IsEmptied(t *testing.T) {
	databases.ForEachPrepared(t, migrated, func(t *testing.T, address string) {
		t.Helper()
		queue := func(records int64, uid string) (waiting int64) {
			t.Helper()
			s, err := Open(t.Context(), Config{Address: address, LogBytes: records * rowBytes})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close() //nolint:errcheck // no test depends on it
			apply(t, s, "one", eventOf(newWorld(t, s).workload, uid, 1))
			if waiting, _, err = s.LogBacklog(t.Context()); err != nil {
				t.Fatal(err)
			}
			return waiting
		}
		for i, step := range []struct{ records, want int64 }{{0, 0}, {100, 1}, {100, 2}, {0, 0}, {100, 1}} {
			if got := queue(step.records, fmt.Sprint(i)); got != step.want {
				t.Errorf("step %d: %d records wait, want %d", i, got, step.want)
			}
		}
		commands, err := Open(t.Context(), Config{Address: address, KeepIndexes: true})
		if err != nil {
			t.Fatal(err)
		}
		defer commands.Close() //nolint:errcheck // no test depends on it
		if n, _, err := commands.LogBacklog(t.Context()); n != 1 || err != nil {
			t.Errorf("after a command beside the server %d records wait, %v, want 1", n, err)
		}
	})
}

// One replica exports at a time.
func TestLogQueue_TwoReplicas_OneExports(t *testing.T) {
	onPostgres(t, Config{LogBytes: 100 * rowBytes}, func(t *testing.T, s *Store) {
		t.Helper()
		other := open(t, s.config)
		apply(t, s, "one", eventOf(newWorld(t, s).workload, "a", 1))
		_, err := s.ExportLogs(t.Context(), func(ctx context.Context, sent []LogRecord) (int, error) {
			done, err := other.ExportLogs(ctx, func(context.Context, []LogRecord) (int, error) {
				return 0, errors.New("another replica exports meanwhile")
			})
			if done != (LogExport{}) {
				t.Errorf("the other replica exported %+v meanwhile", done)
			}
			return len(sent), err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestLogQueue_LongCause_IsCut(t *testing.T) {
	onLogQueues(t, 100, func(t *testing.T, s *Store) {
		t.Helper()
		report := statusOf(newWorld(t, s).workload, "Healthy", 1)
		report.Status.Cause = strings.Repeat("é", maxLoggedCause+1)
		apply(t, s, "one", report)
		if n := count(t, s, "SELECT octet_length(cause) FROM log_queue"); n != 2*maxLoggedCause {
			t.Errorf("the stored cause has %d bytes, want %d", n, 2*maxLoggedCause)
		}
		if got, least := count(t, s, "SELECT position FROM log_queue"), int64(rowBytes+2*maxLoggedCause); got < least || got > least+100 {
			t.Errorf("the record counts %d bytes, want at least %d", got, least)
		}
		records, _ := exportLogs(t, s)
		if got := records[0].Status.Cause; got != strings.Repeat("é", maxLoggedCause) {
			t.Errorf("the exported cause has %d bytes, want %d", len(got), 2*maxLoggedCause)
		}
	})
}

// The queue is full of records of one cluster.
func TestLogQueue_TooManyBytes_LargestClusterLoses(t *testing.T) {
	onLogQueues(t, 6, func(t *testing.T, s *Store) {
		t.Helper()
		large, small := newWorld(t, s), newWorld(t, s)
		apply(t, s, "small", eventOf(small.workload, "before", 1))
		for i := range 8 {
			apply(t, s, "large", eventOf(large.workload, fmt.Sprint("event ", i), 1))
		}
		apply(t, s, "small", eventOf(small.workload, "after", 1))
		create(t, s, "WorkloadEvent", "v0", "Normal", "Created", "of v0", reportTime.UnixMicro(), int64(small.workload.ID))
		if removed := trimLogs(t, s); removed != 4 {
			t.Errorf("%d records were removed, want 4", removed)
		}
		if removed := trimLogs(t, s); removed != 0 {
			t.Errorf("%d records were removed again, want none", removed)
		}
		var got []string
		records, _ := exportLogs(t, s)
		for _, r := range records {
			got = append(got, r.ClusterUID+": "+r.Event.UID)
		}
		want := []string{"large: event 4", "large: event 5", "large: event 6", "large: event 7", "small: before", "small: after", "small: v0"}
		if !slices.Equal(got, want) {
			t.Errorf("the records that were kept are %q, want %q", got, want)
		}
	})
}

func TestFairShare(t *testing.T) {
	for _, tc := range []struct {
		reason string
		sizes  []int64
		want   int64
	}{
		{"no cluster", nil, math.MaxInt64},
		{"all fit", []int64{30, 70}, math.MaxInt64},
		{"one is too large", []int64{101}, 100},
		{"the large one gives", []int64{1000, 10, 20}, 70},
		{"both large ones give", []int64{1000, 10, 50}, 45},
	} {
		if got := fairShare(tc.sizes, 100); got != tc.want {
			t.Errorf("%s: the share is %d, want %d", tc.reason, got, tc.want)
		}
	}
}

// A cluster with many records delays those of others by its turn.
func TestLogQueue_Clusters_TakeTurns(t *testing.T) {
	onLogQueues(t, 100_000, func(t *testing.T, s *Store) {
		t.Helper()
		for _, of := range []struct {
			cluster string
			events  int
		}{{"a", 1200}, {"b", 3}, {"c", 600}} {
			w := newWorld(t, s)
			var reports []threeport.Report
			for i := range of.events {
				reports = append(reports, eventOf(w.workload, fmt.Sprint("event ", i), 1))
			}
			for part := range slices.Chunk(reports, MaxReports) {
				apply(t, s, of.cluster, part...)
			}
		}
		var batches []string
		for more := true; more; {
			records, done := exportLogs(t, s)
			more = done.More
			batch := ""
			for len(records) > 0 {
				n := slices.IndexFunc(records, func(r LogRecord) bool { return r.ClusterUID != records[0].ClusterUID })
				if n < 0 {
					n = len(records)
				}
				batch += fmt.Sprint(records[0].ClusterUID, " ", n, " ")
				records = records[n:]
			}
			batches = append(batches, batch)
		}
		if want := []string{"a 500 ", "b 3 c 497 ", "c 103 a 397 ", "a 303 "}; !slices.Equal(batches, want) {
			t.Errorf("the batches are %q, want %q", batches, want)
		}
	})
}

func TestLogQueue_ExportFailsInTheMiddle_SettledRecordsAreRemoved(t *testing.T) {
	onLogQueues(t, 100, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", eventOf(w.workload, "a", 1), eventOf(w.workload, "b", 1), eventOf(w.workload, "c", 1))
		var sent []LogRecord
		failure := errors.New("no backend")
		done, err := s.ExportLogs(t.Context(), func(_ context.Context, records []LogRecord) (int, error) {
			sent = records
			return 2, failure
		})
		if done.Records != 2 || !errors.Is(err, failure) {
			t.Errorf("the export is %+v, %v, want two settled records and the error of the backend", done, err)
		}
		records, _ := exportLogs(t, s)
		if len(records) != 1 || records[0].UID != sent[2].UID {
			t.Errorf("%q are sent again, want the last one with its UID", summaries(records))
		}
	})
}
