package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

const workload, helm = threeport.TypeWorkloadInstance, threeport.TypeHelmWorkloadInstance

// noon is the approximate time of the fixtures.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// mustExec writes rows that no method of the store writes.
func mustExec(t *testing.T, s *Store, query string, args ...any) {
	t.Helper()
	if _, err := s.write.ExecContext(t.Context(), s.dialect.rebind(query), args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// fixture is a workloads row; zero fields are those of a new row.
type fixture struct {
	kind, name, cluster, status, reason, cause string
	id                                         int64
	since                                      time.Time
	changed, deleted                           int64
}

func (f fixture) instance() threeport.Instance {
	return threeport.Instance{Type: f.kind, ID: threeport.ID(f.id)}
}

// put writes a workloads row and replaces an earlier one. Its changedat is now unless the fixture sets it.
func put(t *testing.T, s *Store, f fixture) fixture {
	t.Helper()
	if f.kind == "" {
		f.kind = workload
	}
	if f.name == "" {
		f.name = fmt.Sprintf("workload-%d", f.id)
	}
	status, rank := displayedStatus(f.status)
	var cluster, deleted any
	if f.cluster != "" {
		cluster = f.cluster
	}
	if f.deleted != 0 {
		deleted = f.deleted
	}
	var since int64
	if !f.since.IsZero() {
		since = f.since.UnixMicro()
	}
	if f.changed == 0 {
		f.changed = databaseTime(t, s)
	}
	mustExec(t, s, `INSERT INTO workloads (type, id, name, clusteruid, said, reason, cause, since, status, rank, changedat, deletedat)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (type, id) DO UPDATE SET name = excluded.name, clusteruid = excluded.clusteruid, said = excluded.said,
			reason = excluded.reason, cause = excluded.cause, since = excluded.since, status = excluded.status, rank = excluded.rank,
			changedat = excluded.changedat, deletedat = excluded.deletedat`,
		f.kind, f.id, f.name, cluster, status, f.reason, f.cause, since, status, rank, f.changed, deleted)
	return f
}

func databaseTime(t *testing.T, s *Store) int64 {
	t.Helper()
	at, err := s.databaseTime(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func putCluster(t *testing.T, s *Store, uid, name string) {
	t.Helper()
	mustExec(t, s, "INSERT INTO clusters (uid, name, heardat, agenttime, delayseconds, changedat) VALUES (?, ?, ?, ?, 1.5, 1)",
		uid, name, noon.UnixMicro(), noon.Add(-time.Second).UnixMicro())
}

// scale is the size of the database that populate creates.
type scale struct{ clusters, workloads, events int }

// populate fills the database like a large installation: clusters, and two objects and a definition for each workload;
// the first workload has 5,000 of the Events. A workload's ID is its number.
func populate(t *testing.T, s *Store, of scale) {
	t.Helper()
	numbers := func(n int) string {
		return fmt.Sprintf("WITH RECURSIVE s (g) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT g + 1 FROM s WHERE g < %d) ", n)
	}
	at := noon.UnixMicro()
	if s.postgres == nil { // faster than inserting into the indexes
		if _, err := s.write.ExecContext(t.Context(), "PRAGMA cache_size = -500000"); err != nil {
			t.Fatal(err)
		}
	}
	for _, statement := range []string{
		"INSERT INTO clusters (uid, name, heardat, agenttime, changedat) " + numbers(of.clusters) +
			fmt.Sprintf("SELECT 'uid-' || g, 'Cluster-' || (%d - g), 1, 1, 1 FROM s", of.clusters),
		"INSERT INTO workload_instances (id, createdat, updatedat, name) " + numbers(of.workloads) +
			"SELECT g, 1, 1, 'shop-' || g FROM s WHERE g % 5 <> 0",
		"INSERT INTO helm_workload_instances (id, createdat, updatedat, name) " + numbers(of.workloads) +
			"SELECT g, 1, 1, 'shop-' || g FROM s WHERE g % 5 = 0",
		fmt.Sprintf("INSERT INTO workloads (type, id, name, clusteruid, said, status, rank, reason, cause, since, changedat) "+numbers(of.workloads)+
			`SELECT CASE WHEN g %% 5 = 0 THEN '%s' ELSE '%s' END, g, 'Shop-' || g,
				CASE WHEN g %% 50 = 0 THEN NULL ELSE 'uid-' || (1 + g * 31 %% %d) END,
				status, status, rank, CASE WHEN rank < 4 THEN 'NotReady' ELSE '' END,
				CASE WHEN rank < 4 THEN 'Deployment web has 0 of 3 replicas ready: Pod web-' || g || ': container app: CrashLoopBackOff, the last exit code was 1' ELSE '' END,
				CASE WHEN g %% 40 = 0 THEN 0 ELSE %d - g * 1000000 %% 86400000000 END, %d - g * 1000000
			FROM (SELECT g, CASE WHEN g %% 100 = 0 THEN 'Down' WHEN g %% 150 = 1 THEN 'Error' WHEN g %% 50 = 2 THEN 'Unhealthy'
					WHEN g %% 33 = 3 THEN 'Unknown' WHEN g %% 20 = 4 THEN 'Reconciling' ELSE 'Healthy' END AS status,
				CASE WHEN g %% 100 = 0 THEN 0 WHEN g %% 150 = 1 THEN 1 WHEN g %% 50 = 2 THEN 2
					WHEN g %% 33 = 3 THEN 3 WHEN g %% 20 = 4 THEN 4 ELSE 5 END AS rank FROM s) AS of`, helm, workload, of.clusters, at, at),
		fmt.Sprintf("INSERT INTO workload_events (id, createdat, updatedat, runtimeeventuid, type, reason, message, timestamp, "+
			"workloadinstanceid, helmworkloadinstanceid, clusteruid, objectversion, involvedkind, involvednamespace, involvedname, count) "+numbers(of.events)+
			`SELECT g, 1, 1, 'event-' || g, CASE WHEN g %% 3 = 0 THEN 'Warning' ELSE 'Normal' END, 'BackOff',
				'Back-off restarting failed container app in pod web-' || g, %d - g * 1000000 %% 86400000000,
				CASE WHEN of %% 5 <> 0 THEN of END, CASE WHEN of %% 5 = 0 THEN of END, 'uid-1', g,
				CASE WHEN g %% 4 = 0 THEN 'Deployment' ELSE 'Pod' END, 'app', 'web-' || g, 1
			FROM (SELECT g, CASE WHEN g <= 5000 THEN 1 ELSE 1 + g %% %d END AS of FROM s) AS one`, at, of.workloads),
		fmt.Sprintf("INSERT INTO objects (type, id, key, clusteruid, uid, kind, namespace, name, health, listed, goneat) "+numbers(of.workloads*2)+
			`SELECT CASE WHEN of %% 5 = 0 THEN '%s' ELSE '%s' END, of, 'object-' || g, 'uid-1', 'object-' || g, 'Pod', 'app', 'web-' || g, 'Healthy',
				g %% 2 = 0, CASE WHEN g %% 3 = 0 THEN %d END FROM (SELECT g, 1 + g / 2 AS of FROM s) AS one`, helm, workload, at),
		fmt.Sprintf("INSERT INTO definitions (clusteruid, uid, type, id, kind, namespace, name, operation, version, current, at) "+numbers(of.workloads)+
			`SELECT 'uid-1', 'object-' || g, '%s', g, 'Pod', 'app', 'web-' || g, 'ADDED', 1, '{"kind":"Pod"}', %d FROM s`, workload, at),
	} {
		if _, err := s.write.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if s.postgres == nil {
		if err := s.optimize(t.Context()); err != nil {
			t.Fatal(err)
		}
		return
	}
	if _, err := s.write.ExecContext(t.Context(), "VACUUM ANALYZE"); err != nil { // as autovacuum does later
		t.Fatal(err)
	}
}

// names joins the names of workloads for comparison.
func names(workloads []threeport.Workload) string {
	all := make([]string, 0, len(workloads))
	for _, w := range workloads {
		all = append(all, w.Name)
	}
	return strings.Join(all, " ")
}
