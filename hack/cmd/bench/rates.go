package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/threeport/threeport-agent/hack/figures"
)

// measureRates creates Events about tracked Pods at each rate.
func (d *delivery) measureRates(ctx context.Context) error {
	for _, rate := range d.rates {
		if err := d.measureRate(ctx, rate); err != nil {
			return fmt.Errorf("%d/s: %w", rate, err)
		}
	}
	return d.recordMemory(ctx, "after Events at all rates", d.protocol, d.agent)
}

func (d *delivery) measureRate(ctx context.Context, rate int) error {
	seen, stop, err := d.watchEvents(ctx)
	if err != nil {
		return err
	}
	defer stop()
	before, err := usageOf(d.agent)
	if err != nil {
		return err
	}
	written, err := d.createEvents(ctx, rate)
	if err != nil {
		return err
	}
	d.reported = d.population.events
	if err := d.awaitReported(ctx, false); err != nil {
		return err
	}
	after, err := usageOf(d.agent)
	if err != nil {
		return err
	}
	used := after.since(before)
	at := fmt.Sprintf(" at %d/s", rate)
	d.table.set(cpuPerEvent(rate), "ms", d.protocol, used.cpu.Seconds()*1000/float64(len(written)))
	rows, err := d.upstream.API.Events(ctx, nil)
	if err != nil {
		return err
	}
	var reported, watched []float64
	arrivals := seen()
	for _, row := range rows {
		uid := types.UID(*row.RuntimeEventUID)
		at, ok := written[uid]
		if !ok {
			continue
		}
		reported = append(reported, row.CreatedAt.Sub(at).Seconds()*1000)
		if arrival, ok := arrivals[uid]; ok {
			watched = append(watched, arrival.Sub(at).Seconds()*1000)
		}
	}
	for _, p := range []float64{50, 99} {
		name := fmt.Sprintf("delay of an Event%s, p%g", at, p)
		d.table.set(name, "ms", d.protocol, figures.Percentile(reported, p))
		d.table.set(name+", of a plain watch", "ms", d.protocol, figures.Percentile(watched, p))
	}
	return nil
}

// cpuPerEvent is the name of a figure.
func cpuPerEvent(rate int) string { return fmt.Sprintf("CPU per Event at %d/s", rate) }

// createEvents creates Events at a rate, spread over all Pods. It returns when each was sent.
func (w *world) createEvents(ctx context.Context, rate int) (map[types.UID]time.Time, error) {
	n := int(w.slice.Seconds() * float64(rate))
	written := make(map[types.UID]time.Time, n)
	var mu sync.Mutex
	begin := time.Now()
	next := make(chan int)
	errs := make(chan error, writers)
	var workers sync.WaitGroup
	for range writers {
		workers.Go(func() {
			for i := range next {
				one := w.population.tracked[i%len(w.population.tracked)]
				pod := one.live[i/len(w.population.tracked)%len(one.live)]
				at := time.Now()
				mu.Lock()
				ev := w.population.newEvent(pod, at)
				written[ev.UID] = at
				mu.Unlock()
				if err := w.population.put(ctx, "events", ev, ev.ObjectMeta); err != nil {
					select {
					case errs <- err:
					default:
					}
				}
			}
		})
	}
	for i := range n {
		due := time.NewTimer(time.Until(begin.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		select {
		case <-due.C:
			next <- i
		case <-ctx.Done():
			close(next)
			return nil, ctx.Err()
		}
	}
	close(next)
	workers.Wait()
	select {
	case err := <-errs:
		return nil, err
	default:
		return written, nil
	}
}

// watchNewEvents starts a watch of the Events from now on.
func watchNewEvents(ctx context.Context, client kubernetes.Interface) (watch.Interface, error) {
	list, err := client.CoreV1().Events("").List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	return client.CoreV1().Events("").Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
}

// watchEvents starts a plain watch of Events, the floor of the delay. seen returns when each arrived.
func (d *delivery) watchEvents(ctx context.Context) (seen func() map[types.UID]time.Time, stop func(), err error) {
	w, err := watchNewEvents(ctx, d.client)
	if err != nil {
		return nil, nil, err
	}
	arrivals := map[types.UID]time.Time{}
	var mu sync.Mutex
	go func() {
		for change := range w.ResultChan() {
			if ev, ok := change.Object.(*corev1.Event); ok && change.Type == watch.Added {
				mu.Lock()
				arrivals[ev.UID] = time.Now()
				mu.Unlock()
			}
		}
	}()
	return func() map[types.UID]time.Time {
		mu.Lock()
		defer mu.Unlock()
		return arrivals
	}, w.Stop, nil
}
