package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// putEvent writes an Event of a workload or Helm instance.
func putEvent(t *testing.T, s *Store, instance threeport.Instance, id int64, at time.Time, level, kind, reason, message string) {
	t.Helper()
	columns := map[string]string{workload: "workloadinstanceid", helm: "helmworkloadinstanceid"}
	tables := map[string]string{workload: "workload_instances", helm: "helm_workload_instances"}
	mustExec(t, s, "INSERT INTO "+tables[instance.Type]+" (id, createdat, updatedat, name) VALUES (?, 1, 1, '') ON CONFLICT DO NOTHING", int64(instance.ID))
	mustExec(t, s, "INSERT INTO workload_events (id, createdat, updatedat, runtimeeventuid, type, reason, message, timestamp, involvedkind, involvedname, "+
		columns[instance.Type]+") VALUES (?, 1, 1, ?, ?, ?, ?, ?, ?, 'web-1', ?)",
		id, fmt.Sprintf("event-%d", id), level, reason, message, at.UnixMicro(), kind, int64(instance.ID))
}

func TestTimeline_FiltersNewestFirst(t *testing.T) {
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	tests := []struct {
		reason string
		query  TimelineQuery
		want   string // IDs
	}{
		{reason: "newest first, by ID for equal times", query: TimelineQuery{}, want: "4 3 2 1"},
		{reason: "a level", query: TimelineQuery{Level: "Warning"}, want: "4 2"},
		{reason: "a kind", query: TimelineQuery{Kind: "Pod"}, want: "3 2"},
		{reason: "text of a message, in another case", query: TimelineQuery{Text: "BACK-off 100%"}, want: "2"},
		{reason: "text of a reason", query: TimelineQuery{Text: "pull"}, want: "3"},
		{reason: "text of an object's name", query: TimelineQuery{Text: "WEB-"}, want: "4 3 2 1"},
		{reason: "no wildcards", query: TimelineQuery{Text: "b_ck"}},
		{reason: "From is inclusive", query: TimelineQuery{From: new(at(2))}, want: "4 3 2"},
		{reason: "To is exclusive", query: TimelineQuery{To: new(at(2))}, want: "1"},
		{reason: "times beyond int64", query: TimelineQuery{From: new(time.Unix(-1<<60, 0)), To: new(time.Unix(1<<60, 0))}, want: "4 3 2 1"},
	}
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		mine := put(t, s, fixture{id: 1}).instance()
		hers := put(t, s, fixture{id: 1, kind: helm}).instance()
		for _, instance := range []threeport.Instance{mine, hers} {
			first := int64(0)
			if instance == hers {
				first = 100
			}
			putEvent(t, s, instance, first+1, at(1), "Normal", "", "Scheduled", "made by v0")
			putEvent(t, s, instance, first+2, at(2), "Warning", "Pod", "BackOff", "Back-off 100% sure")
			putEvent(t, s, instance, first+3, at(2), "Normal", "Pod", "Pulled", "x")
			putEvent(t, s, instance, first+4, at(3), "Warning", "Deployment", "Failed", "y")
			putEvent(t, s, instance, first+5, at(4), "Normal", "Pod", "Deleted", "z")
		}
		mustExec(t, s, "UPDATE workload_events SET deletedat = 1 WHERE id IN (5, 105)")
		for _, test := range tests {
			t.Run(test.reason, func(t *testing.T) {
				checkTimeline(t, s, mine, test.query, 0, test.want)
				checkTimeline(t, s, hers, test.query, 100, test.want)
			})
		}
	})
}

// checkTimeline reads a timeline in one page and one by one. The expected IDs omit their common prefix.
func checkTimeline(t *testing.T, s *Store, instance threeport.Instance, q TimelineQuery, first threeport.ID, want string) {
	t.Helper()
	for _, size := range []int{0, 1} {
		q.Size = size
		var ids []string
		for {
			list, err := s.Timeline(t.Context(), instance, q)
			if err != nil {
				t.Fatal(err)
			}
			for _, event := range list.Items {
				ids = append(ids, fmt.Sprint(event.ID-first))
			}
			if total := int64(len(strings.Fields(want))); list.Total != total {
				t.Errorf("total is %d; want %d", list.Total, total)
			}
			if q.Cursor = list.Next; q.Cursor == "" {
				break
			}
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s, pages of %d: got %q; want %q", instance.Type, size, got, want)
		}
	}
}

func TestTimeline_ReturnsAllFields(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		instance := put(t, s, fixture{id: 1}).instance()
		putEvent(t, s, instance, 1<<60, noon, "Warning", "Pod", "BackOff", "message")
		mustExec(t, s, `UPDATE workload_events SET involvedgroup = 'g', involvedversion = 'v1', involvednamespace = 'app', involveduid = 'u',
			count = 3, firsttimestamp = ?, gap = '{"normal":1,"warning":2,"first":"2026-03-01T12:00:00Z","last":"2026-03-01T12:00:00Z"}'`,
			noon.Add(-time.Hour).UnixMicro())
		list, err := s.Timeline(t.Context(), instance, TimelineQuery{})
		if err != nil || len(list.Items) != 1 {
			t.Fatal(list, err)
		}
		got := list.Items[0]
		if !got.FirstTime.Equal(noon.Add(-time.Hour)) || *got.Gap != (threeport.Gap{Normal: 1, Warning: 2, First: noon, Last: noon}) {
			t.Errorf("the first time is %v, the gap %+v", got.FirstTime, got.Gap)
		}
		got.FirstTime, got.Gap = nil, nil
		want := threeport.TimelineEvent{ID: 1 << 60, EventReport: threeport.EventReport{
			UID: fmt.Sprintf("event-%d", int64(1<<60)), Type: "Warning", Reason: "BackOff", Message: "message", Time: noon, Count: 3,
			Involved: threeport.ObjectRef{Group: "g", Version: "v1", Kind: "Pod", Namespace: "app", Name: "web-1", UID: "u"},
		}}
		if got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})
}

func TestTimeline_UnknownWorkload_IsNotFound(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		deleted := put(t, s, fixture{id: 1, deleted: 1}).instance()
		for _, instance := range []threeport.Instance{deleted, {Type: workload, ID: 2}, {Type: "Deployment", ID: 1}} {
			if _, err := s.Timeline(t.Context(), instance, TimelineQuery{}); !errors.Is(err, ErrNotFound) {
				t.Errorf("timeline of %v: %v, want %v", instance, err, ErrNotFound)
			}
			if _, err := s.Workload(t.Context(), instance); !errors.Is(err, ErrNotFound) {
				t.Errorf("workload %v: %v, want %v", instance, err, ErrNotFound)
			}
		}
	})
}

func TestTimeline_InvalidParameter_IsNamed(t *testing.T) {
	earlier := noon.Add(-time.Second)
	for parameter, query := range map[string]TimelineQuery{
		"level":  {Level: "warning"},
		"kind":   {Kind: "Pod\x00"},
		"text":   {Text: "\n"},
		"to":     {From: &noon, To: &earlier},
		"size":   {Size: 1001},
		"cursor": {Cursor: "e30x"},
	} {
		if bad, ok := errors.AsType[*FieldError](query.Validate()); !ok || bad.Field != parameter {
			t.Errorf("%+v: got %v, want an error for %s", query, bad, parameter)
		}
	}
}
