package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// query is a request of the page.
type query struct {
	name string
	path func() string
}

// latenciesByQuery are the durations of each query, by its name.
type latenciesByQuery map[string]*queryLatencies

type queryLatencies struct {
	latencies
	query    query
	position int
}

func newLatenciesByQuery(queries []query) latenciesByQuery {
	out := latenciesByQuery{}
	for i, q := range queries {
		out[q.name] = &queryLatencies{query: q, position: i}
	}
	return out
}

// queries returns the queries in order.
func (v latenciesByQuery) queries() []query {
	out := make([]query, len(v))
	for _, view := range v {
		out[view.position] = view.query
	}
	return out
}

// pageQueries are the queries of the page. Each list includes its total.
func pageQueries(w *benchmark, cursor string) []query {
	randomAgent := func() *agent { return w.agents[randomBelow(len(w.agents))] }
	workload := func() string {
		i := randomAgent().workloads[randomBelow(workloadsOfAgent)].instance
		return fmt.Sprintf("/v0/workloads/%s/%d", i.Type, i.ID)
	}
	fixed := func(path string) func() string { return func() string { return path } }
	middle := benchStart.Add(-84 * time.Hour).UTC().Format(time.RFC3339)
	return []query{
		{"floor: an answer that needs no database", fixed("/workload-report-sets/versions")},
		{"workload list, worst first", fixed("/v0/workloads?size=100")},
		{"workload list, by name", fixed("/v0/workloads?size=100&sort=name")},
		{"workload list, page 50", fixed("/v0/workloads?size=100&cursor=" + url.QueryEscape(cursor))},
		{"workload list, one status", fixed("/v0/workloads?size=100&status=Down")},
		{"workload list, one cluster", func() string { return "/v0/workloads?size=100&cluster=" + randomAgent().cluster }},
		{"workload list, text", func() string {
			return "/v0/workloads?size=100&text=" + url.QueryEscape(fmt.Sprintf("cluster-%04d", randomAgent().number))
		}},
		{"clusters", fixed("/v0/clusters")},
		{"workload with its tree", workload},
		{"timeline", func() string { return workload() + "/events?size=100" }},
		{"timeline, from its middle on", func() string { return workload() + "/events?size=100&to=" + middle }},
		{"timeline, Warnings with a text", func() string { return workload() + "/events?size=100&level=Warning&text=web-7" }},
		{"an object's definition", func() string {
			a := randomAgent()
			return "/v0/clusters/" + a.cluster + "/objects/" + a.uid(&a.workloads[randomBelow(workloadsOfAgent)], "ConfigMap", 0)
		}},
	}
}

// deepCursor returns the cursor of the fiftieth page of the workload list, or of the last one if there are fewer.
func (w *benchmark) deepCursor(ctx context.Context) (cursor string, err error) {
	for range 49 {
		var page threeport.List[threeport.Workload]
		path := "/v0/workloads?size=100&cursor=" + url.QueryEscape(cursor)
		if cursor == "" {
			path = "/v0/workloads?size=100"
		}
		if err := w.api.exchange(ctx, http.MethodGet, path, "", nil, &page); err != nil {
			return "", err
		}
		if page.Next == "" {
			break
		}
		cursor = page.Next
	}
	return cursor, nil
}

// viewPage sends the requests of the page one after the other, four times a second.
func (w *benchmark) viewPage(ctx context.Context, queries []query, views latenciesByQuery) error {
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	for n := randomBelow(len(queries)); ; n++ {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		q := queries[n%len(queries)]
		begin := time.Now()
		if err := w.api.get(ctx, q.path()); err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		views[q.name].add(time.Since(begin))
	}
}
