package store

import (
	"errors"
	"slices"
	"testing"

	"github.com/threeport/threeport-agent/internal/threeport"
)

func deleteCluster(t *testing.T, s *Store, uid string, want int64) {
	t.Helper()
	if n, err := s.DeleteCluster(t.Context(), uid); n != want || err != nil {
		t.Fatalf("deleted with %d workloads, want %d, %v", n, want, err)
	}
}

// A rebuilt cluster has another UID, its objects have lower versions, and its clock may be behind.
func TestDeleteCluster_DetachesWorkloads(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "old", statusOf(w.workload, "Healthy", 50), operationOf(w.workload, w.resource, "a", threeport.OperationAdded, 50),
			treeOf(w.workload, 50, nodeOf("a", "a", "Healthy")))
		apply(t, s, "kept", statusOf(w.helm, "Healthy", 5))
		setLastHeartbeat(t, s, "old", silence)
		markSilent(t, s, Silenced{Clusters: []string{"name of old"}, Workloads: 1})
		wantTold := expectNoChange(t, s)

		deleteCluster(t, s, "old", 1)
		if got, want := workloadRowOf(t, s, w.workload), "reported Healthy 0, shown Healthy 5, silent false, Reason: cause 50"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		wantTold()
		if uid, err := s.InstanceCluster(t.Context(), workload, int64(w.workload.ID)); uid != "" || err != nil {
			t.Errorf("the workload belongs to %q, %v, want none and no error", uid, err)
		}
		if got := mustClusters(t, s); len(got) != 1 || got[0].ClusterUID != "kept" || got[0].Workloads != 1 {
			t.Errorf("the clusters are %+v, want only the kept one", got)
		}
		if _, err := s.DeleteCluster(t.Context(), "old"); !errors.Is(err, ErrNotFound) {
			t.Errorf("the second deletion returned %v, want %v", err, ErrNotFound)
		}

		again := []threeport.Report{
			statusOf(w.workload, "Down", 4), operationOf(w.workload, w.resource, "b", threeport.OperationAdded, 4),
			treeOf(w.workload, 4, nodeOf("b", "b", "Down")),
		}
		if got, want := apply(t, s, "new", again...), []string{"created", "created", "created"}; !slices.Equal(got, want) {
			t.Errorf("the next cluster: %v, want %v", got, want)
		}
		if uid := count(t, s, "SELECT COUNT(*) FROM workload_resource_instances WHERE objectuid = 'b'"); uid != 1 {
			t.Error("the resource row does not have the new cluster's object")
		}
		if got, want := apply(t, s, "old", statusOf(w.workload, "Healthy", 51)), []string{"forbidden"}; !slices.Equal(got, want) {
			t.Errorf("the old cluster: %v, want %v", got, want)
		}
	})
}

// No row has such a name, and PostgreSQL returns an error for it.
func TestReads_TextThatNoDatabaseStores_IsNotFound(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		events := resource(t, "WorkloadEvent")
		for _, text := range []string{"\xff", "\x00", "a\xed\xa0\x80"} {
			if _, err := s.DeleteCluster(t.Context(), text); !errors.Is(err, ErrNotFound) {
				t.Errorf("cluster %q: %v, want %v", text, err, ErrNotFound)
			}
			for _, of := range [][2]string{{text, "a"}, {"a", text}} {
				if _, err := s.Definition(t.Context(), of[0], of[1]); !errors.Is(err, ErrNotFound) {
					t.Errorf("object %q: %v, want %v", of, err, ErrNotFound)
				}
			}
			if all, total, err := list(t.Context(), s, events, Selection{Page: 1, Size: 1, Filters: []Filter{{0, text}}}); len(all) != 0 || total != 0 || err != nil {
				t.Errorf("events of %q: %d of %d, %v, want 0, 0 and no error", text, len(all), total, err)
			}
		}
	})
}

func TestDeleteCluster_ManyWorkloads_UsesSeveralTransactions(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		apply(t, s, "one")
		mustExec(t, s, `INSERT INTO workloads (type, id, name, clusteruid, said, status, rank, changedat, deletedat)
			WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= ?)
			SELECT 'HelmWorkloadInstance', i, 'w' || i, 'one', 'Healthy', 'Healthy', 5, 1, CASE i WHEN 1 THEN 1 END FROM n`, 2*maxRowsPerTx)
		deleteCluster(t, s, "one", 2*maxRowsPerTx)
		if n := count(t, s, "SELECT COUNT(*) FROM workloads WHERE clusteruid IS NULL"); n != 2*maxRowsPerTx {
			t.Errorf("%d workloads have no cluster, want %d", n, 2*maxRowsPerTx)
		}
		if n := count(t, s, "SELECT COUNT(*) FROM workloads WHERE clusteruid = 'one' AND deletedat IS NOT NULL"); n != 1 {
			t.Error("the deleted workload has no cluster, want the previous one")
		}
	})
}

func TestDeleteCluster_ManyDefinitions_ResetsAll(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		for _, cluster := range []string{"one", "two"} {
			apply(t, s, cluster)
			mustExec(t, s, `INSERT INTO definitions (clusteruid, uid, type, id, kind, name, operation, version, at)
				WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= ?)
				SELECT CAST(? AS TEXT), 'u' || i, 'WorkloadInstance', 1, 'ConfigMap', 'c', 'ADDED', 7, 1 FROM n`, 2*maxRowsPerTx, cluster)
		}
		deleteCluster(t, s, "one", 0)
		if n := count(t, s, "SELECT COUNT(*) FROM definitions WHERE clusteruid = 'one' AND version <> 0"); n != 0 {
			t.Errorf("%d definitions of the deleted cluster have a version, want 0", n)
		}
		if n := count(t, s, "SELECT COUNT(*) FROM definitions WHERE clusteruid = 'two' AND version = 7"); n != 2*maxRowsPerTx+1 {
			t.Errorf("%d definitions of the other cluster have their version, want %d", n, 2*maxRowsPerTx+1)
		}
		if got := mustClusters(t, s); len(got) != 1 || got[0].ClusterUID != "two" {
			t.Errorf("the clusters are %+v, want only the other one", got)
		}
	})
}
