//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/threeport/threeport-agent/internal/e2e/process"
)

// minSpeedup is the required speed of report sets, relative to sequential posts.
const minSpeedup = 20

// sample is a method of delivery, and the number of Events of each run.
type sample struct {
	name   string
	method string
	events int
	local  bool // from the API's own side, without the link

	rates []float64
}

func (s *sample) median() float64 {
	slices.Sort(s.rates)
	return s.rates[len(s.rates)/2]
}

// bench measures all methods in turns, so that other load of the machine affects all of them.
func bench(ctx context.Context, l link, rounds int) (err error) {
	dir, err := os.MkdirTemp("", "benchlink-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	agent, err := newHost("192.0.2.1", l.congestion)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, agent.close()) }()
	api, err := newHost("192.0.2.2", l.congestion)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, api.close()) }()
	server, url, err := serve(ctx, api, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop(30*time.Second)) }()

	toAPI, toAgent := &wire{delay: l.delay, loss: l.loss}, &wire{delay: l.delay, loss: l.loss}
	wires, ctx := errgroup.WithContext(ctx)
	ctx, stopWires := context.WithCancel(ctx)
	wires.Go(func() error { return toAPI.forward(ctx, agent.tun, api.tun) })
	wires.Go(func() error { return toAgent.forward(ctx, api.tun, agent.tun) })
	samples, measureErr := measure(ctx, agent, api, url, rounds)
	stopWires()
	closeErr := errors.Join(agent.tun.Close(), api.tun.Close()) // this ends the reads of the wires
	agent.tun, api.tun = nil, nil
	if err := errors.Join(wires.Wait(), measureErr, closeErr); err != nil {
		return err
	}
	return report(l, rounds, samples, toAPI, toAgent)
}

// serve builds the API, and starts it on a host with an SQLite file.
func serve(ctx context.Context, on *host, dir string) (*process.Process, string, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, "", err
	}
	binary, err := process.Build(ctx, root, "./cmd/controlplane", filepath.Join(dir, "bin"))
	if err != nil {
		return nil, "", err
	}
	name, args := on.command(binary,
		"--bind-address="+on.address+":1323", "--auth-enabled=false", "--database=sqlite:"+filepath.Join(dir, "controlplane.db"),
		"--events-per-workload=1000000") // all are counted at the end
	server, err := process.Start(name, nil, args)
	if err != nil {
		return nil, "", err
	}
	url, err := server.URL(ctx)
	if err != nil {
		return nil, "", errors.Join(err, server.Stop(time.Second))
	}
	return server, url, nil
}

func measure(ctx context.Context, agent, api *host, url string, rounds int) ([]*sample, error) {
	samples := []*sample{
		{name: "one post after the other, v0", method: methodSequential, events: 100},
		{name: "the agent by v0, 8 requests at a time", method: methodV0, events: 800},
		{name: "the agent in report sets", method: methodSets, events: 20_000},

		{name: "without the link: one post after the other, v0", method: methodSequential, events: 2000, local: true},
		{name: "without the link: the agent in report sets", method: methodSets, events: 20_000, local: true},
	}
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for round := range rounds {
		for _, s := range samples {
			from := agent
			if s.local {
				from = api
			}
			d, err := runSample(ctx, from, executable, url, s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			fmt.Fprintf(os.Stderr, "%d/%d %s: %d Events in %.1f s, %.1f/s\n", round+1, rounds, s.name, d.Events, d.Seconds, d.rate())
			s.rates = append(s.rates, d.rate())
		}
	}
	return samples, nil
}

// runSample runs the agent's side, and expects one row for each Event.
func runSample(ctx context.Context, from *host, executable, url string, s *sample) (d delivery, err error) {
	out, err := from.run(ctx, executable, agentCommand, "--method="+s.method, "--url="+url, "--events="+strconv.Itoa(s.events))
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(out, &d); err != nil {
		return d, err
	}
	if d.Rows != int64(d.Events) {
		return d, fmt.Errorf("%d Events are %d rows", d.Events, d.Rows)
	}
	return d, nil
}

// report prints the results. It fails if minSpeedup is missed.
func report(l link, rounds int, samples []*sample, toAPI, toAgent *wire) error {
	fmt.Printf("%s, %d CPUs for both sides, SQLite, TCP %s, %s; %d rounds, all methods in turns\n\n",
		runtime.Version(), runtime.NumCPU(), l.congestion, time.Now().UTC().Format(time.DateOnly), rounds)
	fmt.Printf("| %s and %.3g %% loss each way | Events/s, median | lowest to highest |\n|---|---|---|\n", l.delay, 100*l.loss)
	for _, s := range samples {
		median := s.median()
		fmt.Printf("| %s | %.1f | %.1f to %.1f |\n", s.name, median, s.rates[0], s.rates[len(s.rates)-1])
	}
	lost := toAPI.lost.Load() + toAgent.lost.Load()
	ratio, err := checkSpeedup(samples)
	fmt.Printf("| report sets to one post after the other (at least %d) | %.0f times | |\n\n", minSpeedup, ratio)
	fmt.Printf("%d of %d packets were lost.\n", lost, lost+toAPI.delivered.Load()+toAgent.delivered.Load())
	return err
}

// checkSpeedup compares the medians over the link. It fails if report sets are less than minSpeedup times as fast as
// sequential posts.
func checkSpeedup(samples []*sample) (ratio float64, err error) {
	medianOf := func(method string) float64 {
		i := slices.IndexFunc(samples, func(s *sample) bool { return s.method == method && !s.local })
		return samples[i].median()
	}
	if ratio = medianOf(methodSets) / medianOf(methodSequential); ratio < minSpeedup {
		err = fmt.Errorf("report sets are %.1f times as fast as one post after the other: less than %d times", ratio, minSpeedup)
	}
	return ratio, err
}
