package store

import (
	"context"
	"database/sql"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// setLastHeartbeat sets the heartbeat of a cluster to some time ago.
func setLastHeartbeat(t *testing.T, s *Store, cluster string, since time.Duration) {
	t.Helper()
	mustExec(t, s, "UPDATE clusters SET heardat = heardat - ? WHERE uid = ?", since.Microseconds(), cluster)
}

// silence is the timeout: long compared with the duration of a test.
const silence = time.Hour

func markSilent(t *testing.T, s *Store, want Silenced) {
	t.Helper()
	found, err := s.MarkSilent(t.Context(), silence)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("found %+v, want %+v", found, want)
	}
}

// expectNoChange returns a function that fails if the workload of type workload changed in between: watchers would get
// an event.
func expectNoChange(t *testing.T, s *Store) (wantTold func()) {
	t.Helper()
	const query = "SELECT changedat FROM workloads WHERE type = ?"
	before := count(t, s, query, workload)
	return func() {
		t.Helper()
		if count(t, s, query, workload) <= before {
			t.Error("marking the cluster silent did not increase changedat of its workload")
		}
	}
}

func TestMarkSilent(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", statusOf(w.workload, "Healthy", 5))
		apply(t, s, "two", statusOf(w.helm, "Healthy", 5))
		setLastHeartbeat(t, s, "one", silence/2)
		markSilent(t, s, Silenced{})
		setLastHeartbeat(t, s, "one", silence/2)
		wantTold := expectNoChange(t, s)
		markSilent(t, s, Silenced{Clusters: []string{"name of one"}, Workloads: 1})
		if got, want := workloadRowOf(t, s, w.workload), "reported Healthy 5, shown Unknown 3, silent true, Reason: cause 5"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		wantTold()
		if got, want := workloadRowOf(t, s, w.helm), "reported Healthy 5, shown Healthy 5, silent false, Reason: cause 5"; got != want {
			t.Errorf("another cluster: got %s, want %s", got, want)
		}
		markSilent(t, s, Silenced{})

		r := resource(t, workload)
		if _, err := s.Update(t.Context(), r, int64(w.workload.ID), []any{nil, "Down", nil}); err != nil {
			t.Fatal(err)
		}
		markSilent(t, s, Silenced{})
		apply(t, s, "one") // a heartbeat
		if got, want := workloadRowOf(t, s, w.workload), "reported Down 5, shown Down 0, silent false, : "; got != want {
			t.Errorf("after a report: got %s, want %s", got, want)
		}
		markSilent(t, s, Silenced{})
	})
}

// A workload shows when the agent of its cluster did not report, until the silence is as old as the oldest Events.
func TestWorkload_Silences(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", statusOf(w.workload, "Healthy", 5))
		apply(t, s, "two", statusOf(w.helm, "Healthy", 5))
		silences := func(of threeport.Instance) []threeport.Silence {
			t.Helper()
			detail, err := s.Workload(t.Context(), of)
			if err != nil {
				t.Fatal(err)
			}
			return detail.Silences
		}
		for range 2 {
			setLastHeartbeat(t, s, "one", silence)
			markSilent(t, s, Silenced{Clusters: []string{"name of one"}, Workloads: 1})
			markSilent(t, s, Silenced{})
			if got := len(silences(w.workload)); got != int(count(t, s, "SELECT COUNT(*) FROM silences"))-1 {
				t.Errorf("%d silences are shown before the end of the last one", got)
			}
			apply(t, s, "one")
		}
		got := silences(w.workload)
		if len(got) != 2 || got[0].From.Before(got[1].From) || got[0].To.Sub(got[0].From) < silence {
			t.Errorf("the silences are %v, want two of at least %s, the newest first", got, silence)
		}
		if other := silences(w.helm); len(other) != 0 {
			t.Errorf("a workload of another cluster has the silences %v", other)
		}
		keep := DefaultRetention()
		keep.EventAge = time.Minute
		mustExec(t, s, "UPDATE silences SET endedat = endedat - ? WHERE startedat = ?", (2 * time.Minute).Microseconds(), got[1].From.UnixMicro())
		prune(t, s, keep, Pruned{Silences: 1})
		if left := silences(w.workload); len(left) != 1 || !left[0].From.Equal(got[0].From) {
			t.Errorf("%v are left, want %v", left, got[:1])
		}
		if _, err := s.DeleteCluster(t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
		if n := count(t, s, "SELECT COUNT(*) FROM silences"); n != 0 {
			t.Errorf("%d silences of a deleted cluster are left", n)
		}
	})
}

func TestApply_ReportOfSilentCluster_RestoresStatus(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", statusOf(w.workload, "Healthy", 5), eventOf(w.helm, "event", 1))
		setLastHeartbeat(t, s, "one", silence)
		markSilent(t, s, Silenced{Clusters: []string{"name of one"}, Workloads: 2})
		apply(t, s, "one", statusOf(w.workload, "Down", 6))
		for of, want := range map[threeport.Instance]string{
			w.workload: "reported Down 6, shown Down 0, silent false, Reason: cause 6",
			w.helm:     "reported  0, shown Unknown 3, silent false, : ",
		} {
			if got := workloadRowOf(t, s, of); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

// An agent that returns has to look at the cluster first. Statuses from before the silence are shown when it has reported for a while,
// and not after a second silence either.
func TestApply_SilentClusterReturns_ShowsOldStatusLater(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		s.config.ReturnTime = silence / 2
		w := newWorld(t, s)
		apply(t, s, "one", statusOf(w.workload, "Healthy", 5), statusOf(w.helm, "Healthy", 5))
		fallSilent := func(workloads int64) {
			t.Helper()
			setLastHeartbeat(t, s, "one", silence)
			markSilent(t, s, Silenced{Clusters: []string{"name of one"}, Workloads: workloads})
		}
		shows := func(when, wantWorkload, wantHelm string) {
			t.Helper()
			for of, want := range map[threeport.Instance]string{w.workload: wantWorkload, w.helm: wantHelm} {
				if got := readDetail(t, s, of).Workload.Status; got != want {
					t.Errorf("%s: %s is shown for a %s, want %s", when, got, of.Type, want)
				}
			}
		}
		fallSilent(2)
		apply(t, s, "one")
		shows("after a heartbeat", "Unknown", "Unknown")
		apply(t, s, "one", statusOf(w.workload, "Down", 6))
		shows("after a report on one", "Down", "Unknown")
		mustExec(t, s, "UPDATE clusters SET returnedat = returnedat - ?", silence.Microseconds())
		fallSilent(1)
		apply(t, s, "one")
		shows("after a second silence", "Unknown", "Unknown")
		mustExec(t, s, "UPDATE clusters SET returnedat = returnedat - ?", silence.Microseconds())
		apply(t, s, "one")
		shows("after a while", "Down", "Healthy")
		markSilent(t, s, Silenced{})
	})
}

func TestMarkSilent_ManyWorkloads_UsesSeveralTransactions(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		apply(t, s, "one")
		mustExec(t, s, `INSERT INTO workloads (type, id, name, clusteruid, said, status, rank, changedat)
			WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
			SELECT 'WorkloadInstance', i, 'w' || i, 'one', 'Healthy', 'Healthy', 5, 1 FROM n`, 2*maxRowsPerTx+3)
		setLastHeartbeat(t, s, "one", silence)
		// A process that ended after its first step.
		mustExec(t, s, "UPDATE clusters SET silent = TRUE")
		mustExec(t, s, "UPDATE workloads SET silent = TRUE, status = 'Unknown', rank = 3 WHERE id <= 500")
		markSilent(t, s, Silenced{Clusters: []string{"name of one"}, Workloads: maxRowsPerTx + 3})
		if n := count(t, s, "SELECT COUNT(*) FROM workloads WHERE status = 'Unknown' AND rank = 3 AND silent"); n != 2*maxRowsPerTx+3 {
			t.Errorf("%d workloads are silent, want %d", n, 2*maxRowsPerTx+3)
		}
		applyUntilRestored(t, s, "one")
		if n := count(t, s, "SELECT COUNT(*) FROM workloads WHERE status = 'Healthy' AND rank = 5 AND NOT silent"); n != 2*maxRowsPerTx+3 {
			t.Errorf("%d workloads are restored, want %d", n, 2*maxRowsPerTx+3)
		}
	})
}

// The causes of an agent's own statuses may be long. They bound the rows of a transaction, too.
func TestSilence_LongCauses_MakeSmallTransactions(t *testing.T) {
	const workloads, cause = 200, 60_000
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		apply(t, s, "one")
		mustExec(t, s, `INSERT INTO workloads (type, id, name, clusteruid, said, status, rank, changedat, cause)
			WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
			SELECT 'WorkloadInstance', i, 'w' || i, 'one', 'Healthy', 'Healthy', 5, 1, ? FROM n`, workloads, strings.Repeat("x", cause))
		setLastHeartbeat(t, s, "one", silence)
		markSilent(t, s, Silenced{Clusters: []string{"name of one"}, Workloads: workloads})
		err := s.inTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			chosen, more, err := s.someWorkloads(ctx, tx, "one", "w.silent")
			if err != nil {
				return err
			}
			var n int64
			err = tx.QueryRowContext(ctx, s.dialect.rebind("SELECT COUNT(*) FROM workloads w WHERE "+chosen.condition), chosen.args...).Scan(&n)
			if n == 0 || n*cause > maxBytesPerTx || !more {
				t.Errorf("a transaction has %d workloads, more: %t; want at most %d bytes, and more", n, more, maxBytesPerTx)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		silent := func() int64 { return count(t, s, "SELECT COUNT(*) FROM workloads WHERE silent") }
		if err := s.endSilence(t.Context(), "one", time.Now()); err != nil || silent() != workloads {
			t.Errorf("%d workloads are silent after the time was over: %v; want %d", silent(), err, workloads)
		}
		applyUntilRestored(t, s, "one")
		if n := count(t, s, "SELECT COUNT(*) FROM workloads WHERE status = 'Healthy' AND rank = 5"); n != workloads {
			t.Errorf("%d workloads are restored, want %d", n, workloads)
		}
	})
}

// applyUntilRestored applies report sets of a cluster until it is no longer silent. Each restores workloads for maxRestoreTime.
func applyUntilRestored(t *testing.T, s *Store, cluster string) {
	t.Helper()
	for range 100 {
		apply(t, s, cluster)
		if count(t, s, "SELECT COUNT(*) FROM clusters WHERE silent") == 0 {
			return
		}
	}
	t.Fatal("the cluster is silent after 100 sets")
}
