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
	reportsPerSet    = steadyEvents + steadyOperations + steadyStatuses
)

// measureSteadyLoad measures the users of the page, first without reports, then with the steady load of the fleet.
func (w *benchmark) measureSteadyLoad(ctx context.Context) error {
	cursor, err := w.deepCursor(ctx)
	if err != nil {
		return err
	}
	queries := pageQueries(w, cursor)
	idle, loaded := newLatenciesByQuery(queries), newLatenciesByQuery(queries)
	scans, err := w.db.countScans(ctx)
	if err != nil {
		return err
	}
	if err := w.runLoad(ctx, w.steady/2, nil, idle); err != nil {
		return err
	}
	var sets latencies
	api, db, err := w.cpuTimes()
	if err != nil {
		return err
	}
	if err := w.runLoad(ctx, w.steady, &sets, loaded); err != nil {
		return err
	}
	apiAfter, dbAfter, err := w.cpuTimes()
	if err != nil {
		return err
	}
	printRow(fmt.Sprintf("steady load: %d agents, a set of %d reports each every %s", len(w.agents), reportsPerSet, w.period), float64(sets.count()*reportsPerSet)/w.steady.Seconds(), "reports/s")
	printRow("such a set from when it was due, p50", sets.percentile(50), "ms")
	printRow("such a set from when it was due, p99", sets.percentile(99), "ms")
	printRow("cores of the API meanwhile", (apiAfter-api).Seconds()/w.steady.Seconds(), "")
	printRow("cores of the database meanwhile", (dbAfter-db).Seconds()/w.steady.Seconds(), "")
	fmt.Printf("\n| request of the page, %d people | p50, nothing reported | p99 | p50, steady load | p99 |\n|---|---|---|---|---|\n", w.viewers)
	for _, q := range queries {
		fmt.Printf("| %s | %.1f ms | %.1f ms | %.1f ms | %.1f ms |\n", q.name,
			idle[q.name].percentile(50), idle[q.name].percentile(99), loaded[q.name].percentile(50), loaded[q.name].percentile(99))
	}
	fmt.Printf("\n| figure | measured |\n|---|---|\n")
	after, err := w.db.countScans(ctx)
	for i, table := range growingTables {
		if err == nil && w.db.scans != nil {
			printRow("whole reads of the table "+table+" in all of these requests", float64(after[i]-scans[i]), "")
		}
	}
	return err
}

// runLoad runs viewers for a time, and agents too if sets is not nil. A slow answer does not reduce the
// number of sets, but that of the viewers' requests.
func (w *benchmark) runLoad(ctx context.Context, duration time.Duration, sets *latencies, views latenciesByQuery) error {
	ctx, cancel := context.WithTimeout(ctx, duration)
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
	queries := views.queries()
	for range w.viewers {
		all.Go(func() { fail(w.viewPage(ctx, queries, views)) })
	}
	all.Wait()
	return failed
}

// report sends a set each period, with a random offset. The duration counts from the scheduled time.
func (a *agent) report(ctx context.Context, client *api, period time.Duration, durations *latencies) error {
	due := time.Now().Add(time.Duration(randomBelow(int(period))))
	for ; ; due = due.Add(period) {
		timer := time.NewTimer(time.Until(due))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		reports := a.events(steadyEvents)
		w := &a.workloads[randomBelow(len(a.workloads))]
		for range steadyStatuses {
			reports = append(reports, a.status(w))
		}
		for range steadyOperations {
			reports = append(reports, a.operation(w, randomBelow(len(w.resources))))
		}
		if err := client.send(ctx, a.set(reports...)); err != nil {
			return err
		}
		durations.add(time.Since(due))
	}
}
