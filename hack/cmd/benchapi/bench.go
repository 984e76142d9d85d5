package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/process"
)

// bench runs the whole measurement.
func bench(ctx context.Context, s size, database string) (err error) {
	dir, err := os.MkdirTemp("", "benchapi-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := open(ctx, database, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.stop()) }()
	server, url, err := serve(ctx, db.address, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop(30*time.Second)) }()
	to, err := newAPI(url)
	if err != nil {
		return err
	}
	return measure(ctx, to, s, db, server)
}

// serve builds and starts the API.
func serve(ctx context.Context, address, dir string) (*process.Process, string, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, "", err
	}
	binary, err := process.Build(ctx, root, "./cmd/controlplane", filepath.Join(dir, "bin"))
	if err != nil {
		return nil, "", err
	}
	server, err := process.Start(binary, nil, []string{
		"--bind-address=127.0.0.1:0", "--auth-enabled=false", "--database=" + address,
	})
	if err != nil {
		return nil, "", err
	}
	url, err := server.URL(ctx)
	if err != nil {
		return nil, "", errors.Join(err, server.Stop(time.Second))
	}
	return server, url, nil
}

func measure(ctx context.Context, to *api, s size, db *database, server *process.Process) error {
	fmt.Fprintln(os.Stderr, "declaring workloads and resources …")
	begin := time.Now()
	agents, err := declare(ctx, to, s)
	if err != nil {
		return err
	}
	rows := s.agents*workloadsOfAgent + s.resources
	fmt.Printf("%s, %d CPUs for load, API and database together, %s, %s\n\n| figure | measured |\n|---|---|\n",
		runtime.Version(), runtime.NumCPU(), db.name, time.Now().UTC().Format(time.DateOnly))
	row("rows made by v0, 8 at a time", float64(rows)/time.Since(begin).Seconds(), "/s")

	begin = time.Now()
	if err := first(ctx, to, agents, s.writers); err != nil {
		return err
	}
	row(fmt.Sprintf("first reports of %d agents: operations of %d resources, statuses, trees", s.agents, s.resources), time.Since(begin).Seconds(), "s")

	filled := &latencies{}
	rates, err := fill(ctx, to, agents, s, filled)
	if err != nil {
		return err
	}
	for i, rate := range rates {
		row(fmt.Sprintf("Events stored in sets of %d, part %d of %d", eventsOfSet, i+1, len(rates)), rate, "/s")
	}
	row("such a set, p50", filled.percentile(50), "ms")
	row("such a set, p99", filled.percentile(99), "ms")

	if err := compare(ctx, to, agents[0]); err != nil {
		return err
	}
	if err := db.settle(ctx); err != nil {
		return err
	}
	if err := measureSteady(ctx, to, agents, s); err != nil {
		return err
	}
	bytes, err := db.bytes(ctx)
	if err != nil {
		return err
	}
	row(fmt.Sprintf("size on disk with %d Events", s.events), float64(bytes)/1e9, "GB")
	resident, err := process.ResidentBytes(server.PID())
	if err != nil {
		return err
	}
	row("resident memory of the API", float64(resident)/1e6, "MB")
	return nil
}

func compare(ctx context.Context, to *api, a *agent) error {
	serial, err := serially(ctx, to, a)
	if err != nil {
		return err
	}
	batch, err := inSets(ctx, to, a)
	if err != nil {
		return err
	}
	row("rival: one client, Events by v0, one after the other", serial, "/s")
	row("one client, Events in sets, one after the other", batch, "/s")
	row("ratio of the two", batch/serial, "")
	return nil
}

func measureSteady(ctx context.Context, to *api, agents []*agent, s size) error {
	sets, views := &latencies{}, map[string]*latencies{}
	for _, q := range queries {
		views[q.name] = &latencies{}
	}
	if err := steadily(ctx, to, agents, s, sets, views); err != nil {
		return err
	}
	const perSet = steadyEvents + steadyOperations + steadyStatuses
	row(fmt.Sprintf("steady load: a set of %d reports of each agent every %s", perSet, s.period), float64(sets.count()*perSet)/s.steady.Seconds(), "reports/s")
	row("such a set, p50", sets.percentile(50), "ms")
	row("such a set, p99", sets.percentile(99), "ms")
	for _, q := range queries {
		row(q.name+", meanwhile, p50", views[q.name].percentile(50), "ms")
		row(q.name+", meanwhile, p99", views[q.name].percentile(99), "ms")
	}
	return nil
}

func row(what string, figure float64, unit string) {
	fmt.Printf("| %s | %.4g %s |\n", what, figure, unit)
}
