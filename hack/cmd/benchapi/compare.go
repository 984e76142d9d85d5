package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// eventsOfSet is the number of Events in a full report set.
const eventsOfSet = 500

// way is a method of storing Events.
type way struct {
	name    string
	clients int
	// store stores some Events of an agent, and returns their number.
	store func(ctx context.Context, a *agent) (int, error)

	rates   []float64 // of each round, Events a second
	took    latencies
	events  int
	api, db time.Duration // of cores
}

func (y *way) median() float64 {
	slices.Sort(y.rates)
	return y.rates[len(y.rates)/2]
}

// compare uses all ways in turns, so that other load of the machine affects all of them.
func (w *world) compare(ctx context.Context) error {
	one, err := w.db.inserter(ctx, 1)
	if err != nil {
		return err
	}
	many, err := w.db.inserter(ctx, eventsOfSet)
	if err != nil {
		return err
	}
	ways := []*way{
		{name: "v0, one post after the other", clients: 1, store: w.post},
		{name: fmt.Sprintf("v0, %d posts at a time", w.writers), clients: w.writers, store: w.post},
		{name: fmt.Sprintf("sets of %d, one after the other", eventsOfSet), clients: 1, store: w.sendSet},
		{name: fmt.Sprintf("sets of %d, of %d agents at a time", eventsOfSet, w.writers), clients: w.writers, store: w.sendSet},
		{name: "floor: INSERTs of one row, without the API", clients: 1, store: one},
		{name: fmt.Sprintf("floor: INSERTs of %d rows, without the API", eventsOfSet), clients: 1, store: many},
	}
	for round := range w.rounds {
		for _, y := range ways {
			if err := w.try(ctx, y); err != nil {
				return fmt.Errorf("%s: %w", y.name, err)
			}
			fmt.Fprintf(os.Stderr, "%d/%d %s: %.0f/s\n", round+1, w.rounds, y.name, y.rates[round])
		}
	}
	fmt.Printf("\n| Events stored beside %d others | a second, median | lowest to highest | a request, p50 | p99 | cores of the API, each Event | of the database |\n|---|---|---|---|---|---|---|\n", w.events)
	for _, y := range ways {
		each := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(y.events) }
		median := y.median()
		fmt.Printf("| %s | %.0f | %.0f to %.0f | %.1f ms | %.1f ms | %.0f µs | %.0f µs |\n", y.name, median, y.rates[0], y.rates[len(y.rates)-1],
			y.took.percentile(50), y.took.percentile(99), each(y.api), each(y.db))
	}
	fmt.Printf("\n| figure | measured |\n|---|---|\n")
	row("one client: sets to v0 posts", ways[2].median()/ways[0].median(), "times")
	row(fmt.Sprintf("%d at a time: sets to v0 posts", w.writers), ways[3].median()/ways[1].median(), "times")
	row("one client: sets to the floor of as many rows", ways[2].median()/ways[5].median(), "times")
	return nil
}

// try stores Events in one way for a time slice.
func (w *world) try(ctx context.Context, y *way) error {
	api, db, err := w.used()
	if err != nil {
		return err
	}
	begin := time.Now()
	var stored, next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range y.clients {
		group.Go(func() error {
			for time.Since(begin) < w.slice {
				due := time.Now()
				n, err := y.store(ctx, w.agents[int(next.Add(1))%len(w.agents)])
				if err != nil {
					return err
				}
				y.took.add(time.Since(due))
				stored.Add(int64(n))
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	y.rates = append(y.rates, float64(stored.Load())/time.Since(begin).Seconds())
	apiAfter, dbAfter, err := w.used()
	y.events, y.api, y.db = y.events+int(stored.Load()), y.api+apiAfter-api, y.db+dbAfter-db
	return err
}

// post creates an Event by v0, as an agent without report sets does.
func (w *world) post(ctx context.Context, a *agent) (int, error) {
	ev := a.event()
	_, err := w.api.create(ctx, "workload-events", map[string]any{
		"RuntimeEventUID": ev.Event.UID, "Type": ev.Event.Type, "Reason": ev.Event.Reason, "Message": ev.Event.Message,
		"Timestamp": ev.Event.Time, "WorkloadInstanceID": int64(ev.Instance.ID),
	})
	return 1, err
}

func (w *world) sendSet(ctx context.Context, a *agent) (int, error) {
	return eventsOfSet, w.api.send(ctx, a.set(a.events(eventsOfSet)...))
}
