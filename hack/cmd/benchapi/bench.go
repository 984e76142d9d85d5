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

// benchmark is the measured system.
type benchmark struct {
	size
	plans  string // the file for the plans of the page's queries; empty for none
	db     *database
	binary string
	server *process.Process // nil while it does not run
	api    *api
	agents []*agent
}

// runBenchmark runs the whole measurement.
func runBenchmark(ctx context.Context, s size, kind, plans string) (err error) {
	dir, err := os.MkdirTemp("", "benchapi-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	w := &benchmark{size: s, plans: plans}
	if w.binary, err = process.Build(ctx, root, "./cmd/controlplane", filepath.Join(dir, "bin")); err != nil {
		return err
	}
	if w.db, err = openDatabase(ctx, kind, dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.db.stop()) }()
	defer func() { err = errors.Join(err, w.stop()) }()
	return w.measure(ctx)
}

// start starts the API.
func (w *benchmark) start(ctx context.Context) (err error) {
	w.server, err = process.Start(w.binary, nil, []string{
		"--bind-address=127.0.0.1:0", "--auth-enabled=false", "--database=" + w.db.address,
		"--agent-timeout=1h", // agents of this fleet are silent in some parts of the measurement
	})
	if err != nil {
		return err
	}
	url, err := w.server.URL(ctx)
	if err != nil {
		return err
	}
	w.api, err = newAPI(url)
	return err
}

// stop stops the API if it runs.
func (w *benchmark) stop() error {
	if w.server == nil {
		return nil
	}
	server := w.server
	w.server = nil
	return server.Stop(time.Minute)
}

func (w *benchmark) measure(ctx context.Context) error {
	fmt.Printf("%s, %d CPUs for load, API and database together, %s, %s\n\n| figure | measured |\n|---|---|\n",
		runtime.Version(), runtime.NumCPU(), w.db.name, time.Now().UTC().Format(time.DateOnly))
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"declare workloads", w.declare},
		{"fill in Events", w.fill},
		{"first reports", w.sendInitialState},
		{"explain the page's queries", w.explain},
		{"compare ways to store Events", w.compareMethods},
		{"steady load", w.measureSteadyLoad},
		{"print the final sizes", w.printSizes},
	} {
		fmt.Fprintln(os.Stderr, time.Now().Format(time.TimeOnly), step.name, "…")
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// fill stores the reports of a fleet in a week by SQL, while the API is stopped. Through the API it would take hours.
func (w *benchmark) fill(ctx context.Context) error {
	if err := w.stop(); err != nil {
		return err
	}
	begin := time.Now()
	if err := w.db.fill(ctx, w.agents, w.events); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d Events in %s\n", w.events, time.Since(begin).Round(time.Second))
	return w.start(ctx)
}

// printSizes prints the final sizes.
func (w *benchmark) printSizes(ctx context.Context) error {
	bytes, err := w.db.bytes(ctx)
	if err != nil {
		return err
	}
	printRow(fmt.Sprintf("size on disk, with %d Events and %d resources", w.events, w.resources), float64(bytes)/1e9, "GB")
	resident, err := process.ResidentBytes(w.server.PID())
	if err != nil {
		return err
	}
	printRow("resident memory of the API at the end", float64(resident)/1e6, "MB")
	return nil
}

func printRow(label string, figure float64, unit string) {
	fmt.Printf("| %s | %.4g %s |\n", label, figure, unit)
}

// cpuTimes returns the CPU time of the API and the database since their start.
func (w *benchmark) cpuTimes() (api, db time.Duration, err error) {
	if api, err = process.CPUTime(w.server.PID()); err != nil || w.db.pid == 0 {
		return api, 0, err
	}
	db, err = process.CPUTime(w.db.pid)
	return api, db, err
}
