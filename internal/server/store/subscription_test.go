package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// changedRow is a row as the feed reads it.
func changedRow(id int64, status string, changed int64) *workloadRow {
	return &workloadRow{Workload: threeport.Workload{
		Instance: threeport.Instance{Type: workload, ID: threeport.ID(id)}, Status: status, Changed: threeport.ID(changed),
	}}
}

// changes summarizes rows for comparison.
func changes(rows []threeport.Workload) string {
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
	sub.offer([]*workloadRow{changedRow(1, "Down", 30), changedRow(2, "Down", 20)})
	sub.offer([]*workloadRow{changedRow(2, "Down", 10), changedRow(3, "Down", 5)}) // read late
	for i := range int64(100) {
		sub.offer([]*workloadRow{changedRow(4, "Down", 40+i)})
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
	long := func(id, changed int64, size int) []*workloadRow {
		row := changedRow(id, "Down", changed)
		row.Cause = strings.Repeat("x", size)
		return []*workloadRow{row}
	}
	for version := range int64(3) { // only the newest version of a row is pending
		if !sub.offer(long(1, version+1, maxPendingBytes)) {
			t.Fatalf("version %d of the only row: the subscription is reset, want the row", version+1)
		}
	}
	if got, err := sub.take(); err != nil || changes(got) != "1@3, " {
		t.Fatalf("got %s, %v, want the newest version", changes(got), err)
	}
	if !sub.offer(long(2, 4, maxPendingBytes)) || sub.offer(long(3, 5, 1)) {
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
		rows = append(rows, changedRow(i, "Down", i+1))
	}
	first.offer(rows)
	second.offer(rows)
	for instance, row := range first.pending {
		if second.pending[instance] != row {
			t.Fatalf("the subscription has no row, or a copy, for %v", instance)
		}
	}
	rows[0].deleted = true
	rows[0].Changed++
	first.offer(rows[:1])
	if rows[0].Gone || second.pending[rows[0].Instance].Gone {
		t.Error("a row that all subscriptions share was modified")
	}
}

func TestSubscription_DeletedOrNoLongerMatching_IsGone(t *testing.T) {
	deleted := changedRow(4, "Down", 4)
	deleted.deleted = true
	other := changedRow(5, "Down", 5)
	other.Type = helm
	elsewhere := changedRow(6, "Down", 6)
	elsewhere.ClusterUID = "uid-b"
	rows := []*workloadRow{changedRow(1, "Down", 1), changedRow(2, "Healthy", 2), deleted, other, elsewhere}
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
	for id := range int64(maxBatch + 1) {
		sub.offer([]*workloadRow{changedRow(id, "Down", 1000-id)})
	}
	for _, want := range []int{maxBatch, 1} {
		if got, err := sub.Next(t.Context()); err != nil || len(got) != want {
			t.Errorf("got %d, %v; want %d", len(got), err, want)
		}
	}
}

func TestSubscription_Next_LongTexts_ReturnsFewRows(t *testing.T) {
	sub := newSubscription(newFeed(nil), WatchQuery{}, 0)
	for id := range int64(3) {
		row := changedRow(id, "Down", id+1)
		row.Cause = strings.Repeat("\U0001F600", maxBatchBytes/4/2+1) // more than half, in bytes
		sub.offer([]*workloadRow{row})
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
		sub.offer([]*workloadRow{changedRow(id, "Down", id)})
	}
	sub.offer([]*workloadRow{changedRow(1, "Down", 9999)}) // dropped, since a reset is pending
	if got, err := sub.Next(t.Context()); !errors.Is(err, ErrReset) {
		t.Errorf("got %d, %v, want %v", len(got), err, ErrReset)
	}
	sub.offer([]*workloadRow{changedRow(1, "Down", 10_000)})
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
	sub.offer([]*workloadRow{changedRow(1, "Down", 1600), changedRow(2, "Down", 1590)})
	sub.advance(1700)
	wantPosition(t, sub, 1589)
	if _, err := sub.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantPosition(t, sub, 1700)

	for id := range int64(maxPending + 1) {
		sub.offer([]*workloadRow{changedRow(id, "Down", 1800+id)})
	}
	sub.advance(9000)
	wantPosition(t, sub, 1700) // a reset is pending
	if _, err := sub.Next(t.Context()); !errors.Is(err, ErrReset) {
		t.Fatal(err)
	}
	wantPosition(t, sub, 9000)
}
