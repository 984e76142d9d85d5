package store

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/testing/databases"
	"github.com/threeport/threeport-agent/internal/testing/postgres"
	"github.com/threeport/threeport-agent/internal/testing/process"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// Environment variable with the database of a process that applies sets until it is killed, and the number of its first
// set.
const applierVariable = "STORE_TEST_APPLIER"

// applyUntilKilled applies one set after another, and prints the number of each answered set.
func applyUntilKilled(where string) error {
	var next int64
	var address string
	if _, err := fmt.Sscanf(where, "%d %s", &next, &address); err != nil {
		return err
	}
	s, err := Open(context.Background(), Config{Address: address})
	if err != nil {
		return err
	}
	for ; ; next++ {
		if err := applyNumber(context.Background(), s, next); err != nil {
			return err
		}
		fmt.Println(next)
	}
}

// killWorkload is the workload of the sets.
var killWorkload = threeport.Instance{Type: workload, ID: 1 << 60}

// applyNumber applies set n: an Event of its own, and the next version of everything else.
func applyNumber(ctx context.Context, s *Store, n int64) error {
	answer, err := s.Apply(ctx, setOf("one",
		eventOf(killWorkload, fmt.Sprint("event ", n), n), statusOf(killWorkload, "Down", n),
		operationOf(killWorkload, 0, "object", threeport.OperationModified, n),
		treeOf(killWorkload, n, nodeOf(fmt.Sprint("pod ", n), "pod", "Down")),
	))
	for _, item := range answer.Items {
		if item.Problem != nil {
			return fmt.Errorf("%+v", *item.Problem)
		}
	}
	return err
}

// checkNumber checks that all answered sets are stored. A later set may be stored as well, since the process may be
// killed between commit and answer.
func checkNumber(t *testing.T, s *Store, answered int64) (latest int64) {
	t.Helper()
	latest = count(t, s, "SELECT saidversion FROM workloads")
	if latest < answered {
		t.Errorf("the client got an answer to set %d, but the latest stored set is %d", answered, latest)
	}
	for query, want := range map[string]int64{
		"SELECT COUNT(*) FROM workload_events": latest, "SELECT treeversion FROM workloads": latest,
		"SELECT version FROM definitions": latest, "SELECT COUNT(*) FROM objects": 1,
	} {
		if got := count(t, s, query); got != want {
			t.Errorf("%s: %d, want %d: a set is stored in part", query, got, want)
		}
	}
	return latest
}

func addKillWorkload(t *testing.T, s *Store) {
	t.Helper()
	mustExec(t, s, "INSERT INTO workload_instances (id, createdat, updatedat, name) VALUES (?, 1, 1, 'w')", int64(killWorkload.ID))
	mustExec(t, s, "INSERT INTO workloads (type, id, name, changedat) VALUES (?, ?, 'w', 1)", workload, int64(killWorkload.ID))
}

// TestApply_ProcessKilled_KeepsAnsweredSets repeatedly kills a process that writes to SQLite.
func TestApply_ProcessKilled_KeepsAnsweredSets(t *testing.T) {
	address := "sqlite:" + filepath.Join(t.TempDir(), "rows.db")
	s, err := Open(t.Context(), Config{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	addKillWorkload(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	latest := int64(0)
	for round := range 5 {
		answered := killApplier(t, fmt.Sprint(latest+1, " ", address), time.Duration(round)*30*time.Millisecond)
		s := open(t, Config{Address: address})
		latest = checkNumber(t, s, answered)
		t.Logf("killed after set %d, %d of them answered", latest, answered)
	}
	if latest < 5 {
		t.Errorf("only %d sets were stored before the kill, want 5 or more", latest)
	}
}

// killApplier starts a process, kills it some time after its first answer, and returns the last set that it answered.
func killApplier(t *testing.T, where string, after time.Duration) (answered int64) {
	t.Helper()
	lines, err := process.KillSelf(t.Context(), applierVariable+"="+where, after)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(lines[len(lines)-1], &answered); err != nil {
		t.Fatal(err)
	}
	return answered
}

// TestApply_PostgresKilled_KeepsAnsweredSets kills PostgreSQL during writes.
func TestApply_PostgresKilled_KeepsAnsweredSets(t *testing.T) {
	databases.OnPrivatePostgres(t, answeredSetsSurviveKill)
}

func answeredSetsSurviveKill(t *testing.T, server *postgres.Server) {
	t.Helper()
	address, err := server.CreateDatabase(t.Context(), "killed", "")
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, Config{Address: address})
	addKillWorkload(t, s)
	latest := int64(0)
	for range 3 {
		answered := make(chan int64)
		go func() {
			defer close(answered)
			for n := latest + 1; applyNumber(t.Context(), s, n) == nil; n++ {
				answered <- n
			}
		}()
		last := latest
		for last < latest+10 {
			last = <-answered
		}
		killed := make(chan struct{})
		go func() {
			server.Kill()
			close(killed)
		}()
		for n := range answered {
			last = n
		}
		<-killed
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		latest = checkNumber(t, s, last)
		t.Logf("killed after set %d, %d of them answered", latest, last)
	}
}
