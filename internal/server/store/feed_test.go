package store

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/testing/databases"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// never is a poll interval longer than any test; waitTimeout only ends a test that hangs.
const (
	never       = time.Hour
	waitTimeout = 5 * time.Minute
)

// forEachFeed runs a test on a store whose feed runs without polling.
func forEachFeed(t *testing.T, test func(t *testing.T, s *Store)) {
	t.Helper()
	databases.ForEach(t, func(t *testing.T, address string) {
		t.Helper()
		s := open(t, Config{Address: address, Feed: FeedConfig{Poll: never}})
		runFeed(t, s)
		test(t, s)
	})
}

// runFeed runs the feed until the end of the test.
func runFeed(t *testing.T, s *Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.RunFeed(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("RunFeed returned %v", err)
		}
	})
}

func watch(t *testing.T, s *Store, q WatchQuery) *Subscription {
	t.Helper()
	sub, err := s.Watch(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sub.Close)
	return sub
}

// next waits for changes, up to waitTimeout.
func next(t *testing.T, sub *Subscription) []*Change {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	got, err := sub.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// changedNames returns the names of changed workloads.
func changedNames(rows []*Change) string {
	var workloads []threeport.Workload
	for _, row := range rows {
		workloads = append(workloads, row.Workload)
	}
	return names(workloads)
}

func TestFeed_Writes_ReachSubscribers(t *testing.T) {
	forEachFeed(t, func(t *testing.T, s *Store) {
		t.Helper()
		all := watch(t, s, WatchQuery{})
		down := watch(t, s, WatchQuery{Filter: WorkloadQuery{Statuses: []string{"Down"}}})
		row := create(t, s, "WorkloadInstance", "shop", "Down")
		for _, sub := range []*Subscription{all, down} {
			if got := next(t, sub); len(got) != 1 || got[0].Name != "shop" || int64(got[0].ID) != row.ID || got[0].Gone {
				t.Fatalf("after the creation the subscription delivered %+v, want the workload shop", got)
			}
		}
		if _, err := s.Update(t.Context(), resource(t, "WorkloadInstance"), row.ID, []any{nil, "Healthy", nil}); err != nil {
			t.Fatal(err)
		}
		if got := next(t, all); len(got) != 1 || got[0].Status != "Healthy" || got[0].Gone {
			t.Errorf("after the change the subscription delivered %+v, want Healthy", got)
		}
		if got := next(t, down); len(got) != 1 || !got[0].Gone {
			t.Errorf("when the workload no longer matches, the subscription delivered %+v, want gone", got)
		}
		if _, err := s.Remove(t.Context(), resource(t, "WorkloadInstance"), row.ID); err != nil {
			t.Fatal(err)
		}
		if got := next(t, all); len(got) != 1 || !got[0].Gone {
			t.Errorf("after the deletion the subscription delivered %+v, want gone", got)
		}
	})
}

// A row becomes visible with its commit: later than its changedat by the duration of the transaction and the error of
// the clock.
func TestFeed_RowsThatBecomeVisibleLate_AreDelivered(t *testing.T) {
	tests := []struct {
		reason string
		late   time.Duration
	}{
		{"a replica whose clock is behind", time.Second},
		{"a transaction that took long", usualLag / 2}, // a stalled machine makes it later
	}
	forEachFeed(t, func(t *testing.T, s *Store) {
		t.Helper()
		for i, test := range tests {
			t.Run(test.reason, func(t *testing.T) {
				sub := watch(t, s, WatchQuery{})
				id := int64(100 * (i + 1))
				put(t, s, fixture{id: id, name: "first"})
				s.feed.signal()
				if got := next(t, sub); changedNames(got) != "first" {
					t.Fatalf("got %s, want \"first\"", changedNames(got))
				}
				put(t, s, fixture{id: id + 1, name: "late", changed: databaseTime(t, s) - test.late.Microseconds()})
				s.feed.signal()
				if got := next(t, sub); changedNames(got) != "late" {
					t.Errorf("got %s, want \"late\"", changedNames(got))
				}
				put(t, s, fixture{id: id + 2, name: "last"})
				s.feed.signal()
				if got := next(t, sub); changedNames(got) != "last" {
					t.Errorf("a row was delivered twice: got %s, want \"last\"", changedNames(got))
				}
				mustExec(t, s, "DELETE FROM workloads")
			})
		}
	})
}

func TestFeed_LateCommit_IsDelivered(t *testing.T) {
	// SQLite allows one writing transaction at a time.
	onPostgres(t, Config{Feed: FeedConfig{Poll: never}}, func(t *testing.T, s *Store) {
		t.Helper()
		runFeed(t, s)
		put(t, s, fixture{id: 1, name: "slow", changed: 1})
		sub := watch(t, s, WatchQuery{})
		tx, err := s.write.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), "UPDATE workloads SET "+s.dialect.changed("workloads")+" WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		create(t, s, "WorkloadInstance", "quick")
		if got := next(t, sub); changedNames(got) != "quick" {
			t.Fatalf("got %s, want \"quick\"", changedNames(got))
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		s.feed.signal()
		if got := next(t, sub); changedNames(got) != "slow" {
			t.Errorf("got %s, want \"slow\"", changedNames(got))
		}
	})
}

// The next poll finds rows that are later than a read looks back, up to the longest transaction.
func TestFeedReader_Poll_LooksBackFurther(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		reader := feedReader{feed: s.feed}
		read := func(lag time.Duration) string {
			t.Helper()
			text := ""
			err := reader.read(t.Context(), databaseTime(t, s), lag, func(rows []*changedRow) {
				for _, row := range rows {
					text += row.Name + " "
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		read(usualLag)
		put(t, s, fixture{id: 1, name: "late", changed: databaseTime(t, s) - s.config.WriteTimeout.Microseconds()})
		if got := read(usualLag); got != "" {
			t.Errorf("a read got %q, want none", got)
		}
		if got := read(s.feed.maxLag()); got != "late " {
			t.Errorf("a poll got %q, want \"late \"", got)
		}
		if got := read(s.feed.maxLag()); got != "" {
			t.Errorf("the next poll got %q again, want none", got)
		}
		put(t, s, fixture{id: 2, name: "ahead", changed: databaseTime(t, s) + time.Hour.Microseconds()})
		if got := read(usualLag); got != "ahead " {
			t.Errorf("with a clock ahead: got %q, want \"ahead \"", got)
		}
		put(t, s, fixture{id: 3, name: "usual"})
		if got := read(usualLag); got != "usual " {
			t.Errorf("after a row from a clock that is ahead: got %q, want \"usual \"", got)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		put(t, s, fixture{id: 4, name: "kept"})
		if err := reader.read(ended, 0, usualLag, func([]*changedRow) {}); err == nil {
			t.Error("a read with an ended context succeeded")
		}
		if got := read(usualLag); got != "kept " {
			t.Errorf("after a read that failed: got %q, want \"kept \"", got)
		}
	})
}

func TestFeedPause(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0:                feedInterval,
		feedInterval / 4: feedInterval,
		feedInterval:     4 * feedInterval,
		10 * time.Second: maxFeedPause,
	} {
		if got := feedPause(took); got != want {
			t.Errorf("after %v the feed pauses for %v, want %v", took, got, want)
		}
	}
}

func TestWatch_After_ReplaysChanges(t *testing.T) {
	forEachFeed(t, func(t *testing.T, s *Store) {
		t.Helper()
		present := databaseTime(t, s)
		ago := func(d time.Duration) int64 { return present - d.Microseconds() }
		put(t, s, fixture{id: 1, name: "before", changed: ago(20 * time.Minute)})
		put(t, s, fixture{id: 2, name: "since", changed: ago(8 * time.Minute)})
		put(t, s, fixture{id: 3, name: "deleted", changed: ago(5 * time.Minute), deleted: 1})
		sub := watch(t, s, WatchQuery{After: new(threeport.ID(ago(10 * time.Minute)))})
		got := next(t, sub)
		if changedNames(got) != "since deleted" || got[0].Gone || !got[1].Gone {
			t.Errorf("the watch replayed %+v, want since and deleted", got)
		}
		put(t, s, fixture{id: 1, name: "now"})
		s.feed.signal()
		if got := next(t, sub); changedNames(got) != "now" {
			t.Errorf("the watch then delivered %s, want \"now\"", changedNames(got))
		}
		for reason, after := range map[string]int64{
			"older than the tombstones": ago(DefaultTombstones),
			"negative":                  -1,
			"a position of no database": 0,
			"in the future":             ago(-time.Hour),
		} {
			sub := watch(t, s, WatchQuery{After: new(threeport.ID(after))})
			if got, err := sub.Next(t.Context()); !errors.Is(err, ErrReset) {
				t.Errorf("%s: got %s, %v, want %v", reason, changedNames(got), err, ErrReset)
			}
		}
		if _, err := s.Watch(t.Context(), WatchQuery{Filter: WorkloadQuery{Types: []string{"x"}}}); err == nil {
			t.Error("Watch accepted an invalid filter")
		}
	})
}

func TestWatch_TooManyChanges_IsReset(t *testing.T) {
	s := open(t, Config{Address: "sqlite::memory:"})
	at := databaseTime(t, s) - time.Hour.Microseconds()
	mustExec(t, s, `INSERT INTO workloads (type, id, name, changedat)
		WITH RECURSIVE s (g) AS (SELECT 1 UNION ALL SELECT g + 1 FROM s WHERE g <= ?) SELECT 'WorkloadInstance', g, 'x', ? + g FROM s`, maxReplayed, at)
	for after, want := range map[int64]error{at - time.Hour.Microseconds(): ErrReset, at + s.feed.maxLag().Microseconds() + 1: nil} {
		sub := watch(t, s, WatchQuery{After: new(threeport.ID(after))})
		if got, err := sub.Next(t.Context()); !errors.Is(err, want) {
			t.Errorf("got %d, %v; want %v", len(got), err, want)
		}
	}
}

// Each watch that resumes reads rows of its own.
func TestWatch_ResumedWithLongTexts_IsReset(t *testing.T) {
	s := open(t, Config{Address: "sqlite::memory:"})
	after := databaseTime(t, s) - time.Hour.Microseconds()
	const quotes = 8 // of four texts
	const fitting = maxReplayedBytes / (maxListedText + 1 + quotes)
	mustExec(t, s, `INSERT INTO workloads (type, id, name, cause, changedat) WITH RECURSIVE s (g) AS (SELECT 1 UNION ALL SELECT g + 1 FROM s WHERE g < ?)
		SELECT 'WorkloadInstance', g, 'x', replace(hex(zeroblob(?)), '00', 'x'), ? + g FROM s`, fitting, maxMessage, after)
	complete := watch(t, s, WatchQuery{After: new(threeport.ID(after))})
	for rows := 0; rows < fitting; {
		got, err := complete.Next(t.Context())
		if err != nil {
			t.Fatalf("with texts of the most bytes: %v after %d rows, want %d rows", err, rows, fitting)
		}
		if len(got[0].Cause) != maxListedText {
			t.Errorf("a cause has %d bytes, want %d", len(got[0].Cause), maxListedText)
		}
		rows += len(got)
	}
	put(t, s, fixture{id: fitting + 1, changed: after + 1, cause: strings.Repeat("x", 2*maxListedText)})
	sub := watch(t, s, WatchQuery{After: new(threeport.ID(after))})
	if got, err := sub.Next(t.Context()); !errors.Is(err, ErrReset) || int64(sub.Position()) < after {
		t.Errorf("with texts of more bytes: got %d rows, %v, want %v", len(got), err, ErrReset)
	}
}

// A reader that does not read holds the rows of its replay, until it is cut off.
func TestWatch_TooManyReplays_IsReset(t *testing.T) {
	s := open(t, Config{Address: "sqlite::memory:"})
	after := databaseTime(t, s) - time.Hour.Microseconds()
	put(t, s, fixture{id: 1, name: "web", changed: after + 1})
	query := WatchQuery{After: new(threeport.ID(after))}
	var subs []*Subscription
	for range maxReplays {
		subs = append(subs, watch(t, s, query))
	}
	expect := func(reason string, want error) {
		t.Helper()
		sub := watch(t, s, query)
		if got, err := sub.Next(t.Context()); !errors.Is(err, want) || err == nil && changedNames(got) != "web" {
			t.Errorf("%s: got %s, %v, want %v", reason, changedNames(got), err, want)
		}
		sub.Close()
	}
	expect("as many watches hold rows as may", ErrReset)
	if got := next(t, subs[0]); changedNames(got) != "web" {
		t.Fatalf("the first watch got %s, want \"web\"", changedNames(got))
	}
	expect("the first reader has not received the rows yet", ErrReset)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := subs[0].Next(ended); !errors.Is(err, context.Canceled) {
		t.Fatalf("the first watch got %s, %v, want no more rows", changedNames(got), err)
	}
	expect("the first reader has received the rows", nil)
	subs = append(subs, watch(t, s, query))
	expect("another watch has that slot", ErrReset)
	subs[1].Close()
	expect("a watch has ended", nil)
}

func TestRunFeed_End_EndsSubscriptions(t *testing.T) {
	s := open(t, Config{Address: "sqlite::memory:"})
	ctx, cancel := context.WithCancel(t.Context())
	sub := watch(t, s, WatchQuery{})
	cancel()
	if err := s.RunFeed(ctx); err != nil {
		t.Errorf("RunFeed returned %v", err)
	}
	if _, err := sub.Next(t.Context()); !errors.Is(err, ErrEnded) {
		t.Errorf("got %v, want %v", err, ErrEnded)
	}
}
