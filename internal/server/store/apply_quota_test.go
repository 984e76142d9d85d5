package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// storedBytesOf is the counter of cluster one. It must equal the size of the rows, unless pruning has to correct it.
func storedBytesOf(t *testing.T, s *Store) int64 {
	t.Helper()
	if deviation := count(t, s, storedBytesError, "one"); deviation != 0 {
		t.Errorf("the counter deviates by %d bytes, want 0", -deviation)
	}
	return count(t, s, "SELECT storedbytes FROM clusters WHERE uid = 'one'")
}

// largeOperation is an operation with a definition of a size in bytes.
func largeOperation(of threeport.Instance, uid, operation string, version int64, bytes int) threeport.Report {
	report := operationOf(of, 0, uid, operation, version)
	report.Operation.Definition = json.RawMessage(`{"a":"` + strings.Repeat("a", bytes-len(`{"a":""}`)) + `"}`)
	return report
}

func TestApply_StoredBytes_EqualRows(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		const added, modified, deleted = threeport.OperationAdded, threeport.OperationModified, threeport.OperationDeleted
		node := nodeOf("ä", "1", "Down")
		node.Cause, node.Owner = "über", "o"
		for _, set := range [][]threeport.Report{
			{operationOf(w.workload, w.resource, "a", added, 1), operationOf(w.helm, 0, "b", added, 1)},
			{operationOf(w.workload, w.resource, "a", modified, 20), largeOperation(w.helm, "b", modified, 5, 3000)},
			{operationOf(w.helm, 0, "a", modified, 20)}, // moves it
			{operationOf(w.workload, w.resource, "a", modified, 30), operationOf(w.helm, 0, "a", modified, 31)},
			{operationOf(w.workload, w.resource, "a", deleted, 40), operationOf(w.helm, 0, "unknown", deleted, 1)},
			{treeOf(w.workload, 1, node, podNode("pod", 4)), treeOf(w.helm, 1, node)},
			{treeOf(w.workload, 2, node, podNode("pod", 5)), treeOf(w.helm, 2, node)},
			{treeOf(w.workload, 3, node, nodeOf("pod", "pod", "Healthy")), treeOf(w.helm, 3, node)},
			{treeOf(w.workload, 4, node, nodeOf("b", "", "Healthy")), treeOf(w.helm, 4, node)},
			{treeOf(w.workload, 5, nodeOf("a longer name", "1", "Healthy"), nodeOf("b", "", "Healthy"))},
			{treeOf(w.workload, 6), statusOf(w.workload, "Healthy", 1)},
		} {
			apply(t, s, "one", set...)
			storedBytesOf(t, s)
		}
		migration, err := migrations.ReadFile("migrations/sqlite/00009_stored_bytes.sql")
		if err != nil {
			t.Fatal(err)
		}
		_, counting, _ := strings.Cut(string(migration), "UPDATE clusters")
		mustExec(t, s, "UPDATE clusters SET storedbytes = 1")
		mustExec(t, s, "UPDATE clusters"+counting)
		storedBytesOf(t, s)
	})
}

func TestApply_DefinitionsBeyondQuota_AreRejected(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		s.config.ClusterBytes = 20_000
		const added, deleted = threeport.OperationAdded, threeport.OperationDeleted
		var reports []threeport.Report
		for i := range 30 {
			reports = append(reports, largeOperation(w.helm, fmt.Sprintf("%02d", i), added, 1, 1000))
		}
		answer, err := s.Apply(t.Context(), setOf("one", reports...))
		if err != nil {
			t.Fatal(err)
		}
		got := outcomes(answer)
		fits := slices.Index(got, threeport.ProblemQuota)
		if fits < 10 || fits > 20 || slices.Contains(got[fits:], "created") {
			t.Fatalf("the outcomes are %v, want some created and all others quota_exceeded", got)
		}
		if detail := details(answer)[0]; !strings.Contains(detail, "at most 20000 bytes") {
			t.Errorf("the detail is %q, want the quota", detail)
		}
		if n := storedBytesOf(t, s); n > 20_000 {
			t.Errorf("%d bytes are stored, want at most 20000", n)
		}
		for range 3 { // the same again in sets of their own
			expect(t, apply(t, s, "one", largeOperation(w.helm, "other", added, 1, 1000)), "quota_exceeded")
		}
		expect(t, apply(t, s, "one", statusOf(w.helm, "Healthy", 1)), "created")
		expect(t, apply(t, s, "two", largeOperation(w.workload, "of another cluster", added, 1, 1000)), "created")

		expect(t, apply(t, s, "one", operationOf(w.helm, 0, "00", deleted, 2)), "updated")
		mustExec(t, s, "UPDATE definitions SET goneat = ? WHERE goneat IS NOT NULL", past)
		prune(t, s, keepTen, Pruned{Definitions: 1})
		expect(t, apply(t, s, "one", largeOperation(w.helm, "other", added, 1, 1000)), "created")
	})
}

func TestApply_TreeBeyondQuota_IsRejectedAndClaimsNothing(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		s.config.ClusterBytes = 20_000
		nodes := func(version, n int) (all []threeport.TreeObject) {
			for i := range n {
				all = append(all, nodeOf("web", fmt.Sprint(version, "-", i), "Healthy"))
			}
			return all
		}
		expect(t, apply(t, s, "one", treeOf(w.workload, 1, nodes(1, 100)...)), "quota_exceeded")
		if n := count(t, s, "SELECT COUNT(*) FROM workloads WHERE clusteruid IS NOT NULL"); n != 0 {
			t.Error("the rejected tree claimed its workload, want none")
		}
		var got []string
		for version := 1; version <= 10; version++ { // gone objects count
			got = append(got, apply(t, s, "one", treeOf(w.workload, int64(version), nodes(version, 10)...))...)
		}
		if got[0] != "created" || got[1] != "updated" || got[9] != "quota_exceeded" {
			t.Errorf("the outcomes are %v, want the last ones to be invalid", got)
		}
		if n := storedBytesOf(t, s); n > 20_000 {
			t.Errorf("%d bytes are stored, want at most 20000", n)
		}
		expect(t, apply(t, s, "one", treeOf(w.workload, 11)), "updated") // it needs no space
	})
}

func TestApplyTrees_GoneObjects_OldestAreDeleted(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		const each = 9000
		for version := range 5 {
			nodes := make([]threeport.TreeObject, each)
			for i := range nodes {
				nodes[i] = nodeOf("", fmt.Sprint(version, "-", i), "Healthy")
			}
			apply(t, s, "one", treeOf(w.workload, int64(version+1), nodes...))
		}
		gone := count(t, s, "SELECT COUNT(*) FROM objects WHERE goneat IS NOT NULL")
		if gone < maxGone || gone > maxGone+each {
			t.Errorf("%d gone objects are stored, want %d to %d", gone, maxGone, maxGone+each)
		}
		if n := count(t, s, "SELECT COUNT(*) FROM objects WHERE key LIKE '0-%'"); n != 0 {
			t.Errorf("%d of the oldest gone objects are stored, want 0", n)
		}
		if n := count(t, s, "SELECT COUNT(*) FROM objects WHERE goneat IS NULL"); n != each {
			t.Errorf("%d objects of the tree are stored, want %d", n, each)
		}
	})
}

func TestApplyTrees_LongCause_IsCut(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		node := nodeOf("a", "1", "Down")
		node.Cause = strings.Repeat("<", maxMessage)
		expect(t, apply(t, s, "one", treeOf(w.workload, 1, node)), "created")
		if n := count(t, s, "SELECT MAX(octet_length(cause)) FROM objects"); n != threeport.MaxTreeCause {
			t.Errorf("the cause has %d bytes, want %d", n, threeport.MaxTreeCause)
		}
		before := count(t, s, "SELECT changedat FROM workloads WHERE id = ?", int64(w.workload.ID))
		expect(t, apply(t, s, "one", treeOf(w.workload, 2, node)), "updated")
		if after := count(t, s, "SELECT changedat FROM workloads WHERE id = ?", int64(w.workload.ID)); after != before {
			t.Error("the same long cause changed the workload row")
		}
	})
}

func TestPrune_LargeCluster_DefinitionsInNoTree(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		const added = threeport.OperationAdded
		apply(t, s, "one",
			operationOf(w.helm, 0, "in the tree", added, 1), operationOf(w.helm, 0, "in another tree", added, 1),
			operationOf(w.helm, 0, "in none", added, 1), operationOf(w.helm, 0, "young", added, 1),
			treeOf(w.helm, 1, nodeOf("a", "in the tree", "Healthy")), treeOf(w.workload, 1, nodeOf("a", "in another tree", "Healthy")),
		)
		other := create(t, s, helm, "without a tree")
		apply(t, s, "one", operationOf(threeport.Instance{Type: helm, ID: threeport.ID(other.ID)}, 0, "without a tree", added, 1))
		prune(t, s, keepTen, Pruned{})
		mustExec(t, s, "UPDATE definitions SET at = ? WHERE uid <> 'young'", past)
		prune(t, s, keepTen, Pruned{}) // the cluster is small
		s.config.ClusterBytes = 1000
		prune(t, s, keepTen, Pruned{Definitions: 1})
		if n := count(t, s, "SELECT COUNT(*) FROM definitions WHERE uid = 'in none'"); n != 0 {
			t.Error("the definition in no tree is stored")
		}
		storedBytesOf(t, s)
		prune(t, s, keepTen, Pruned{})
	})
}
