package store

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/testing/databases"
	"github.com/threeport/threeport-agent/internal/threeport"
)

var (
	updatePlans = flag.Bool("update-plans", false, "write the plans of the page's queries to testdata, for a large database of either kind")
	plansOf     = flag.String("plans-of", "", "the address of a database whose plans are looked at, rather than those of one made for it")
	plansTo     = flag.String("plans-to", "", "the file that these are written to")
)

// The recorded plans are those of a large installation. SQLite's plans are nearly the same for a fifth of the rows, and
// need a fifth of the time; PostgreSQL scans small tables.
var (
	large = scale{clusters: 1000, workloads: 20_000, events: 30_000}
	fifth = scale{clusters: 200, workloads: 4_000, events: 6_000}
)

// pageQuery is a query of the UI.
type pageQuery struct {
	name  string
	query string
	args  []any
	// most is set if the query counts most rows. Then PostgreSQL scans the table or an index, depending on the rows
	// changed since the last vacuum.
	most bool
}

// pageQueries are all queries of the UI, with values from the database.
func pageQueries(t *testing.T, s *Store) []pageQuery {
	t.Helper()
	of := readSample(t, s)
	var all []pageQuery
	add := func(name, query string, args []any) {
		all = append(all, pageQuery{name: name, query: query, args: args})
	}
	for _, sort := range sorts {
		for _, filter := range of.filters() {
			q := filter.query
			q.Sort = sort
			where, err := s.filter(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, page := range []struct {
				name  string
				place *workloadPosition
			}{{"first page", nil}, {"a later page", of.deepPlace(sort)}} {
				query, args := orders[sort].page(where, page.place, DefaultSize+1)
				add(fmt.Sprintf("workloads by %s, %s, %s", sort, filter.name, page.name), query, args)
			}
		}
	}
	for _, filter := range of.filters() {
		where, err := s.filter(t.Context(), filter.query)
		if err != nil {
			t.Fatal(err)
		}
		add("total and counts by status, "+filter.name, countsQuery(where), where.args)
		all[len(all)-1].most = filter.most
	}
	add("workload", workloadQuery, []any{workload, of.ids[workload]})
	add("objects of a workload", presentQuery, []any{workload, of.ids[workload], "", maxChunkRows})
	add("objects of a workload that are gone", deletedQuery, []any{workload, of.ids[workload], int64(math.MaxInt64), "", maxDeletedObjects})
	from := of.events.AddDate(0, 0, -1)
	for _, kind := range types {
		instance := threeport.Instance{Type: kind, ID: threeport.ID(of.ids[kind])}
		for _, filter := range []struct {
			name  string
			query TimelineQuery
		}{
			{"all", TimelineQuery{}},
			{"by level, kind, text and time", TimelineQuery{Level: "Warning", Kind: "Pod", Text: "web-1", From: &from, To: &of.events}},
		} {
			where := s.dialect.timeline(instance, filter.query)
			query, args := timelinePage(where, nil, DefaultSize+1)
			add(fmt.Sprintf("timeline of a %s, %s, first page", kind, filter.name), query, args)
			query, args = timelinePage(where, &timelinePosition{timelineList, from.UnixMicro(), 5}, DefaultSize+1)
			add(fmt.Sprintf("timeline of a %s, %s, a later page", kind, filter.name), query, args)
			add(fmt.Sprintf("total of the timeline of a %s, %s", kind, filter.name), timelineCount(where), where.args)
		}
	}
	add("definition", definitionQuery, of.definition)
	add("size of a definition", definitionSizeQuery, of.definition)
	add("clusters", clustersQuery, nil)
	add("feed: changed workloads", changedQuery, []any{of.changed})
	query, args := rowsQuery(workload, []any{int64(1), int64(2), int64(3)})
	add("feed: its rows", query, args)
	return all
}

// fullScan matches a complete scan of a growing table in the output of either database. An ordered index scan that
// stops after a page does not match.
var fullScan = regexp.MustCompile(`(?m)Seq Scan on (workloads|workload_events|objects|definitions)\b|SCAN (w|o|d|workloads|workload_events|objects|definitions)$`)

func TestPlans_UIQueries_UseIndexes(t *testing.T) {
	if *plansOf != "" {
		writePlans(t, *plansTo, checkPlans(t, open(t, Config{Address: *plansOf})))
		return
	}
	databases.ForEach(t, func(t *testing.T, address string) {
		t.Helper()
		s := open(t, Config{Address: address, StatementTimeout: 10 * time.Minute})
		if s.postgres == nil && !*updatePlans {
			populate(t, s, fifth)
		} else {
			populate(t, s, large)
		}
		plans := checkPlans(t, s)
		if *updatePlans {
			name := map[dialect]string{sqliteDialect: "sqlite.txt", postgresDialect: "postgres.txt"}[s.dialect]
			writePlans(t, filepath.Join("testdata", "plans", name), plans)
		}
	})
}

// A file whose rows were added one by one gets the same statistics as one that was filled at once.
func TestPlans_GrownFile_UsesIndexes(t *testing.T) {
	s := open(t, Config{Address: "sqlite:" + filepath.Join(t.TempDir(), "rows.db")})
	for cluster := range 20 {
		var reports []threeport.Report
		for i := range 10 {
			w := create(t, s, workload, fmt.Sprint("shop-", i))
			reports = append(reports, statusOf(threeport.Instance{Type: workload, ID: threeport.ID(w.ID)}, "Healthy", 1))
		}
		apply(t, s, fmt.Sprint("uid-", cluster), reports...)
	}
	if err := s.optimize(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = open(t, s.config) // new connections load the new statistics
	for _, q := range pageQueries(t, s) {
		plan := explain(t, s, q)
		if strings.HasPrefix(q.name, "workloads by cluster, all") && !strings.Contains(plan, " c USING INDEX clusters_name") ||
			strings.HasPrefix(q.name, "workloads by") && strings.Contains(q.name, "one cluster") && !strings.Contains(plan, "SEARCH w USING INDEX workloads_cluster (clusteruid=?") {
			t.Errorf("the plan of %s does not use the index workloads_cluster:\\n%s", q.name, plan)
		}
	}
}

// checkPlans returns the plans of all queries. It fails for a complete scan.
func checkPlans(t *testing.T, s *Store) string {
	t.Helper()
	var dump strings.Builder
	for _, q := range pageQueries(t, s) {
		plan := explain(t, s, q)
		fmt.Fprintf(&dump, "## %s\n%s\n", q.name, plan)
		if fullScan.MatchString(plan) && (s.postgres == nil || !q.most) {
			t.Errorf("%s scans a whole table:\n%s\n%s", q.name, q.query, plan)
		}
	}
	return dump.String()
}

// writePlans records the plans for readers. They are not compared, since another version of a database may have better
// ones.
func writePlans(t *testing.T, file, plans string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(plans), 0o600); err != nil {
		t.Fatal(err)
	}
}

// explain returns the plan of a query.
func explain(t *testing.T, s *Store, q pageQuery) string {
	t.Helper()
	if s.postgres != nil {
		lines, err := collect(t.Context(), s.read, "EXPLAIN (COSTS OFF) "+q.query, q.args, func(scan scanner) (line string, err error) {
			err = scan(&line)
			return line, err
		})
		if err != nil {
			t.Fatalf("%s: %v", q.name, err)
		}
		return strings.Join(lines, "\n") + "\n"
	}
	depths := map[int]int{}
	lines, err := collect(t.Context(), s.read, "EXPLAIN QUERY PLAN "+q.query, q.args, func(scan scanner) (string, error) {
		var id, parent, unused int
		var line string
		if err := scan(&id, &parent, &unused, &line); err != nil {
			return "", err
		}
		depths[id] = depths[parent] + 1
		return strings.Repeat("  ", depths[parent]) + line, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", q.name, err)
	}
	return strings.Join(lines, "\n") + "\n"
}
