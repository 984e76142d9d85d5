package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// growingTables are the tables that no statement of reports and pruning may scan completely.
var growingTables = []string{"workload_events", "objects", "definitions", "workload_resource_instances", "workload_instances", "helm_workload_instances", "log_queue"}

// planCacheRuns exceeds the 5 executions after which PostgreSQL considers a generic plan (PREPARE).
const planCacheRuns = 8

// runAllStatements repeatedly runs each statement of reports, pruning, retention and the export of logs.
func runAllStatements(t *testing.T, s *Store, times int) {
	t.Helper()
	for i := range times {
		w := newWorld(t, s)
		version := int64(i + 1)
		for range 2 {
			apply(t, s, "one",
				eventOf(w.workload, fmt.Sprint("event ", i), version), eventOf(w.helm, fmt.Sprint("helm's ", i), version),
				operationOf(w.workload, w.resource, fmt.Sprint("object ", i), threeport.OperationModified, version),
				statusOf(w.workload, "Down", version), statusOf(w.helm, "Healthy", version),
				treeOf(w.workload, version, nodeOf("a", fmt.Sprint("node ", i), "Healthy")),
			)
		}
		apply(t, s, "one", treeOf(w.workload, version+1))
		addEvents(t, s, w.workload, fmt.Sprint("many ", i), 20)
		if _, err := s.Remove(t.Context(), resource(t, workload), int64(w.workload.ID)); err != nil {
			t.Fatal(err)
		}
		mustExec(t, s, "UPDATE workloads SET deletedat = ? WHERE type = ? AND id = ?", past, workload, int64(w.workload.ID))
		mustExec(t, s, "UPDATE definitions SET goneat = ? WHERE clusteruid = 'one' AND uid = ?", past, fmt.Sprint("object ", i))
		if _, err := s.Prune(t.Context(), keepTen); err != nil {
			t.Fatal(err)
		}
		setLastHeartbeat(t, s, "one", time.Hour)
		if _, err := s.EventsKeptAfter(t.Context(), w.helm, keepTen); err != nil {
			t.Fatal(err)
		}
		if _, err := s.MarkSilent(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		trimLogs(t, s)
		exportLogs(t, s)
	}
}

// fill makes the tables large enough for the planner. None of its Events is pruned.
func fill(tb testing.TB, s *Store, workloads, events int) {
	tb.Helper()
	series := "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
	for _, statement := range []string{
		fmt.Sprintf(series, workloads) + "INSERT INTO workload_instances (id, createdat, updatedat, name) SELECT i, 1, 1, 'w' FROM n",
		fmt.Sprintf(series, workloads) + "INSERT INTO helm_workload_instances (id, createdat, updatedat, name) SELECT i, 1, 1, 'w' FROM n",
		fmt.Sprintf(series, workloads) + "INSERT INTO workloads (type, id, name, clusteruid, changedat) SELECT 'WorkloadInstance', i, 'w', 'many', 1 FROM n",
		fmt.Sprintf(series, workloads) + `INSERT INTO workload_resource_instances (id, createdat, updatedat, jsondefinition, workloadinstanceid)
			SELECT i, 1, 1, '{}', i FROM n`,
		fmt.Sprintf(series, workloads) + "INSERT INTO objects (type, id, key, clusteruid, kind, name, health) SELECT 'WorkloadInstance', i, 'k', 'many', 'k', 'n', 'Down' FROM n",
		fmt.Sprintf(series, workloads) + `INSERT INTO definitions (clusteruid, uid, type, id, kind, name, operation, version, at)
			SELECT 'many', CAST(i AS TEXT), 'WorkloadInstance', i, 'k', 'n', 'ADDED', 1, 1 FROM n`,
		fmt.Sprintf(series, events) + fmt.Sprintf(`INSERT INTO workload_events (id, createdat, updatedat, runtimeeventuid, type, reason, message, timestamp, workloadinstanceid, clusteruid)
			SELECT i, 1, 1, 'uid ' || i, 'Normal', 'Created', 'message', %d + i, 1 + i %% %d, 'many' FROM n`, time.Now().UnixMicro(), workloads),
	} {
		if _, err := s.write.ExecContext(tb.Context(), statement); err != nil {
			tb.Fatal(err)
		}
	}
	if s.dialect == postgresDialect {
		if _, err := s.write.ExecContext(tb.Context(), "ANALYZE"); err != nil {
			tb.Fatal(err)
		}
	}
}

// TestPlans_ReportsAndPruning_ScanNoGrowingTable checks PostgreSQL's scan statistics, and SQLite's plans before and
// after the tables have statistics.
func TestPlans_ReportsAndPruning_ScanNoGrowingTable(t *testing.T) {
	onLogQueues(t, DefaultLogBytes, func(t *testing.T, s *Store) {
		t.Helper()
		if s.dialect == postgresDialect {
			fill(t, s, 10_000, 60_000)
			checkScans(t, s)
			return
		}
		runAllStatements(t, s, 1)
		statements := sqliteStatements(s)
		checkStatements(t, s, statements)
		fill(t, s, 2_000, 20_000)
		if err := s.optimize(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkStatements(t, open(t, s.config), statements) // new connections load the new statistics
	})
}

// checkStatements checks SQLite's plans of the statements.
func checkStatements(t *testing.T, s *Store, statements []string) {
	t.Helper()
	for _, text := range statements {
		for _, line := range planOf(t, s, text) {
			for _, table := range append([]string{"e", "o", "d", "r", "i", "q"}, growingTables...) {
				if line == "SCAN "+table {
					t.Errorf("the query %s scans the whole table %s", text, table)
				}
			}
		}
	}
}

// checkScans uses a separate store, since connections publish their statistics when they end.
func checkScans(t *testing.T, s *Store) {
	t.Helper()
	const scans = "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = ?"
	before := map[string]int64{}
	for _, table := range growingTables {
		before[table] = count(t, s, scans, table)
	}
	s.write.SetMaxIdleConns(0)
	s.reserved.SetMaxIdleConns(0)
	s.read.SetMaxOpenConns(1) // counted in the statistics
	user, err := Open(t.Context(), s.config)
	if err != nil {
		t.Fatal(err)
	}
	runAllStatements(t, user, planCacheRuns)
	if err := user.Close(); err != nil {
		t.Fatal(err)
	}
	const others = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
	for begin := time.Now(); count(t, s, others) > 0; {
		if time.Since(begin) > waitTimeout {
			t.Fatalf("the connections of a closed store still exist after %v", waitTimeout)
		}
	}
	for _, table := range growingTables {
		if n := count(t, s, scans, table) - before[table]; n != 0 {
			t.Errorf("%s was scanned completely %d times, want 0", table, n)
		}
	}
}

// sqliteStatements are all statements of reports and pruning.
func sqliteStatements(s *Store) []string {
	var all []string
	for text := range s.prepared.byText {
		all = append(all, text)
	}
	all = append(all, queuedLogs, loggedEventsQuery(maxLogBatch))
	p := &pruner{store: s, keep: keepTen}
	deletions := append(p.deletedObjects(nil), p.deletedV0Rows(nil)...)
	for _, of := range instanceTables {
		all = append(all, bulk{text: excessQuery(of.eventColumn), columns: []column{{name: "id"}}}.valuesQuery(workloadBatch), oldestKeptQuery(of.eventColumn))
		deletions = append(deletions, p.rowsOfWorkload(instanceKey{of.kind, 1})...)
		deletions = append(deletions, p.expiredEvents(of.eventColumn, 1), p.eventsUpTo(of.eventColumn, 1, 1, 1), p.aheadEventsUpTo(of.eventColumn, 1, 1, 1),
			p.longEventsUpTo(of.eventColumn, 1, 1, 1), p.orphanEvents())
	}
	for _, of := range deletions {
		all = append(all, of.statement(s.dialect))
	}
	return all
}

func planOf(t *testing.T, s *Store, text string) []string {
	t.Helper()
	args := make([]any, strings.Count(text, "?"))
	lines, err := collect(t.Context(), s.read, "EXPLAIN QUERY PLAN "+text, args, func(scan scanner) (line string, err error) {
		var id, parent, unused int
		err = scan(&id, &parent, &unused, &line)
		return line, err
	})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return lines
}
