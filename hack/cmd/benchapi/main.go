// Command benchapi measures the control-plane API with the load of a fleet: reporting agents, and users of the page. It
// builds the API, runs it with an empty database, and prints the results as a Markdown table. docs/scale.md has the results.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// size is the size of the measurement.
type size struct {
	agents    int
	resources int // of all agents
	events    int // of all agents, that are stored before anything is measured
	writers   int // concurrent requests, in measurements with more than one
	viewers   int
	rounds    int           // in which the ways to store Events are compared
	slice     time.Duration // how long each is tried in a round
	steady    time.Duration
	period    time.Duration // of an agent's sets in the steady load
}

func (s size) validate() error {
	switch {
	case s.agents < 1 || s.writers < 1 || s.viewers < 1 || s.rounds < 1:
		return errors.New("--agents, --writers, --viewers, --rounds: give 1 or more")
	case s.resources < s.agents*workloadsOfAgent:
		return fmt.Errorf("--resources: give %d or more for each agent", workloadsOfAgent)
	case s.events < 0 || s.slice <= 0 || s.steady <= 0 || s.period <= 0:
		return errors.New("--events, --slice, --steady, --period: give 0 or more Events, and durations above 0")
	}
	return nil
}

// workloads returns the number of workloads of all agents.
func (s size) workloads() int { return s.agents * workloadsOfAgent }

func main() {
	var s size
	var database, plans string
	flag.IntVar(&s.agents, "agents", 1000, "agents that report")
	flag.IntVar(&s.resources, "resources", 100_000, "resources of all agents")
	flag.IntVar(&s.events, "events", 10_000_000, "Events that are stored before anything is measured")
	flag.IntVar(&s.writers, "writers", 8, "concurrent requests, in measurements with more than one")
	flag.IntVar(&s.viewers, "viewers", 10, "people who view the workload list in the steady load")
	flag.IntVar(&s.rounds, "rounds", 3, "rounds in which ways to store Events are compared")
	flag.DurationVar(&s.slice, "slice", 6*time.Second, "how long each of them is tried in a round")
	flag.DurationVar(&s.steady, "steady", time.Minute, "how long the steady load lasts")
	flag.DurationVar(&s.period, "period", 15*time.Second, "how often an agent sends in the steady load")
	flag.StringVar(&database, "database", "postgres", "postgres: a private PostgreSQL; sqlite: a file")
	flag.StringVar(&plans, "plans", "", "a file for the plans of the page's queries; none if it is left out")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := s.validate()
	if err == nil {
		err = runBenchmark(ctx, s, database, plans)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchapi:", err)
		os.Exit(1)
	}
}
