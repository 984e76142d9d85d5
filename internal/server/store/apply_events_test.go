package store

import (
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestApplyEvents_RowOfV0_IsUpdated(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		old := create(t, s, "WorkloadEvent", "event", "Normal", "Created", "of v0", reportTime.UnixMicro(), int64(w.workload.ID), w.resource)
		expect(t, apply(t, s, "one", eventOf(w.workload, "event", 1)), "updated")
		expect(t, apply(t, s, "one", eventOf(w.workload, "event", 1)), "unchanged")
		all := rows(t, s, "WorkloadEvent")
		if len(all) != 1 || all[0].ID != old.ID || all[0].Values[3] != "message 1" {
			t.Errorf("the rows are %v, want one updated row", all)
		}
	})
}

func TestApplyEvents_RowOfV0OfAnotherCluster_IsForbidden(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "two", statusOf(w.workload, "Healthy", 1))
		create(t, s, "WorkloadEvent", "event", "Normal", "Created", "of v0", reportTime.UnixMicro(), int64(w.workload.ID))
		expect(t, apply(t, s, "one", eventOf(w.helm, "event", 1)), "forbidden")
		create(t, s, "WorkloadEvent", "no workload", "Normal", "Created", "of v0", reportTime.UnixMicro())
		expect(t, apply(t, s, "one", eventOf(w.helm, "no workload", 1)), "updated")
	})
}

func TestApplyEvents_DeletedRow_FreesUID(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", eventOf(w.workload, "event", 5))
		if _, err := s.Remove(t.Context(), resource(t, "WorkloadEvent"), rows(t, s, "WorkloadEvent")[0].ID); err != nil {
			t.Fatal(err)
		}
		expect(t, apply(t, s, "one", eventOf(w.workload, "event", 3)), "created")
	})
}

func TestApplyEvents_StoresAllFields(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		report := eventOf(w.workload, "event", 3)
		report.Event.ResourceInstanceID = threeport.ID(w.resource)
		report.Event.FirstTime = new(reportTime.Add(-time.Hour))
		report.Event.Gap = &threeport.Gap{Normal: 1, Warning: 2, First: reportTime.Add(-time.Minute), Last: reportTime}
		apply(t, s, "one", report)
		page, err := s.Timeline(t.Context(), w.workload, TimelineQuery{})
		if err != nil {
			t.Fatal(err)
		}
		got, want := page.Items[0].EventReport, *report.Event
		if *got.FirstTime != *want.FirstTime || *got.Gap != *want.Gap {
			t.Errorf("got %v, %v, want %v and %v", *got.FirstTime, *got.Gap, *want.FirstTime, *want.Gap)
		}
		got.FirstTime, want.FirstTime, got.Gap, want.Gap = nil, nil, nil, nil
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		row := rows(t, s, "WorkloadEvent")[0]
		if row.Values[5] != int64(w.workload.ID) || row.Values[6] != w.resource || row.Values[7] != nil {
			t.Errorf("the v0 row is %v, want workload %v and resource %v", row.Values, w.workload.ID, w.resource)
		}
	})
}
