package store

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// sample has existing rows for the queries, since the planner's estimates depend on them.
type sample struct {
	ids                  map[string]int64 // of a workload of each type; 0 for none
	name                 string           // of a workload
	cluster, clusterName string           // its cluster's UID and name
	since                int64
	events               time.Time // the newest Event of that workload
	changed              int64     // a hundred workloads changed after it
	definition           []any     // cluster and object
}

// readSample selects rows from the middle of the tables.
func readSample(t *testing.T, s *Store) sample {
	t.Helper()
	of := sample{ids: map[string]int64{}}
	for _, kind := range []string{helm, workload} { // the last one is the sample's workload
		var id int64
		readSampleRow(t, s, `SELECT w.id, w.name, w.clusteruid, w.since, c.name FROM workloads w JOIN clusters c ON c.uid = w.clusteruid
			WHERE w.type = ? AND w.deletedat IS NULL AND w.since > 0 ORDER BY w.id
			LIMIT 1 OFFSET (SELECT COUNT(*) / 3 FROM workloads WHERE type = ? AND clusteruid IS NOT NULL AND since > 0)`,
			[]any{kind, kind}, &id, &of.name, &of.cluster, &of.since, &of.clusterName)
		of.ids[kind] = id
	}
	if of.ids[workload] == 0 {
		t.Fatal("no cluster in the sample has a workload")
	}
	var newest int64
	readSampleRow(t, s, "SELECT timestamp FROM workload_events WHERE workloadinstanceid = ? ORDER BY timestamp DESC LIMIT 1",
		[]any{of.ids[workload]}, &newest)
	of.events = time.UnixMicro(newest).UTC()
	readSampleRow(t, s, "SELECT changedat FROM workloads ORDER BY changedat DESC LIMIT 1 OFFSET 100", nil, &of.changed)
	var cluster, object string
	readSampleRow(t, s, "SELECT clusteruid, uid FROM definitions ORDER BY clusteruid, uid LIMIT 1 OFFSET 1000", nil, &cluster, &object)
	of.definition = []any{cluster, object}
	return of
}

// readSampleRow reads a row if there is one: not every database has workloads of both types, Events and definitions.
func readSampleRow(t *testing.T, s *Store, query string, args []any, into ...any) {
	t.Helper()
	if err := s.read.QueryRowContext(t.Context(), s.dialect.rebind(query), args...).Scan(into...); err != nil && !errors.Is(err, sql.ErrNoRows) {
		t.Fatalf("%s: %v", query, err)
	}
}

// namedFilter is a filter of the workload list.
type namedFilter struct {
	name  string
	query WorkloadQuery
	most  bool // it selects most workloads
}

// filters are all filters, alone and combined.
func (of sample) filters() []namedFilter {
	return []namedFilter{
		{name: "all", query: WorkloadQuery{}, most: true},
		{name: "one status", query: WorkloadQuery{Statuses: []string{"Down"}}},
		{name: "most statuses", query: WorkloadQuery{Statuses: []string{"Down", "Unhealthy", "Reconciling", "Healthy"}}, most: true},
		{name: "one type", query: WorkloadQuery{Types: []string{helm}}},
		{name: "one cluster", query: WorkloadQuery{Cluster: of.cluster}},
		{name: "text", query: WorkloadQuery{Text: of.name}},
		{name: "text of a cluster's name", query: WorkloadQuery{Text: of.clusterName}},
		{
			name:  "everything",
			query: WorkloadQuery{Statuses: []string{"Down", "Unhealthy"}, Types: []string{workload}, Cluster: of.cluster, Text: of.name},
		},
	}
}

// deepPlace is the position of the sample's workload.
func (of sample) deepPlace(sort string) *workloadPosition {
	return &workloadPosition{
		Sort: sort, Rank: 5, Time: of.since, Name: lowerASCII(of.name), Type: workload, ID: threeport.ID(of.ids[workload]),
		ClusterName: lowerASCII(of.clusterName), Cluster: of.cluster,
	}
}
