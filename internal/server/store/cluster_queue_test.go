package store

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestClusterQueue_OneSetPerCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q clusterQueue
		release, err := q.acquire(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		releaseOther, err := q.acquire(t.Context(), "two")
		if err != nil {
			t.Fatal(err)
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.acquire(impatient, "one"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second set of the cluster has the error %v, want %v", err, context.DeadlineExceeded)
		}
		next := make(chan func(time.Duration))
		go func() {
			release, _ := q.acquire(t.Context(), "one")
			next <- release
		}()
		synctest.Wait()
		begin := time.Now()
		release(longApply)
		(<-next)(0)
		if waited := time.Since(begin); waited != longApply {
			t.Errorf("the set that waited got its turn after %v, want a pause of %v", waited, longApply)
		}
		releaseOther(0)
		if len(q.clusters) != 0 {
			t.Errorf("%d clusters are in the empty queue, want 0", len(q.clusters))
		}
	})
}

// After a long transaction, the next set of the cluster waits. Other clusters do not.
func TestClusterQueue_LongTransaction_PausesItsCluster(t *testing.T) {
	for _, tc := range []struct{ took, pause time.Duration }{
		{took: longApply, pause: 0},
		{took: 2 * longApply, pause: 4 * longApply},
		{took: 10 * longApply, pause: 100 * longApply},
		{took: maxPause / 2, pause: maxPause},
		{took: maxPause / 2, pause: maxPause},
		{took: 2 * maxPause, pause: 2 * maxPause},
	} {
		synctest.Test(t, func(t *testing.T) {
			var q clusterQueue
			begin := time.Now()
			apply := func(cluster string, took, want time.Duration) {
				t.Helper()
				release, err := q.acquire(t.Context(), cluster)
				if err != nil {
					t.Fatal(err)
				}
				if waited := time.Since(begin); waited != want {
					t.Errorf("after a transaction of %v, cluster %s waited %v, want %v", tc.took, cluster, waited, want)
				}
				release(took)
			}
			apply("one", tc.took, 0)
			apply("two", 0, 0)
			apply("one", 0, tc.pause)
			if len(q.clusters) != 0 {
				t.Errorf("%d clusters are in the empty queue, want 0", len(q.clusters))
			}
		})
	}
}

// While a set of a cluster is applied, another one of it leaves the database's connections to other clusters.
func TestApply_SetsOfOneCluster_LeaveConnectionsToOthers(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		release, err := s.applying.acquire(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := s.Apply(t.Context(), setOf("one", statusOf(w.workload, "Healthy", 1)))
			done <- err
		}()
		expect(t, apply(t, s, "two", statusOf(w.helm, "Healthy", 1)), "created")
		if n := count(t, s, "SELECT COUNT(*) FROM clusters WHERE uid = 'one'"); n != 0 {
			t.Error("two sets of a cluster were applied at once")
		}
		release(0)
		if err := <-done; err != nil {
			t.Error(err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		release, err = s.applying.acquire(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		defer release(0)
		if _, err := s.Apply(ended, threeport.ReportSet{Agent: setOf("one").Agent}); !errors.Is(err, context.Canceled) {
			t.Errorf("the error of a set whose client has gone is %v, want %v", err, context.Canceled)
		}
	})
}
