package store

import (
	"fmt"
	"strings"
	"testing"
)

func TestPrefixWithin_TakesAtLeastOne(t *testing.T) {
	for _, tc := range []struct {
		rows []int64
		want int
	}{
		{rows: nil, want: 0},
		{rows: []int64{100}, want: 1},
		{rows: []int64{100, 1}, want: 1},
		{rows: []int64{4, 6, 1}, want: 2},
		{rows: []int64{4, 5, 1}, want: 3},
	} {
		if got := prefixWithin(10, tc.rows, func(n int64) int64 { return n }); got != tc.want {
			t.Errorf("of %v the first %d are taken, want %d", tc.rows, got, tc.want)
		}
	}
}

// A move forgets all versions of the cluster before, however many and large the rows are, and a repeated one those that an interrupted
// one has left.
func TestAssignWorkload_ManyLargeRows_ForgetsAll(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		assign(t, s, w.workload, "one", "")
		document := strings.Repeat("x", maxBytesPerTx/2)
		add := func(cluster string) {
			t.Helper()
			mustExec(t, s, `INSERT INTO definitions (clusteruid, uid, type, id, kind, name, operation, version, at, current)
				WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
				SELECT CAST(? AS TEXT), 'u' || i, 'WorkloadInstance', CAST(? AS BIGINT), 'ConfigMap', 'c', 'ADDED', 7, 1, CASE WHEN i < 6 THEN CAST(? AS TEXT) END FROM n`,
				maxRowsPerTx+10, cluster, int64(w.workload.ID), document)
		}
		add("one")
		for i := range 5 {
			row := create(t, s, "WorkloadResourceInstance", fmt.Sprintf(`"%s"`, document), int64(w.workload.ID), nil, nil, nil, nil)
			mustExec(t, s, "UPDATE workload_resource_instances SET objectuid = 'u', objectversion = ?, objectdeleted = FALSE WHERE id = ?", i, row.ID)
		}
		versions := func() int64 {
			t.Helper()
			return count(t, s, "SELECT COUNT(*) FROM definitions WHERE clusteruid = 'one' AND version <> 0") +
				count(t, s, "SELECT COUNT(*) FROM workload_resource_instances WHERE objectversion IS NOT NULL")
		}
		if got := versions(); got != maxRowsPerTx+15 {
			t.Fatalf("%d rows have a version, want %d", got, maxRowsPerTx+15)
		}
		assign(t, s, w.workload, "two", "one")
		if got := versions(); got != 0 {
			t.Errorf("%d rows have a version, want 0", got)
		}
		mustExec(t, s, "UPDATE definitions SET version = 7")
		add("two")
		assign(t, s, w.workload, "two", "two")
		if got := versions(); got != 0 {
			t.Errorf("%d rows have a version after a repeated move, want 0", got)
		}
		if got := count(t, s, "SELECT COUNT(*) FROM definitions WHERE clusteruid = 'two' AND version = 7"); got != maxRowsPerTx+10 {
			t.Errorf("%d rows of the cluster of now have a version, want %d", got, maxRowsPerTx+10)
		}
	})
}
