package store

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/testing/databases"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestSearch_LongTexts_LooksAtTheirBeginning(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		const word = "NEEDLE"
		// fill separates the word from the text before it: a workload's row joins name, reason and cause.
		within := func(before string) string { return strings.Repeat("é", maxSearched-len(before)-len(word)) + word }
		beyond := func(before string) string { return "é" + within(before) }
		const before = "w\x1fReason\x1f"
		first := put(t, s, fixture{id: 1, name: "w", reason: "Reason", cause: within(before)})
		put(t, s, fixture{id: 2, name: "w", reason: "Reason", cause: beyond(before)})
		putEvent(t, s, first.instance(), 1, noon, "Warning", "Pod", "R", within(""))
		putEvent(t, s, first.instance(), 2, noon, "Warning", "Pod", "R", beyond(""))
		putEvent(t, s, first.instance(), 3, noon, "Warning", "Pod", within(""), "M")
		putEvent(t, s, first.instance(), 4, noon, "Warning", "Pod", beyond(""), "M")

		q := WorkloadQuery{Text: "needle"}
		found, err := s.Workloads(t.Context(), q)
		if err != nil || len(found.Items) != 1 || found.Items[0].ID != 1 {
			t.Errorf("the search found %s, %v, want workload 1", names(found.Items), err)
		}
		all, err := s.Workloads(t.Context(), WorkloadQuery{})
		if err != nil || len(all.Items) != 2 {
			t.Fatalf("the list has %d workloads, %v, want 2", len(all.Items), err)
		}
		for i := range all.Items {
			if got, want := q.matches(&all.Items[i]), all.Items[i].ID == 1; got != want {
				t.Errorf("a watch selects workload %d: %t, want %t as the list does", all.Items[i].ID, got, want)
			}
		}
		events, err := s.Timeline(t.Context(), first.instance(), TimelineQuery{Text: "Needle"})
		if err != nil || len(events.Items) != 2 || events.Items[0].ID != 3 || events.Items[1].ID != 1 {
			t.Errorf("the search found %d Events, %v, want Events 3 and 1", len(events.Items), err)
		}
	})
}

func TestSearch_LongTextToFind_IsRefused(t *testing.T) {
	for text, accepted := range map[string]bool{strings.Repeat("é", maxSearch): true, strings.Repeat("é", maxSearch+1): false} {
		for list, err := range map[string]error{
			"workloads": WorkloadQuery{Text: text}.Validate(), "Events": TimelineQuery{Text: text}.Validate(),
		} {
			if (err == nil) != accepted {
				t.Errorf("a search in %s for %d bytes: %v, want accepted %t", list, len(text), err, accepted)
			}
		}
	}
}

func TestSearch_Slow_ReturnsErrSearchTimeout(t *testing.T) {
	databases.ForEach(t, func(t *testing.T, address string) {
		t.Helper()
		s := open(t, Config{Address: address, SearchTimeout: time.Nanosecond})
		instance := put(t, s, fixture{id: 1}).instance()
		events := resource(t, "WorkloadEvent")
		message, _ := events.Field("Message")
		workloadID, _ := events.Field("WorkloadInstanceID")
		v0 := func(filters ...Filter) error {
			_, err := s.List(t.Context(), events, Selection{Page: 1, Size: 1, Filters: filters})
			return err
		}
		timeline := func(text string) error {
			_, err := s.Timeline(t.Context(), instance, TimelineQuery{Text: text})
			return err
		}
		list := func(text string) error {
			_, err := s.Workloads(t.Context(), WorkloadQuery{Text: text})
			return err
		}
		byMessage, byWorkload := Filter{message, "x"}, Filter{workloadID, int64(1)}
		for query, err := range map[string]error{
			"workloads by text": list("x"), "Events by text": timeline("x"), "v0 Events by message": v0(byMessage),
			"v0 Events, which are counted": v0(),
		} {
			if !errors.Is(err, ErrSearchTimeout) {
				t.Errorf("%s: got %v, want %v", query, err, ErrSearchTimeout)
			}
		}
		for query, err := range map[string]error{
			"workloads": list(""), "Events": timeline(""), "v0 Events by workload and message": v0(byMessage, byWorkload),
		} {
			if err != nil {
				t.Errorf("%s: got %v, want no search", query, err)
			}
		}
	})
}

func TestReservedPool_AllReadConnectionsBusy_Answers(t *testing.T) {
	databases.ForEach(t, func(t *testing.T, address string) {
		t.Helper()
		s := open(t, Config{Address: address})
		hash := []byte("hash")
		if _, err := s.CreateToken(t.Context(), Token{Name: "ci", Role: "viewer"}, hash); err != nil {
			t.Fatal(err)
		}
		row := create(t, s, "WorkloadInstance", "web")
		for range s.read.Stats().MaxOpenConnections {
			busy, err := s.read.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func(c *sql.Conn) { _ = c.Close() }(busy)
		}
		s.config.ReadTimeout = 10 * time.Second // of a lookup that waits for one of them
		_, tokenErr := s.TokenByHash(t.Context(), hash)
		_, sessionErr := s.SessionToken(t.Context(), hash, time.Now())
		_, clusterErr := s.InstanceCluster(t.Context(), threeport.TypeWorkloadInstance, row.ID)
		_, findErr := s.Find(t.Context(), resource(t, "WorkloadInstance"), row.ID)
		_, keptErr := s.EventsKeptAfter(t.Context(), threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: threeport.ID(row.ID)}, Retention{EventCount: 1})
		if !errors.Is(sessionErr, ErrNotFound) {
			t.Errorf("the session: %v, want %v", sessionErr, ErrNotFound)
		}
		for lookup, err := range map[string]error{
			"ping": s.Ping(t.Context()), "token": tokenErr, "cluster": clusterErr, "row": findErr, "kept Events": keptErr,
		} {
			if err != nil {
				t.Errorf("%s while all connections of the pool read are busy: %v", lookup, err)
			}
		}
	})
}
