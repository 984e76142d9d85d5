package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// eventsOfSet is how many Events a set has while Events are filled in: what an agent sends after an outage.
const eventsOfSet = 500

// stages is into how many parts the fill is divided: does it slow down as the tables grow?
const stages = 5

// fill stores Events through report sets, as fast as the server takes them, and returns the rate of each stage.
func fill(ctx context.Context, to *api, agents []*agent, s size, took *latencies) ([]float64, error) {
	rates := make([]float64, 0, stages)
	for stage := range stages {
		sets := s.events / stages / eventsOfSet
		if sets == 0 {
			return rates, nil
		}
		begin := time.Now()
		if err := fillSets(ctx, to, agents, sets, s.writers, took); err != nil {
			return nil, err
		}
		rate := float64(sets*eventsOfSet) / time.Since(begin).Seconds()
		fmt.Fprintf(os.Stderr, "stored %d Events: %.0f a second\n", (stage+1)*sets*eventsOfSet, rate)
		rates = append(rates, rate)
	}
	return rates, nil
}

func fillSets(ctx context.Context, to *api, agents []*agent, sets, writers int, took *latencies) error {
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range writers {
		group.Go(func() error {
			for {
				n := int(next.Add(1) - 1)
				if n >= sets || ctx.Err() != nil {
					return ctx.Err()
				}
				a := agents[n%len(agents)]
				set := a.set(a.events(eventsOfSet)...)
				begin := time.Now()
				if err := to.send(ctx, set); err != nil {
					return err
				}
				took.add(time.Since(begin))
			}
		})
	}
	return group.Wait()
}

// first sends the first report of all agents.
func first(ctx context.Context, to *api, agents []*agent, writers int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, a := range agents {
		group.Go(func() error { return a.state(ctx, to) })
	}
	return group.Wait()
}
