package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// The reports of an agent in each period of the steady load.
const (
	steadyEvents     = 4
	steadyOperations = 1
	steadyStatuses   = 1
	perSet           = steadyEvents + steadyOperations + steadyStatuses
)

// steadily measures the users of the page, first without reports, then with the steady load of the fleet.
func (w *world) steadily(ctx context.Context) error {
	deep, err := w.deepCursor(ctx)
	if err != nil {
		return err
	}
	queries := pageQueries(w, deep)
	calm, busy := newViews(queries), newViews(queries)
	scans, err := w.db.countScans(ctx)
	if err != nil {
		return err
	}
	if err := w.run(ctx, w.steady/2, nil, calm); err != nil {
		return err
	}
	var sets latencies
	api, db, err := w.used()
	if err != nil {
		return err
	}
	if err := w.run(ctx, w.steady, &sets, busy); err != nil {
		return err
	}
	apiAfter, dbAfter, err := w.used()
	if err != nil {
		return err
	}
	row(fmt.Sprintf("steady load: %d agents, a set of %d reports each every %s", len(w.agents), perSet, w.period), float64(sets.count()*perSet)/w.steady.Seconds(), "reports/s")
	row("such a set from when it was due, p50", sets.percentile(50), "ms")
	row("such a set from when it was due, p99", sets.percentile(99), "ms")
	row("cores of the API meanwhile", (apiAfter-api).Seconds()/w.steady.Seconds(), "")
	row("cores of the database meanwhile", (dbAfter-db).Seconds()/w.steady.Seconds(), "")
	fmt.Printf("\n| request of the page, %d people | p50, nothing reported | p99 | p50, steady load | p99 |\n|---|---|---|---|---|\n", w.viewers)
	for _, q := range queries {
		fmt.Printf("| %s | %.1f ms | %.1f ms | %.1f ms | %.1f ms |\n", q.name,
			calm[q.name].percentile(50), calm[q.name].percentile(99), busy[q.name].percentile(50), busy[q.name].percentile(99))
	}
	fmt.Printf("\n| figure | measured |\n|---|---|\n")
	after, err := w.db.countScans(ctx)
	for i, table := range growing {
		if err == nil && w.db.scans != nil {
			row("whole reads of the table "+table+" in all of these requests", float64(after[i]-scans[i]), "")
		}
	}
	return err
}

// run runs viewers for a time, and agents too if sets is not nil. Slow answers do not slow down the load.
func (w *world) run(ctx context.Context, long time.Duration, sets *latencies, seen views) error {
	ctx, cancel := context.WithTimeout(ctx, long)
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
	if sets != nil {
		for _, a := range w.agents {
			all.Go(func() { fail(a.report(ctx, w.api, w.period, sets)) })
		}
	}
	queries := seen.queries()
	for range w.viewers {
		all.Go(func() { fail(w.look(ctx, queries, seen)) })
	}
	all.Wait()
	return failed
}

// report sends a set each period, with a random offset. The duration counts from the scheduled time.
func (a *agent) report(ctx context.Context, to *api, period time.Duration, took *latencies) error {
	due := time.Now().Add(time.Duration(below(int(period))))
	for ; ; due = due.Add(period) {
		timer := time.NewTimer(time.Until(due))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		reports := a.events(steadyEvents)
		w := &a.workloads[below(len(a.workloads))]
		for range steadyStatuses {
			reports = append(reports, a.status(w))
		}
		for range steadyOperations {
			reports = append(reports, a.operation(w, below(len(w.resources))))
		}
		if err := to.send(ctx, a.set(reports...)); err != nil {
			return err
		}
		took.add(time.Since(due))
	}
}
