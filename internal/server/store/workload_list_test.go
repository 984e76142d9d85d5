package store

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// putWorkloads writes some workloads for every status, sort and filter.
func putWorkloads(t *testing.T, s *Store) {
	t.Helper()
	putCluster(t, s, "uid-b", "Berlin")
	putCluster(t, s, "uid-a", "amsterdam")
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	for _, f := range []fixture{
		{id: 1, name: "api", cluster: "uid-b", status: "Healthy", since: at(1)},
		{id: 2, name: "Batch", cluster: "uid-a", status: "Down", reason: "Gone", cause: "Deployment web is absent", since: at(20)},
		{id: 3, name: "cart", cluster: "uid-b", status: "Down", cause: "100% of 5 replicas fail", since: at(10)},
		{id: 4, name: "desk", status: "Down", reason: "Snake_Case"},
		{id: 5, name: "edge", cluster: "uid-a", status: "Reconciling", since: at(30)},
		{id: 5, kind: helm, name: "edge", status: "Unhealthy", cause: `a\b`, since: at(30)},
		{id: 7, name: "gone", cluster: "uid-a", status: "Error", deleted: 1},
		{id: 8, name: "zoo", status: "Whatever", since: at(5)},
	} {
		put(t, s, f)
	}
}

func TestWorkloads_FiltersAndSorts(t *testing.T) {
	tests := []struct {
		reason string
		query  WorkloadQuery
		want   string
	}{
		{reason: "worst first, then the latest change, unknown times last", query: WorkloadQuery{}, want: "Batch cart desk edge zoo edge api"},
		{reason: "by lower-case name, without deleted ones", query: WorkloadQuery{Sort: SortName}, want: "api Batch cart desk edge edge zoo"},
		{
			reason: "by cluster name, then name, without a cluster last", query: WorkloadQuery{Sort: SortCluster},
			want: "Batch edge api cart desk edge zoo",
		},
		{reason: "latest first, unknown times last", query: WorkloadQuery{Sort: SortSince}, want: "edge edge Batch cart zoo api desk"},
		{reason: "one status", query: WorkloadQuery{Statuses: []string{"Down"}}, want: "Batch cart desk"},
		{reason: "some statuses, one twice", query: WorkloadQuery{Statuses: []string{"Healthy", "Down", "Healthy"}}, want: "Batch cart desk api"},
		{reason: "an unknown status of v0 is Unknown", query: WorkloadQuery{Statuses: []string{"Unknown"}}, want: "zoo"},
		{reason: "the status of a deleted workload", query: WorkloadQuery{Statuses: []string{"Error"}}},
		{reason: "a type", query: WorkloadQuery{Types: []string{helm}}, want: "edge"},
		{reason: "both types", query: WorkloadQuery{Types: []string{helm, workload}, Sort: SortName}, want: "api Batch cart desk edge edge zoo"},
		{reason: "a cluster", query: WorkloadQuery{Cluster: "uid-a"}, want: "Batch edge"},
		{reason: "an unknown cluster", query: WorkloadQuery{Cluster: "uid-c"}},
		{reason: "text of a name, in another case", query: WorkloadQuery{Text: "BAT"}, want: "Batch"},
		// Text of each field.
		{reason: "text of a reason", query: WorkloadQuery{Text: "gone"}, want: "Batch"},
		{reason: "text of a cause", query: WorkloadQuery{Text: "deployment WEB"}, want: "Batch"},
		{reason: "text of a cluster's name", query: WorkloadQuery{Text: "amster", Sort: SortName}, want: "Batch edge"},
		// Wildcards.
		{reason: "a percent sign is literal", query: WorkloadQuery{Text: "100%"}, want: "cart"},
		{reason: "a percent sign is no wildcard", query: WorkloadQuery{Text: "1%r"}},
		{reason: "an underscore is literal", query: WorkloadQuery{Text: "e_c"}, want: "desk"},
		{reason: "an underscore is no wildcard", query: WorkloadQuery{Text: "a_i"}},
		{reason: "a backslash is literal", query: WorkloadQuery{Text: `A\B`}, want: "edge"},
		// Other text.
		{reason: "a quote is literal", query: WorkloadQuery{Text: `' OR 1=1 --`}},
		{reason: "text across two fields", query: WorkloadQuery{Text: "batchgone"}},
		{
			reason: "all at once",
			query:  WorkloadQuery{Statuses: []string{"Down", "Healthy"}, Types: []string{workload}, Cluster: "uid-b", Text: "5 repl"},
			want:   "cart",
		},
	}
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		putWorkloads(t, s)
		for _, test := range tests {
			t.Run(test.reason, func(t *testing.T) {
				list, err := s.Workloads(t.Context(), test.query)
				if err != nil {
					t.Fatal(err)
				}
				if got := names(list.Items); got != test.want || list.Total != int64(len(list.Items)) || list.Next != "" {
					t.Errorf("got %q, total %d, next %q; want %q", got, list.Total, list.Next, test.want)
				}
				checkMatches(t, s, test.query, list.Items)
				checkCounts(t, s, test.query)
				test.query.Size = 1
				if got := names(allPages(t, s, test.query, nil)); got != test.want {
					t.Errorf("one by one: got %q; want %q", got, test.want)
				}
			})
		}
	})
}

// checkMatches compares the filter of a watch with that of a list.
func checkMatches(t *testing.T, s *Store, q WorkloadQuery, listed []threeport.Workload) {
	t.Helper()
	all, err := s.Workloads(t.Context(), WorkloadQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range all.Items {
		isListed := slices.ContainsFunc(listed, func(l threeport.Workload) bool { return l.Instance == w.Instance })
		if q.matches(&w) != isListed {
			t.Errorf("%s %d is listed: %t, watched: %t", w.Type, w.ID, isListed, !isListed)
		}
	}
}

// checkCounts compares the counts with the lists of each status.
func checkCounts(t *testing.T, s *Store, q WorkloadQuery) {
	t.Helper()
	got, err := s.Counts(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]int64)
	for _, status := range statuses {
		q.Statuses = []string{status}
		list, err := s.Workloads(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		want[status] = int64(len(list.Items))
	}
	if !maps.Equal(got, want) {
		t.Errorf("counts are %v; the lists have %v", got, want)
	}
}

// allPages reads a list page by page, and calls between after each page but the last.
func allPages(t *testing.T, s *Store, q WorkloadQuery, between func()) []threeport.Workload {
	t.Helper()
	var all []threeport.Workload
	for {
		page, err := s.Workloads(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Items...)
		if page.Next == "" {
			return all
		}
		if len(all) > 1000 { // more than any test has
			t.Fatal("the list has more than 1000 pages")
		}
		if len(page.Items) != q.Size {
			t.Fatalf("a page before the last has %d workloads, want %d", len(page.Items), q.Size)
		}
		q.Cursor = page.Next
		if between != nil {
			between()
		}
	}
}

func TestWorkloads_ReturnsAllFields(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		putCluster(t, s, "uid-a", "amsterdam")
		put(t, s, fixture{id: 1 << 60, name: "cart", cluster: "uid-a", status: "Down", reason: "Absent", cause: "why", since: noon, changed: 7})
		mustExec(t, s, "UPDATE workloads SET saidat = ?, status = 'Unknown', rank = 3, silent = TRUE, pending = 1, rejected = 2, dropped = 3",
			noon.Add(time.Second).UnixMicro())
		list, err := s.Workloads(t.Context(), WorkloadQuery{})
		if err != nil || len(list.Items) != 1 {
			t.Fatal(list, err)
		}
		got := list.Items[0]
		if !got.Since.Equal(noon) || !got.SaidAt.Equal(noon.Add(time.Second)) || !got.HeardAt.Equal(noon) {
			t.Errorf("since is %v, the report at %v, the heartbeat at %v", got.Since, got.SaidAt, got.HeardAt)
		}
		got.Since, got.SaidAt, got.HeardAt = nil, nil, nil
		want := threeport.Workload{
			Instance: threeport.Instance{Type: workload, ID: 1 << 60}, Name: "cart", ClusterUID: "uid-a", ClusterName: "amsterdam",
			Status: "Unknown", Said: "Down", Reason: "Absent", Cause: "why", DelaySeconds: 1.5, Silent: true,
			Pending: 1, Rejected: 2, Dropped: 3, Changed: 7,
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})
}

// A reader that pages through a changing list gets each unchanged row exactly once.
func TestWorkloads_ChangesBetweenPages_LosesNoRow(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		for i := range 20 {
			putCluster(t, s, fmt.Sprintf("uid-%d", i), fmt.Sprintf("cluster %d", i%7)) // some share a name
		}
		const stay, move = 200, 40
		for i := range int64(stay + move) {
			f := fixture{id: 1 + i/2, kind: types[i%2], name: fmt.Sprintf("Shop %d", i%50), status: statuses[i%6]}
			if i%9 != 0 {
				f.cluster = fmt.Sprintf("uid-%d", i%20)
			}
			if i%5 != 0 {
				f.since = noon.Add(time.Duration(i%13) * time.Second)
			}
			put(t, s, f)
		}
		for _, sort := range sorts {
			t.Run(sort, func(t *testing.T) {
				turn := int64(0)
				shuffle := func() { // moves, removes and adds others
					turn++
					id := 1 + (stay+turn*3%move)/2
					put(t, s, fixture{
						id: id, kind: types[turn%2], name: fmt.Sprintf("Mover %d", turn), cluster: fmt.Sprintf("uid-%d", turn%20),
						status: statuses[turn%6], since: noon.Add(time.Duration(turn) * time.Second), deleted: turn % 2,
					})
				}
				times := make(map[threeport.Instance]int)
				for _, w := range allPages(t, s, WorkloadQuery{Sort: sort, Size: 7}, shuffle) {
					times[w.Instance]++
				}
				for i := range int64(stay) {
					instance := threeport.Instance{Type: types[i%2], ID: threeport.ID(1 + i/2)}
					if times[instance] != 1 {
						t.Errorf("%v was returned %d times, want 1", instance, times[instance])
					}
				}
				if turn < stay/7 {
					t.Errorf("there were only %d changes between pages, want %d or more", turn, stay/7)
				}
			})
		}
	})
}

func TestWorkloads_LongNames_AreSorted(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		random := "Überlänge 工作 " // incompressible for an index
		for i := range 30_000 {
			random += string(rune('!' + i*i*7919%90))
		}
		for id := range int64(5) {
			put(t, s, fixture{id: id + 1, name: random})
		}
		if got := allPages(t, s, WorkloadQuery{Sort: SortName, Size: 2}, nil); len(got) != 5 || got[0].Name != random {
			t.Errorf("got %d workloads, want 5", len(got))
		}
		if list, err := s.Workloads(t.Context(), WorkloadQuery{Text: "LÄNGE"}); err != nil || list.Total != 0 {
			t.Errorf("non-ASCII letters matched in the other case: %d, %v, want no error and 0", list.Total, err)
		}
		if list, err := s.Workloads(t.Context(), WorkloadQuery{Text: "LäNGE 工"}); err != nil || list.Total != 5 {
			t.Errorf("found %d, %v, want no error and 5", list.Total, err)
		}
	})
}

func TestWorkloads_InvalidParameter_IsNamed(t *testing.T) {
	tests := []struct {
		query     WorkloadQuery
		parameter string
	}{
		{WorkloadQuery{Statuses: []string{"Down", "down"}}, "status"},
		{WorkloadQuery{Statuses: []string{""}}, "status"},
		{WorkloadQuery{Types: []string{"Deployment"}}, "type"},
		{WorkloadQuery{Cluster: "a\x00b"}, "cluster"},
		{WorkloadQuery{Cluster: strings.Repeat("a", 257)}, "cluster"},
		{WorkloadQuery{Text: "a\x00b"}, "text"},
		{WorkloadQuery{Text: "a\x1fb"}, "text"},
		{WorkloadQuery{Text: "a\xffb"}, "text"},
		{WorkloadQuery{Text: strings.Repeat("%", 257)}, "text"},
		{WorkloadQuery{Sort: "rank; DROP TABLE workloads"}, "sort"},
		{WorkloadQuery{Size: -1}, "size"},
		{WorkloadQuery{Size: 1001}, "size"},
		{WorkloadQuery{Cursor: "x"}, "cursor"},
	}
	s := open(t, Config{Address: "sqlite::memory:"})
	for _, test := range tests {
		bad, ok := errors.AsType[*FieldError](test.query.Validate())
		if !ok || bad.Field != test.parameter || bad.Accepted == "" {
			t.Errorf("%+v: got %v, want an error for %s", test.query, bad, test.parameter)
		}
		if _, err := s.Workloads(t.Context(), test.query); err == nil {
			t.Errorf("query %+v returned a list, want an error", test.query)
		}
	}
	for _, good := range []WorkloadQuery{{}, {Size: 1000, Sort: SortSince, Text: "100% <script>", Statuses: statuses, Types: types}} {
		if err := good.Validate(); err != nil {
			t.Errorf("query %+v: %v", good, err)
		}
	}
}

func TestWorkloads_InvalidCursor_IsRefused(t *testing.T) {
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	tests := []struct{ reason, cursor string }{
		{"not base64", "%%%"},
		{"padded", "e30="},
		{"not JSON", encode("worst")},
		{"another type", encode("[]")},
		{"no sort", encode("{}")},
		{"of another sort", encode(`{"sort":"name","type":"WorkloadInstance","id":"1"}`)},
		{"an unknown type", encode(`{"sort":"worst","type":"Deployment","id":"1"}`)},
		{"a rank too large", encode(`{"sort":"worst","rank":99999999999,"type":"WorkloadInstance","id":"1"}`)},
		{"a negative rank", encode(`{"sort":"worst","rank":-1,"type":"WorkloadInstance","id":"1"}`)},
		{"an ID beyond 64 bits", encode(`{"sort":"worst","type":"WorkloadInstance","id":"99999999999999999999"}`)},
		{"a time beyond 64 bits", encode(`{"sort":"worst","time":1e300,"type":"WorkloadInstance","id":"1"}`)},
		{"an unknown field", encode(`{"sort":"worst","type":"WorkloadInstance","id":"1","x":1}`)},
		{"trailing data", encode(`{"sort":"worst","type":"WorkloadInstance","id":"1"}{}`)},
		{"NUL", encode(`{"sort":"worst","name":"\u0000","type":"WorkloadInstance","id":"1"}`)},
		{"too long", encode(`{"sort":"worst","name":"` + strings.Repeat("a", maxCursor) + `","type":"WorkloadInstance","id":"1"}`)},
	}
	for _, test := range tests {
		if err := (WorkloadQuery{Cursor: test.cursor}).Validate(); !errors.Is(err, ErrCursor) {
			t.Errorf("%s: got %v, want %v", test.reason, err, ErrCursor)
		}
		if err := (TimelineQuery{Cursor: test.cursor}).Validate(); !errors.Is(err, ErrCursor) {
			t.Errorf("%s: a timeline got %v, want %v", test.reason, err, ErrCursor)
		}
	}
	good := encode(`{"sort":"worst","rank":5,"time":-9223372036854775808,"type":"WorkloadInstance","id":"-1"}`)
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		if _, err := s.Workloads(t.Context(), WorkloadQuery{Cursor: good}); err != nil {
			t.Errorf("a well-formed cursor with unusual values returned %v", err)
		}
	})
}

// Pages end at a number of bytes too, and their cursors lead to all workloads.
func TestWorkloads_LongCauses_MakeShortPages(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		const workloads = 600
		putCluster(t, s, "c", "cluster")
		for i := range workloads {
			f := fixture{id: int64(i + 1), status: "Down", cause: strings.Repeat("x", 2*maxListedText)}
			if i%2 == 0 {
				f.cluster = "c"
			}
			put(t, s, f)
		}
		for _, sort := range sorts {
			q := WorkloadQuery{Sort: sort, Size: MaxSize}
			seen := map[threeport.ID]bool{}
			for {
				list, err := s.Workloads(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				if most := 2 * maxPageBytes / maxListedText; list.Total != workloads || len(list.Items) > most {
					t.Errorf("by %s: a page has %d of %d workloads, want at most %d of %d", sort, len(list.Items), list.Total, most, workloads)
				}
				for _, w := range list.Items {
					seen[w.ID] = true
				}
				if q.Cursor = list.Next; q.Cursor == "" {
					break
				}
			}
			if len(seen) != workloads {
				t.Errorf("by %s: the pages have %d workloads, want %d", sort, len(seen), workloads)
			}
		}
	})
}
