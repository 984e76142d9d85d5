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

// method is a way of storing Events.
type method struct {
	name    string
	clients int
	// store stores some Events of an agent, and returns their number.
	store func(ctx context.Context, a *agent) (int, error)

	rates               []float64 // of each round, Events a second
	durations           latencies
	events              int
	apiCPU, databaseCPU time.Duration
}

func (m *method) median() float64 {
	slices.Sort(m.rates)
	return m.rates[len(m.rates)/2]
}

// compareMethods uses all methods in turns, so that other load of the machine affects all of them.
func (w *benchmark) compareMethods(ctx context.Context) error {
	singleRow, err := w.db.prepareInsert(ctx, 1)
	if err != nil {
		return err
	}
	manyRows, err := w.db.prepareInsert(ctx, eventsOfSet)
	if err != nil {
		return err
	}
	methods := []*method{
		{name: "v0, one post after the other", clients: 1, store: w.createEvent},
		{name: fmt.Sprintf("v0, %d posts at a time", w.writers), clients: w.writers, store: w.createEvent},
		{name: fmt.Sprintf("sets of %d, one after the other", eventsOfSet), clients: 1, store: w.sendSet},
		{name: fmt.Sprintf("sets of %d, of %d agents at a time", eventsOfSet, w.writers), clients: w.writers, store: w.sendSet},
		{name: "floor: INSERTs of one row, without the API", clients: 1, store: singleRow},
		{name: fmt.Sprintf("floor: INSERTs of %d rows, without the API", eventsOfSet), clients: 1, store: manyRows},
	}
	for round := range w.rounds {
		for _, m := range methods {
			if err := w.measureMethod(ctx, m); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			fmt.Fprintf(os.Stderr, "%d/%d %s: %.0f/s\n", round+1, w.rounds, m.name, m.rates[round])
		}
	}
	fmt.Printf("\n| Events stored beside %d others | a second, median | lowest to highest | a request, p50 | p99 | CPU time of the API, each Event | of the database |\n|---|---|---|---|---|---|---|\n", w.events)
	for _, m := range methods {
		perEvent := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(m.events) }
		median := m.median()
		fmt.Printf("| %s | %.0f | %.0f to %.0f | %.1f ms | %.1f ms | %.0f µs | %.0f µs |\n", m.name, median, m.rates[0], m.rates[len(m.rates)-1],
			m.durations.percentile(50), m.durations.percentile(99), perEvent(m.apiCPU), perEvent(m.databaseCPU))
	}
	fmt.Printf("\n| figure | measured |\n|---|---|\n")
	printRow("one client: sets to v0 posts", methods[2].median()/methods[0].median(), "times")
	printRow(fmt.Sprintf("%d at a time: sets to v0 posts", w.writers), methods[3].median()/methods[1].median(), "times")
	printRow("one client: sets to the floor of as many rows", methods[2].median()/methods[5].median(), "times")
	return nil
}

// measureMethod stores Events with one method for a time slice.
func (w *benchmark) measureMethod(ctx context.Context, m *method) error {
	api, db, err := w.cpuTimes()
	if err != nil {
		return err
	}
	begin := time.Now()
	var stored, next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range m.clients {
		group.Go(func() error {
			for time.Since(begin) < w.slice {
				start := time.Now()
				n, err := m.store(ctx, w.agents[int(next.Add(1))%len(w.agents)])
				if err != nil {
					return err
				}
				m.durations.add(time.Since(start))
				stored.Add(int64(n))
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	m.rates = append(m.rates, float64(stored.Load())/time.Since(begin).Seconds())
	apiAfter, dbAfter, err := w.cpuTimes()
	m.events, m.apiCPU, m.databaseCPU = m.events+int(stored.Load()), m.apiCPU+apiAfter-api, m.databaseCPU+dbAfter-db
	return err
}

// createEvent creates an Event by v0, as an agent without report sets does.
func (w *benchmark) createEvent(ctx context.Context, a *agent) (int, error) {
	ev := a.event()
	_, err := w.api.create(ctx, "workload-events", map[string]any{
		"RuntimeEventUID": ev.Event.UID, "Type": ev.Event.Type, "Reason": ev.Event.Reason, "Message": ev.Event.Message,
		"Timestamp": ev.Event.Time, "WorkloadInstanceID": int64(ev.Instance.ID),
	})
	return 1, err
}

func (w *benchmark) sendSet(ctx context.Context, a *agent) (int, error) {
	return eventsOfSet, w.api.send(ctx, a.set(a.events(eventsOfSet)...))
}
