package store

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// v0Queries are the queries of v0 by ID, by unique value and by each field with an index.
func v0Queries() (all []pageQuery) {
	for _, r := range Resources {
		all = append(all, pageQuery{name: r.Object + " by ID", query: "SELECT id FROM " + r.table() + " WHERE deletedat IS NULL AND id = ?", args: []any{int64(7)}})
		for i, f := range r.Fields {
			var value any = int64(7)
			if f.unique {
				value = "event-7"
			}
			selection := Selection{Filters: []Filter{{i, value}}}
			if selection.IsSearch(r) {
				continue
			}
			where := selection.where(r)
			name := r.Object + " by " + f.Name
			all = append(all,
				pageQuery{name: "list of " + name, query: "SELECT " + r.boundedColumns() + " FROM " + r.table() + " WHERE " + where.String() + " ORDER BY id LIMIT 100", args: where.args},
				pageQuery{name: "total of " + name, query: "SELECT COUNT(*) FROM " + r.table() + " WHERE " + where.String(), args: where.args})
			if f.unique {
				all = append(all, pageQuery{name: name, query: r.selectUnique(i), args: []any{value, int64(7)}})
				selection.Readable = &Readable{Cluster: "many", Unassigned: true}
				where := selection.where(r)
				all = append(all, pageQuery{name: "total of readable " + name, query: "SELECT COUNT(*) FROM " + r.table() + " WHERE " + where.String(), args: where.args})
			}
		}
	}
	return all
}

// v0 reads no whole table to find rows by a field with an index.
func TestPlans_V0_UseIndexes(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		fill(t, s, 2_000, 20_000)
		for _, q := range v0Queries() {
			if plan := explain(t, s, q); strings.Contains(plan, "SCAN ") || strings.Contains(plan, "Seq Scan") {
				t.Errorf("%s scans a whole table:\n%s\n%s", q.name, q.query, plan)
			}
		}
	})
}

// SQLite uses a partial index only for a query with the condition of the index. Each one is used by a query.
func TestPlans_PartialIndexes_AreUsed(t *testing.T) {
	s := open(t, Config{Address: "sqlite::memory:"})
	populate(t, s, scale{clusters: 20, workloads: 2_000, events: 3_000})
	runAllStatements(t, s, 1)
	names, err := collect(t.Context(), s.read, "SELECT name FROM sqlite_master WHERE type = 'index' AND sql LIKE '% WHERE %'", nil, func(scan scanner) (name string, err error) {
		err = scan(&name)
		return name, err
	})
	if err != nil {
		t.Fatal(err)
	}
	unused := map[string]bool{}
	for _, name := range names {
		unused[name] = true
	}
	var plans strings.Builder
	for _, q := range append(pageQueries(t, s), v0Queries()...) {
		plans.WriteString(explain(t, s, q))
	}
	for _, text := range append(sqliteStatements(s), nameFixedHere, nameFixedElsewhere, deletedWorkloads) {
		plans.WriteString(strings.Join(planOf(t, s, text), "\n") + "\n")
	}
	for line := range strings.Lines(plans.String()) {
		for word := range strings.FieldsSeq(line) {
			delete(unused, word)
		}
	}
	if len(unused) > 0 {
		t.Errorf("no query uses the indexes %v", slices.Sorted(maps.Keys(unused)))
	}
}

// The index of UIDs has no empty ones, so a list with an empty UID reads every row.
func TestSelection_EmptyUID_IsSearch(t *testing.T) {
	events := resource(t, "WorkloadEvent")
	uid, _ := events.unique()
	for value, want := range map[string]bool{"": true, "event-7": false} {
		if got := (Selection{Filters: []Filter{{uid, value}}}).IsSearch(events); got != want {
			t.Errorf("a list with the UID %q is a search: %v, want %v", value, got, want)
		}
	}
}
