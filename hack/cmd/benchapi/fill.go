package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// dialect has the SQL expressions of fill that depend on the database.
type dialect struct {
	// series returns a query of a range of numbers, as column g.
	series func(from, to int) string
	// uid is a random UID.
	uid string
	// disableDurability disables the durability and constraints of the connection; enableDurability enables them again.
	disableDurability, enableDurability []string
	// indexes is a query of the indexes of Events, except the primary key: name and definition.
	indexes string
	// placeholder returns the placeholder number n.
	placeholder func(n int) string
}

var postgresDialect = dialect{
	series: func(from, to int) string {
		return fmt.Sprintf("SELECT CAST(g AS BIGINT) AS g FROM generate_series(%d, %d) AS g", from, to)
	},
	uid: "CAST(gen_random_uuid() AS TEXT)",
	// This also disables foreign keys, which are triggers.
	disableDurability: []string{"SET session_replication_role = replica", "SET synchronous_commit = off", "SET maintenance_work_mem = '1GB'"},
	enableDurability:  []string{"RESET ALL"},
	indexes:           "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'workload_events' AND indexname NOT LIKE '%_pkey'",
	placeholder:       func(n int) string { return "$" + strconv.Itoa(n) },
}

var sqliteDialect = dialect{
	series: func(from, to int) string {
		return fmt.Sprintf("WITH RECURSIVE s (g) AS (SELECT %d UNION ALL SELECT g + 1 FROM s WHERE g < %d) SELECT g FROM s", from, to)
	},
	uid: "lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-' || hex(randomblob(2)) || '-' || hex(randomblob(2)) || '-' || hex(randomblob(6)))",
	disableDurability: []string{
		"PRAGMA foreign_keys = OFF", "PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", "PRAGMA cache_size = -1000000", "PRAGMA temp_store = FILE",
	},
	enableDurability: []string{"PRAGMA foreign_keys = ON", "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA cache_size = -65536"},
	indexes:          "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'workload_events' AND sql IS NOT NULL",
	placeholder:      func(int) string { return "?" },
}

// The IDs of filled rows are smaller than those of the API.
const (
	firstResource = 500_000_000_000_000_000
	firstEvent    = 600_000_000_000_000_000
)

// rowsPerTransaction is the maximum number of Events that a transaction of fill inserts.
const rowsPerTransaction = 500_000

// fill stores resources and Events as the API would have stored them in the last week: in the order of time, with the workloads
// in turns.
func (d *database) fill(ctx context.Context, agents []*agent, events int) (err error) {
	conn, err := d.sql.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	indexes, err := readIndexes(ctx, conn, d.dialect.indexes)
	if err != nil {
		return err
	}
	statements := append([]string{}, d.dialect.disableDurability...)
	for _, index := range indexes {
		statements = append(statements, "DROP INDEX "+index.name)
	}
	statements = append(statements, fleetTable(agents)...)
	statements = append(statements, d.dialect.resources(len(agents[0].workloads[0].resources), len(agents)*workloadsOfAgent))
	for from := 1; from <= events; from += rowsPerTransaction {
		statements = append(statements, d.dialect.events(from, min(from+rowsPerTransaction-1, events), events, len(agents)*workloadsOfAgent))
	}
	for _, index := range indexes {
		statements = append(statements, index.statement)
	}
	statements = append(statements, "DROP TABLE bench_fleet")
	statements = append(statements, d.dialect.enableDurability...)
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%.200s: %w", statement, err)
		}
		fmt.Fprintf(os.Stderr, ".")
	}
	fmt.Fprintln(os.Stderr)
	return d.runMaintenance(ctx)
}

type index struct{ name, statement string }

func readIndexes(ctx context.Context, conn *sql.Conn, query string) (indexes []index, err error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // its error is that of Err
	for rows.Next() {
		var found index
		if err := rows.Scan(&found.name, &found.statement); err != nil {
			return nil, err
		}
		indexes = append(indexes, found)
	}
	return indexes, rows.Err()
}

// fleetTable creates a table of the workloads, numbered from 0.
func fleetTable(agents []*agent) []string {
	statements := []string{"CREATE TABLE bench_fleet (n BIGINT NOT NULL PRIMARY KEY, instance BIGINT, resource BIGINT, cluster TEXT)"}
	n := 0
	for _, a := range agents {
		rows := make([]string, 0, len(a.workloads))
		for _, w := range a.workloads {
			rows = append(rows, fmt.Sprintf("(%d, %d, %d, '%s')", n, w.instance.ID, w.resources[0], a.cluster))
			n++
		}
		statements = append(statements, "INSERT INTO bench_fleet VALUES "+strings.Join(rows, ", "))
	}
	return statements
}

// resources creates the rows of a number of resources of each workload, as an upstream controller does.
func (w dialect) resources(each, workloads int) string {
	return fmt.Sprintf(`INSERT INTO workload_resource_instances (id, createdat, updatedat, jsondefinition, workloadinstanceid)
		SELECT %d + s.g, 1, 1, '{"kind":"ConfigMap","metadata":{"name":"resource-' || (s.g %% %d) || '"}}', f.instance
		FROM (%s) AS s JOIN bench_fleet AS f ON f.n = s.g / %d`, int64(firstResource), each, w.series(0, each*workloads-1), each)
}

// events creates a range of the Events.
func (w dialect) events(from, to, all, workloads int) string {
	const week = 7 * 24 * 3600 * 1_000_000
	at := fmt.Sprintf("(%d - CAST(%d - s.g AS BIGINT) * %d)", benchStart.UnixMicro(), all, week/max(all, 1))
	return fmt.Sprintf(`INSERT INTO workload_events (id, createdat, updatedat, runtimeeventuid, type, reason, message, timestamp,
			workloadinstanceid, workloadresourceinstanceid, clusteruid, objectversion, involvedgroup, involvedversion, involvedkind,
			involvednamespace, involvedname, involveduid, count, firsttimestamp)
		SELECT %d + s.g, %[2]s, %[2]s, %[3]s, CASE WHEN s.g %% 3 = 0 THEN 'Warning' ELSE 'Normal' END, 'BackOff',
			'Back-off pulling image "registry.example.com/shop/web-7887448d46-' || f.n || ':1.' || s.g || '"', %[2]s,
			f.instance, f.resource, f.cluster, s.g, '', 'v1', 'Pod', 'app', 'web-' || s.g %% %[4]d,
			'Pod-' || f.cluster || '-' || f.instance || '-' || s.g %% %[4]d, 1, %[2]s
		FROM (%[5]s) AS s JOIN bench_fleet AS f ON f.n = s.g %% %[6]d`,
		int64(firstEvent), at, w.uid, podsOfWorkload, w.series(from, to), workloads)
}
