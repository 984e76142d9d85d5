package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/hack/figures"
	"github.com/threeport/threeport-agent/internal/e2e/oracle"
)

// size is the size of a measurement.
type size struct{ events, rate int }

// The two compared sizes. The second has 60 workloads and 500 pods.
const (
	smallWorkloads, smallPods = 20, 5
	largeWorkloads, largePods = 60, 10
)

// table is the table of results.
type table struct{ missed bool }

// row prints a result. A bound of 0 means none.
func (t *table) row(label string, figure, bound float64, unit string) {
	verdict := ""
	if bound > 0 {
		verdict = fmt.Sprintf("at most %g %s", bound, unit)
		if figure > bound {
			verdict += ": **missed**"
			t.missed = true
		}
	}
	fmt.Printf("| %s | %.4g %s | %s |\n", label, figure, unit, verdict)
}

// measure runs all measurements, and reports whether a result missed its bound.
func measure(ctx context.Context, agent string, size size) (missed bool, err error) {
	s, err := start(ctx, agent)
	defer func() { err = errors.Join(err, s.stop()) }()
	if err != nil {
		return false, err
	}
	fmt.Printf("%s, %d CPUs, %s\n\n| figure | measured | bound |\n|---|---|---|\n",
		runtime.Version(), runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly))
	t := &table{}
	all, err := s.measureWatches(ctx, t)
	if err != nil {
		return false, err
	}
	if err := s.measureMemory(ctx, t, all); err != nil {
		return false, err
	}
	if err := s.measureChanges(ctx, t, all); err != nil {
		return false, err
	}
	d, err := s.measureDelay(ctx, all[0].Deployed, size)
	if err != nil {
		return false, err
	}
	rate := fmt.Sprintf(", %d Events at %d/s", size.events, size.rate)
	t.row("Event → row, p50"+rate, figures.Percentile(d.reported, 50), 100, "ms")
	t.row("Event → row, p99"+rate, figures.Percentile(d.reported, 99), 500, "ms")
	t.row("Event → row, maximum"+rate, figures.Percentile(d.reported, 100), 0, "ms")
	t.row("floor: Event → a plain watch, p50", figures.Percentile(d.watched, 50), 0, "ms")
	t.row("floor: Event → a plain watch, p99", figures.Percentile(d.watched, 99), 0, "ms")
	return t.missed, s.awaitAgreement(ctx, all)
}

// measureWatches counts the open WATCH requests of the API server without an agent, and with one at both sizes.
func (s *stack) measureWatches(ctx context.Context, t *table) ([]oracle.Expected, error) {
	var all []oracle.Expected
	addedWatches := func(from, to, pods int) (int, error) {
		added, err := s.createWorkloads(ctx, from, to, pods)
		if err != nil {
			return 0, err
		}
		for _, d := range added {
			all = append(all, oracle.Expected{Deployed: d})
		}
		if err := s.stopAgent(); err != nil {
			return 0, err
		}
		before, err := s.stableWatchCount(ctx)
		if err != nil {
			return 0, err
		}
		if err := s.startAgent(ctx); err != nil {
			return 0, err
		}
		if err := s.declareWorkloads(ctx, all, added); err != nil {
			return 0, err
		}
		after, err := s.stableWatchCount(ctx)
		return after - before, err
	}
	small, err := addedWatches(0, smallWorkloads, smallPods)
	if err != nil {
		return nil, err
	}
	large, err := addedWatches(smallWorkloads, largeWorkloads, largePods)
	if err != nil {
		return nil, err
	}
	t.row(fmt.Sprintf("WATCH requests, %d workloads, %d pods", smallWorkloads, smallWorkloads*smallPods), float64(small), 12, "")
	t.row(fmt.Sprintf("WATCH requests, %d workloads, 500 pods", largeWorkloads), float64(large), 12, "")
	t.row("difference of the two", float64(max(large-small, small-large)), 0.5, "")
	return all, nil
}

// stableWatchCount returns the number of open WATCH requests after four equal readings in a row. The controllers of the cluster
// also open and close watches.
func (s *stack) stableWatchCount(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	ticker := time.NewTicker(2 * time.Second)
	defer ticker.Stop()
	last, same := -1, 0
	for {
		n, err := figures.CountWatches(ctx, s.client)
		if err != nil {
			return 0, err
		}
		if n == last {
			same++
		} else {
			last, same = n, 0
		}
		if same == 3 {
			return n, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for a stable number of WATCH requests, now %d: %w", n, ctx.Err())
		}
	}
}

// measureMemory measures the agent at full size, and the API server without and with it.
func (s *stack) measureMemory(ctx context.Context, t *table, all []oracle.Expected) error {
	server := s.cluster.PID("kube-apiserver")
	if err := s.stopAgent(); err != nil {
		return err
	}
	without, err := medianMemory(ctx, server)
	if err != nil {
		return err
	}
	if err := s.startAgent(ctx); err != nil {
		return err
	}
	if err := s.awaitAgreement(ctx, all); err != nil {
		return err
	}
	agent, err := medianMemory(ctx, s.agent.PID())
	if err != nil {
		return err
	}
	with, err := medianMemory(ctx, server)
	if err != nil {
		return err
	}
	t.row("resident memory of the agent at 500 pods", agent, 100, "MB")
	t.row("resident memory of the API server without the agent", without, 0, "MB")
	t.row("growth of the API server with the agent", with-without, 100, "MB")
	return nil
}

// measureChanges changes all workloads. After each change it waits, and counts the differences between the control plane and
// the cluster.
func (s *stack) measureChanges(ctx context.Context, t *table, all []oracle.Expected) error {
	pods := func(w oracle.Expected) int {
		if i := indexOf(w); i < smallWorkloads {
			return smallPods
		}
		return largePods
	}
	none := func(oracle.Expected) int { return 0 }
	steps := []struct {
		name string
		do   func() error
	}{
		{"deployment", func() error { return nil }},
		{"a rollout of all", func() error {
			return s.patchAll(ctx, all, `{"spec":{"template":{"metadata":{"labels":{"rollout":"2"}}}}}`, pods)
		}},
		{"a scale to 0", func() error { return s.patchAll(ctx, all, `{"spec":{"replicas":0}}`, none) }},
		{"a scale back", func() error {
			for _, w := range all {
				if err := s.patchAll(ctx, []oracle.Expected{w}, fmt.Sprintf(`{"spec":{"replicas":%d}}`, pods(w)), pods); err != nil {
					return err
				}
			}
			return nil
		}},
		{"recreation of a Deployment", func() error { return s.recreate(ctx, all[1], pods(all[1])) }},
		{"deletion of half the ThreeportWorkloads", func() error { return s.releaseHalf(ctx, all) }},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		var differences oracle.DifferencesError
		if err := s.awaitAgreement(ctx, all); errors.As(err, &differences) {
			fmt.Fprintf(os.Stderr, "after %s: %v\n", step.name, err)
		} else if err != nil {
			return err
		}
		t.row("differences between cluster and control plane after "+step.name, float64(len(differences)), 0.5, "")
	}
	h, err := oracle.Read(ctx, s.upstream.API)
	if err != nil {
		return err
	}
	t.row("Events compared", float64(len(h.Events)), 0, "")
	return nil
}

func indexOf(w oracle.Expected) int {
	var i int
	_, _ = fmt.Sscanf(w.Name, "app-%d", &i) // named so by workload
	return i
}

func (s *stack) recreate(ctx context.Context, w oracle.Expected, pods int) error {
	deployment := w.Objects[len(w.Objects)-1]
	if err := s.upstream.DeleteObject(ctx, deployment); err != nil {
		return err
	}
	if _, err := s.upstream.Create(ctx, deployment); err != nil {
		return err
	}
	return s.awaitReady(ctx, w.Name, pods)
}

func (s *stack) releaseHalf(ctx context.Context, all []oracle.Expected) error {
	for i := len(all) / 2; i < len(all); i++ {
		cr := &unstructured.Unstructured{}
		cr.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ThreeportWorkload"))
		cr.SetName(all[i].Name)
		if err := s.upstream.DeleteObject(ctx, cr); err != nil {
			return err
		}
		all[i].Released = true
	}
	return nil
}
