package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"time"
)

// What an agent tells in each period of the steady load.
const (
	steadyEvents     = 20
	steadyOperations = 2
	steadyStatuses   = 2
)

// query is a request of the page.
type query struct {
	name string
	path func(agents []*agent) string
}

var queries = []query{
	{"board, worst first", func([]*agent) string { return "/v0/workloads?size=100" }},
	{"board, one status", func([]*agent) string { return "/v0/workloads?size=100&status=Down" }},
	{"board, one cluster", func(all []*agent) string { return "/v0/workloads?size=100&cluster=" + one(all).cluster }},
	{"board, text", func(all []*agent) string {
		return "/v0/workloads?size=100&text=" + url.QueryEscape(fmt.Sprintf("cluster-%04d", one(all).number))
	}},
	{"workload with its tree", func(all []*agent) string { return workloadPath(one(all)) }},
	{"timeline", func(all []*agent) string { return workloadPath(one(all)) + "/events?size=100" }},
}

func one(all []*agent) *agent { return all[rand.IntN(len(all))] } //nolint:gosec // a load, no secret

func workloadPath(a *agent) string {
	i := a.workloads[rand.IntN(len(a.workloads))].instance //nolint:gosec // a load, no secret
	return fmt.Sprintf("/v0/workloads/%s/%d", i.Type, i.ID)
}

// steadily lets the fleet report at its pace, whatever the answers take, while viewers look.
func steadily(ctx context.Context, to *api, agents []*agent, s size, sets *latencies, views map[string]*latencies) error {
	ctx, cancel := context.WithTimeout(ctx, s.steady)
	defer cancel()
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	fail := func(err error) {
		if err != nil && ctx.Err() == nil {
			mu.Lock()
			failed = errors.Join(failed, err)
			mu.Unlock()
			cancel()
		}
	}
	for _, a := range agents {
		all.Go(func() { fail(a.report(ctx, to, s.period, sets)) })
	}
	for range s.viewers {
		all.Go(func() { fail(look(ctx, to, agents, views)) })
	}
	all.Wait()
	return failed
}

// report sends a set each period, at a random time at first. How long it takes is counted from when it was due.
func (a *agent) report(ctx context.Context, to *api, period time.Duration, took *latencies) error {
	due := time.Now().Add(rand.N(period)) //nolint:gosec // a load, no secret
	for ; ; due = due.Add(period) {
		timer := time.NewTimer(time.Until(due))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		reports := a.events(steadyEvents)
		w := &a.workloads[rand.IntN(len(a.workloads))] //nolint:gosec // a load, no secret
		for range steadyStatuses {
			reports = append(reports, a.status(w))
		}
		for range steadyOperations {
			reports = append(reports, a.operation(w, rand.IntN(len(w.resources)))) //nolint:gosec // a load, no secret
		}
		if err := to.send(ctx, a.set(reports...)); err != nil {
			return err
		}
		took.add(time.Since(due))
	}
}

// look makes the page's requests, one after the other, twice a second.
func look(ctx context.Context, to *api, agents []*agent, views map[string]*latencies) error {
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for n := rand.IntN(len(queries)); ; n++ { //nolint:gosec // a load, no secret
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		q := queries[n%len(queries)]
		begin := time.Now()
		if err := to.get(ctx, q.path(agents)); err != nil {
			return err
		}
		views[q.name].add(time.Since(begin))
	}
}
