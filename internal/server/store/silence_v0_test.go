package store

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

func hearV0(t *testing.T, s *Store, of ...threeport.Instance) {
	t.Helper()
	if err := s.RecordV0Report(t.Context(), of); err != nil {
		t.Fatal(err)
	}
}

// An agent that is turned back to v0 sends no report set any more.
func TestAnAgentOfV0IsNotSilent(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", statusOf(w.workload, "Healthy", 5))
		apply(t, s, "two", statusOf(w.helm, "Healthy", 5))
		unheard(t, s, "one", silence)
		unheard(t, s, "two", silence)
		markSilent(t, s, SilentCount{Clusters: 2, Workloads: 2})
		wantTold := untold(t, s)

		hearV0(t, s, w.workload)
		if got, want := boardOf(t, s, w.workload), "said Healthy 5, shown Healthy 5, silent false, Reason: cause 5"; got != want {
			t.Errorf("heard by v0: got %s, want %s", got, want)
		}
		wantTold()
		if got, want := boardOf(t, s, w.helm), "said Healthy 5, shown Unknown 3, silent true, Reason: cause 5"; got != want {
			t.Errorf("another cluster: got %s, want %s", got, want)
		}
		for _, c := range mustClusters(t, s) {
			if c.Silent != (c.ClusterUID == "two") {
				t.Errorf("cluster %s: silent %t", c.ClusterUID, c.Silent)
			}
		}
		markSilent(t, s, SilentCount{})

		changed := count(t, s, "SELECT changedat FROM clusters WHERE uid = 'one'")
		hearV0(t, s, w.workload)
		if got := count(t, s, "SELECT changedat FROM clusters WHERE uid = 'one'"); got != changed {
			t.Error("what is known is written again")
		}

		apply(t, s, "one") // report sets again, so its silence means something
		unheard(t, s, "one", silence)
		markSilent(t, s, SilentCount{Clusters: 1, Workloads: 1})
	})
}

// What was found to be overdue is not marked if v0 comes first.
func TestASweepLeavesAnAgentOfV0Alone(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", statusOf(w.workload, "Healthy", 5))
		unheard(t, s, "one", silence)
		hearV0(t, s, w.workload)
		workloads, silent, err := s.markClusterSilent(t.Context(), "one", count(t, s, "SELECT heardat + 1 FROM clusters"))
		if workloads != 0 || silent || err != nil {
			t.Errorf("%d workloads are marked, silent %t, %v", workloads, silent, err)
		}
	})
}

func TestV0OfNobodysWorkloadTellsNothing(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		hearV0(t, s, w.workload, w.helm, threeport.Instance{Type: workload, ID: 1})
		if n := len(mustClusters(t, s)); n != 0 {
			t.Errorf("%d clusters", n)
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

// All that decides of a cluster's silence at once: nothing is given up for good, and in the end the last word counts.
func TestSilenceIsDecidedInTurns(t *testing.T) {
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
			if got, want := boardOf(t, s, of), "said Healthy 2, shown Healthy 5, silent false, Reason: cause 2"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		if got := mustClusters(t, s); len(got) != 1 || got[0].Silent || got[0].Workloads != 2 {
			t.Errorf("clusters are %+v", got)
		}
	})
}
