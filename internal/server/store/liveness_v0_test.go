package store

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

func recordV0Report(t *testing.T, s *Store, of ...threeport.Instance) {
	t.Helper()
	if err := s.RecordV0Report(t.Context(), of); err != nil {
		t.Fatal(err)
	}
}

// An agent that is switched back to v0 sends no report sets.
func TestRecordV0Report_ClusterIsNotSilent(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", statusOf(w.workload, "Healthy", 5))
		apply(t, s, "two", statusOf(w.helm, "Healthy", 5))
		setLastHeartbeat(t, s, "one", silence)
		setLastHeartbeat(t, s, "two", silence)
		markSilent(t, s, Silenced{Clusters: []string{"name of one", "name of two"}, Workloads: 2})
		wantTold := expectNoChange(t, s)

		recordV0Report(t, s, w.workload)
		if got, want := workloadRowOf(t, s, w.workload), "reported Healthy 5, shown Healthy 5, silent false, Reason: cause 5"; got != want {
			t.Errorf("after a v0 report: got %s, want %s", got, want)
		}
		wantTold()
		if got, want := workloadRowOf(t, s, w.helm), "reported Healthy 5, shown Unknown 3, silent true, Reason: cause 5"; got != want {
			t.Errorf("another cluster: got %s, want %s", got, want)
		}
		for _, c := range mustClusters(t, s) {
			if c.Silent != (c.ClusterUID == "two") {
				t.Errorf("cluster %s: silent %t, want %t", c.ClusterUID, c.Silent, c.ClusterUID == "two")
			}
		}
		markSilent(t, s, Silenced{})

		changed := count(t, s, "SELECT changedat FROM clusters WHERE uid = 'one'")
		recordV0Report(t, s, w.workload)
		if got := count(t, s, "SELECT changedat FROM clusters WHERE uid = 'one'"); got != changed {
			t.Error("a report without a change of liveness wrote the cluster row")
		}

		apply(t, s, "one") // report sets again, so silence counts again
		setLastHeartbeat(t, s, "one", silence)
		markSilent(t, s, Silenced{Clusters: []string{"name of one"}, Workloads: 1})
	})
}

// An overdue cluster is not marked if a v0 report comes first.
func TestMarkSilent_V0ReportMeanwhile_SkipsCluster(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", statusOf(w.workload, "Healthy", 5))
		setLastHeartbeat(t, s, "one", silence)
		recordV0Report(t, s, w.workload)
		workloads, silent, err := s.markClusterSilent(t.Context(), "one", count(t, s, "SELECT heardat + 1 FROM clusters"))
		if workloads != 0 || silent || err != nil {
			t.Errorf("%d workloads marked, silent %t, %v, want 0 and no error", workloads, silent, err)
		}
	})
}

func TestRecordV0Report_WorkloadWithoutCluster_DoesNothing(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		recordV0Report(t, s, w.workload, w.helm, threeport.Instance{Type: workload, ID: 1})
		if n := len(mustClusters(t, s)); n != 0 {
			t.Errorf("%d clusters, want 0", n)
		}
	})
}

func mustClusters(t *testing.T, s *Store) []threeport.Cluster {
	t.Helper()
	clusters, err := s.Clusters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return clusters
}

// All writers of a cluster's liveness run concurrently: none gives up, and the last one determines the result.
func TestLiveness_ConcurrentWriters_AreSerialized(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", statusOf(w.workload, "Healthy", 1), statusOf(w.helm, "Healthy", 1))
		var group sync.WaitGroup
		for _, one := range []func() error{
			func() error { return s.RecordV0Report(t.Context(), []threeport.Instance{w.helm, w.workload}) },
			func() error { _, err := s.MarkSilent(t.Context(), time.Microsecond); return err },
			func() error { _, err := s.Apply(t.Context(), setOf("one", statusOf(w.helm, "Healthy", 1))); return err },
			func() error {
				_, err := s.Update(t.Context(), resource(t, workload), int64(w.workload.ID), []any{nil, "Down", nil})
				return err
			},
			func() error {
				if _, err := s.DeleteCluster(t.Context(), "one"); !errors.Is(err, ErrNotFound) {
					return err
				}
				return nil
			},
		} {
			group.Go(func() {
				for range 50 {
					if err := one(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		apply(t, s, "one", statusOf(w.workload, "Healthy", 2), statusOf(w.helm, "Healthy", 2))
		for _, of := range []threeport.Instance{w.workload, w.helm} {
			if got, want := workloadRowOf(t, s, of), "reported Healthy 2, shown Healthy 5, silent false, Reason: cause 2"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		if got := mustClusters(t, s); len(got) != 1 || got[0].Silent || got[0].Workloads != 2 {
			t.Errorf("the clusters are %+v, want one that is not silent, with 2 workloads", got)
		}
	})
}
