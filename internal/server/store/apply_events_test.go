package store

import (
	"math"
	"reflect"
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

// The rows of other clusters, and of no cluster, stay as they are.
func TestApplyEvents_UIDOfAnotherCluster_GetsOwnRow(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w, foreign := newWorld(t, s), newWorld(t, s)
		apply(t, s, "two", statusOf(foreign.workload, "Healthy", 1), statusOf(foreign.helm, "Healthy", 1))
		apply(t, s, "two", eventOf(foreign.helm, "of a set", math.MaxInt64))
		create(t, s, "WorkloadEvent", "of v0", "Normal", "Created", "m", reportTime.UnixMicro(), int64(foreign.workload.ID))
		create(t, s, "WorkloadEvent", "of a resource", "Normal", "Created", "m", reportTime.UnixMicro(), nil, foreign.resource)
		create(t, s, "WorkloadEvent", "of nothing", "Normal", "Created", "m", reportTime.UnixMicro())
		before := rows(t, s, "WorkloadEvent")
		for _, of := range before {
			uid := of.Values[0].(string)
			expect(t, apply(t, s, "one", eventOf(w.helm, uid, 1)), "created")
			expect(t, apply(t, s, "one", eventOf(w.helm, uid, 1)), "unchanged")
			expect(t, apply(t, s, "one", eventOf(w.helm, uid, 2)), "updated")
			expect(t, apply(t, s, "one", eventOf(w.helm, uid, 1)), "stale 2")
		}
		if after := rows(t, s, "WorkloadEvent"); len(after) != 2*len(before) || !reflect.DeepEqual(after[:len(before)], before) {
			t.Errorf("the rows are %v, want those of the cluster in addition to %v", after, before)
		}
	})
}

// Versions of two clusters are not comparable.
func TestApplyEvents_InstanceOfAnotherClusterBefore_ReplacesRow(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		expect(t, apply(t, s, "two", eventOf(w.workload, "event", math.MaxInt64)), "created")
		if _, err := s.AssignWorkload(t.Context(), w.workload, "one"); err != nil {
			t.Fatal(err)
		}
		expect(t, apply(t, s, "one", eventOf(w.workload, "event", 1)), "updated")
		expect(t, apply(t, s, "one", eventOf(w.workload, "event", 1)), "unchanged")
		if all := rows(t, s, "WorkloadEvent"); len(all) != 1 || all[0].Values[3] != "message 1" {
			t.Errorf("the rows are %v, want one with message 1", all)
		}
	})
}

func TestApplyEvents_AnotherInstanceOfCluster_TakesRow(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		expect(t, apply(t, s, "one", eventOf(w.workload, "event", 1), statusOf(w.helm, "Healthy", 1)), "created", "created")
		expect(t, apply(t, s, "one", eventOf(w.helm, "event", 2)), "updated")
		expect(t, apply(t, s, "one", eventOf(w.workload, "event", 1)), "stale 2")
		all := rows(t, s, "WorkloadEvent")
		if len(all) != 1 || all[0].Values[5] != nil || all[0].Values[7] != int64(w.helm.ID) {
			t.Fatalf("the rows are %v, want one of the Helm workload", all)
		}
		// A v0 client creates a row for the same Event of the other instance. Each instance then keeps its own.
		create(t, s, "WorkloadEvent", "event", "Normal", "Created", "of v0", reportTime.UnixMicro(), int64(w.workload.ID))
		expect(t, apply(t, s, "one", eventOf(w.workload, "event", 3)), "updated")
		expect(t, apply(t, s, "one", eventOf(w.helm, "event", 4)), "updated")
		all = rows(t, s, "WorkloadEvent")
		if len(all) != 2 || all[0].Values[3] != "message 4" || all[1].Values[3] != "message 3" {
			t.Errorf("the rows are %v, want message 4 of the Helm workload and message 3 of the other", all)
		}
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
