package store

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// onReplicas runs a test on two stores with one PostgreSQL, which run the feed without polling.
func onReplicas(t *testing.T, test func(t *testing.T, first, second *Store)) {
	t.Helper()
	onPostgres(t, Config{Feed: FeedConfig{Poll: never}}, func(t *testing.T, first *Store) {
		t.Helper()
		second := open(t, first.config)
		runFeed(t, first)
		runFeed(t, second)
		test(t, first, second)
	})
}

func TestFeed_ChangeThroughAnotherReplica_IsDelivered(t *testing.T) {
	onReplicas(t, changeOfOtherReplicaIsDelivered)
}

func changeOfOtherReplicaIsDelivered(t *testing.T, first, second *Store) {
	t.Helper()
	sub := watch(t, second, WatchQuery{})
	for _, name := range []string{"a", "b", "c"} {
		begin := time.Now()
		create(t, first, "WorkloadInstance", name)
		if got := next(t, sub); changedNames(got) != name {
			t.Fatalf("got %s; want %s", changedNames(got), name)
		}
		t.Logf("seen after %v", time.Since(begin))
	}
}

func TestFeed_LostListenConnection_Reconnects(t *testing.T) {
	onReplicas(t, lostListenConnectionReconnects)
}

func lostListenConnectionReconnects(t *testing.T, first, second *Store) {
	t.Helper()
	sub := watch(t, second, WatchQuery{})
	create(t, first, "WorkloadInstance", "before")
	if got := next(t, sub); changedNames(got) != "before" {
		t.Fatalf("got %s, want \"before\"", changedNames(got))
	}
	count := func(what string) (n int) {
		t.Helper()
		query := "SELECT COUNT(" + what + ") FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()"
		if err := first.read.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for begin := time.Now(); count("*") < 2; { // the other one may not be listening yet
		if time.Since(begin) > waitTimeout {
			t.Fatal("fewer replicas listen than run")
		}
	}
	if ended := count("pg_terminate_backend(pid)"); ended != 2 {
		t.Fatalf("ended %d connections that listen, want 2", ended)
	}
	create(t, first, "WorkloadInstance", "while it is lost")
	if got := next(t, sub); changedNames(got) != "while it is lost" {
		t.Fatalf("got %s, want \"while it is lost\"", changedNames(got))
	}
	create(t, first, "WorkloadInstance", "after")
	if got := next(t, sub); changedNames(got) != "after" {
		t.Errorf("got %s, want \"after\"", changedNames(got))
	}
}

func TestIsNotifyUnsupported(t *testing.T) {
	for code, want := range map[string]bool{"0A000": true, "42601": true, "42883": true, "57P01": false, "53300": false} {
		if got := isNotifyUnsupported(&pgconn.PgError{Code: code}); got != want {
			t.Errorf("%s: got %t, want %t", code, got, want)
		}
	}
	if isNotifyUnsupported(nil) {
		t.Error("isNotifyUnsupported(nil) is true")
	}
}
