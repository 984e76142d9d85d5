package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// rowOf is a row of a workload.
func rowOf(id int64, status string, changed int64) *workloadRow {
	return &workloadRow{Workload: threeport.Workload{
		Instance: threeport.Instance{Type: workload, ID: threeport.ID(id)}, Status: status, Changed: threeport.ID(changed),
	}}
}

// changes summarizes rows for comparison.
func changes(rows []*Change) string {
	text := ""
	for _, row := range rows {
		text += fmt.Sprintf("%d@%d", row.ID, row.Changed)
		if row.Gone {
			text += " gone"
		}
		text += ", "
	}
	return text
}

func TestSubscription_SeveralVersions_KeepsNewest(t *testing.T) {
	sub := newSubscription(newFeed(nil), WatchQuery{}, 0)
	sub.offer(changedRows(rowOf(1, "Down", 30), rowOf(2, "Down", 20)))
	sub.offer(changedRows(rowOf(2, "Down", 10), rowOf(3, "Down", 5))) // read late
	for i := range int64(100) {
		sub.offer(changedRows(rowOf(4, "Down", 40+i)))
	}
	got, err := sub.Next(t.Context())
	if want := "3@5, 2@20, 1@30, 4@139, "; err != nil || changes(got) != want {
		t.Errorf("got %s, %v; want %s", changes(got), err, want)
	}
	if rows, err := sub.take(); len(rows) > 0 || err != nil {
		t.Errorf("a second take returned %s, error %v; want nothing", changes(rows), err)
	}
}

func TestSubscription_TooManyBytes_IsReset(t *testing.T) {
	sub := newSubscription(newFeed(nil), WatchQuery{}, 0)
	empty := changedRows(rowOf(1, "Down", 1))[0].textBytes
	long := func(id, changed int64, size int) []*changedRow {
		row := rowOf(id, "Down", changed)
		row.Cause = strings.Repeat("x", size-empty)
		return changedRows(row)
	}
	for version := range int64(3) { // only the newest version of a row is pending
		if !sub.offer(long(1, version+1, maxPendingBytes)) {
			t.Fatalf("version %d of the only row: the subscription is reset, want the row", version+1)
		}
	}
	if got, err := sub.take(); err != nil || changes(got) != "1@3, " {
		t.Fatalf("got %s, %v, want the newest version", changes(got), err)
	}
	if !sub.offer(long(2, 4, maxPendingBytes)) || sub.offer(long(3, 5, empty)) {
		t.Error("want a reset with the first byte beyond the limit")
	}
	if _, err := sub.take(); !errors.Is(err, ErrReset) {
		t.Errorf("got %v, want %v", err, ErrReset)
	}
	if !sub.offer(long(4, 6, maxPendingBytes)) {
		t.Error("after the reset, a row of the most bytes causes another one")
	}
}

// Hundreds of readers that are thousands of rows behind share one copy of them.
func TestSubscription_Offer_SharesRows(t *testing.T) {
	first, second := newSubscription(newFeed(nil), WatchQuery{}, 0), newSubscription(newFeed(nil), WatchQuery{}, 0)
	var rows []*workloadRow
	for i := range int64(maxPending) {
		rows = append(rows, rowOf(i, "Down", i+1))
	}
	changed := changedRows(rows...)
	first.offer(changed)
	second.offer(changed)
	for instance, row := range first.pending {
		if second.pending[instance] != row {
			t.Fatalf("the subscription has no row, or a copy, for %v", instance)
		}
	}
}

// A deleted row is the same for all subscriptions, and so is a row for those whose filter it no longer matches.
func TestSubscription_Offer_SharesGoneRows(t *testing.T) {
	feed := newFeed(nil)
	all := newSubscription(feed, WatchQuery{}, 0)
	down := newSubscription(feed, WatchQuery{Filter: WorkloadQuery{Statuses: []string{"Down"}}}, 0)
	failed := newSubscription(feed, WatchQuery{Filter: WorkloadQuery{Statuses: []string{"Error"}}}, 0)
	rows := changedRows(rowOf(1, "Healthy", 1))
	for _, sub := range []*Subscription{down, all, failed} {
		sub.offer(rows)
	}
	of := rows[0].Instance
	if gone := down.pending[of]; !gone.Gone || failed.pending[of] != gone {
		t.Errorf("got %p and %p, want one row that is gone", gone, failed.pending[of])
	}
	if row := all.pending[of]; row != rows[0].Change || row.Gone {
		t.Error("a row that all subscriptions share was modified")
	}
}

func TestChange_JSON_IsEncodedOnce(t *testing.T) {
	rows := changedRows(rowOf(1, "Down", 1))
	var lines [][]byte
	for range 3 {
		sub := newSubscription(newFeed(nil), WatchQuery{}, 0)
		sub.offer(rows)
		got, err := sub.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		line, err := got[0].JSON()
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	for _, line := range lines {
		if &line[0] != &lines[0][0] {
			t.Error("a row was encoded again for another subscription")
		}
	}
	if want := `{"type":"WorkloadInstance","id":"1","name":"","status":"Down","delaySeconds":0,"changed":"1"}`; string(lines[0]) != want {
		t.Errorf("got %s, want %s", lines[0], want)
	}
	year := time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	if line, err := NewChange(threeport.Workload{Since: &year}).JSON(); err == nil {
		t.Errorf("a time that JSON does not have was encoded as %s", line)
	}
}

func TestSubscription_DeletedOrNoLongerMatching_IsGone(t *testing.T) {
	deleted := rowOf(4, "Down", 4)
	deleted.deleted = true
	other := rowOf(5, "Down", 5)
	other.Type = helm
	elsewhere := rowOf(6, "Down", 6)
	elsewhere.ClusterUID = "uid-b"
	rows := changedRows(rowOf(1, "Down", 1), rowOf(2, "Healthy", 2), deleted, other, elsewhere)
	tests := []struct {
		reason string
		query  WatchQuery
		want   string
	}{
		{reason: "only deleted rows, without a filter", query: WatchQuery{}, want: "1@1, 2@2, 4@4 gone, 5@5, 6@6, "},
		{
			reason: "rows that may no longer match", query: WatchQuery{Filter: WorkloadQuery{Statuses: []string{"Down"}}},
			want: "1@1, 2@2 gone, 4@4 gone, 5@5, 6@6, ",
		},
		{reason: "not rows of another type", query: WatchQuery{Filter: WorkloadQuery{Types: []string{helm}}}, want: "5@5, "},
		{reason: "not rows of another cluster", query: WatchQuery{Filter: WorkloadQuery{Cluster: "uid-b"}}, want: "6@6, "},
		{reason: "one workload", query: WatchQuery{Instance: &threeport.Instance{Type: workload, ID: 4}}, want: "4@4 gone, "},
	}
	for _, test := range tests {
		sub := newSubscription(newFeed(nil), test.query, 0)
		sub.offer(rows)
		if got, err := sub.Next(t.Context()); err != nil || changes(got) != test.want {
			t.Errorf("%s: got %s, %v; want %s", test.reason, changes(got), err, test.want)
		}
	}
}

func TestSubscription_Next_ReturnsBatches(t *testing.T) {
	sub := newSubscription(newFeed(nil), WatchQuery{}, 0)
	for id := range int64(maxOldest + 1) {
		sub.offer(changedRows(rowOf(id, "Down", 1000-id)))
	}
	for want := int64(1000 - maxOldest); want <= 1000; {
		got, err := sub.Next(t.Context())
		if most := maxBatchBytes/fieldBytes + 1; err != nil || len(got) == 0 || len(got) > most {
			t.Fatalf("got %d rows, %v; want up to %d", len(got), err, most)
		}
		for _, row := range got {
			if int64(row.Changed) != want {
				t.Fatalf("got version %d, want %d", row.Changed, want)
			}
			want++
		}
	}
}

func TestSubscription_Next_LongTexts_ReturnsFewRows(t *testing.T) {
	sub := newSubscription(newFeed(nil), WatchQuery{}, 0)
	for id := range int64(3) {
		row := rowOf(id, "Down", id+1)
		row.Cause = strings.Repeat("x", maxBatchBytes/2+1)
		sub.offer(changedRows(row))
	}
	for _, want := range []string{"0@1, 1@2, ", "2@3, "} {
		if got, err := sub.Next(t.Context()); err != nil || changes(got) != want {
			t.Errorf("got %s, %v; want %s", changes(got), err, want)
		}
	}
}

func TestSubscription_TooManyPending_IsReset(t *testing.T) {
	sub := newSubscription(newFeed(nil), WatchQuery{}, 0)
	for id := range int64(maxPending + 1) {
		sub.offer(changedRows(rowOf(id, "Down", id)))
	}
	sub.offer(changedRows(rowOf(1, "Down", 9999))) // dropped, since a reset is pending
	if got, err := sub.Next(t.Context()); !errors.Is(err, ErrReset) {
		t.Errorf("got %d, %v, want %v", len(got), err, ErrReset)
	}
	sub.offer(changedRows(rowOf(1, "Down", 10_000)))
	if got, err := sub.Next(t.Context()); err != nil || changes(got) != "1@10000, " {
		t.Errorf("after the reset take returned %s, error %v; want no error and \"1@10000, \"", changes(got), err)
	}
}

func TestSubscription_Close_EndsNext(t *testing.T) {
	sub := newSubscription(newFeed(nil), WatchQuery{}, 0)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sub.Next(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v, want %v", err, context.Canceled)
	}
	ended := make(chan error)
	go func() {
		_, err := sub.Next(t.Context())
		ended <- err
	}()
	sub.Close()
	sub.Close()
	if err := <-ended; !errors.Is(err, ErrEnded) {
		t.Errorf("got %v, want %v", err, ErrEnded)
	}
	if _, err := sub.Next(t.Context()); !errors.Is(err, ErrEnded) {
		t.Errorf("the second Next returned %v, want %v", err, ErrEnded)
	}
}

func wantPosition(t *testing.T, sub *Subscription, want int64) {
	t.Helper()
	if got := sub.Position(); int64(got) != want {
		t.Errorf("position is %d, want %d", got, want)
	}
}

// A reader that continues from the position of another subscription gets everything that this one did not return.
func TestSubscription_Position(t *testing.T) {
	sub := newSubscription(newFeed(nil), WatchQuery{}, 1000)
	wantPosition(t, sub, 1000)
	sub.advance(1500)
	sub.advance(1200) // a read that began before the subscription
	wantPosition(t, sub, 1500)
	sub.offer(changedRows(rowOf(1, "Down", 1600), rowOf(2, "Down", 1590)))
	sub.advance(1700)
	wantPosition(t, sub, 1589)
	if _, err := sub.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantPosition(t, sub, 1700)

	for id := range int64(maxPending + 1) {
		sub.offer(changedRows(rowOf(id, "Down", 1800+id)))
	}
	sub.advance(9000)
	wantPosition(t, sub, 1700) // a reset is pending
	if _, err := sub.Next(t.Context()); !errors.Is(err, ErrReset) {
		t.Fatal(err)
	}
	wantPosition(t, sub, 9000)
}
