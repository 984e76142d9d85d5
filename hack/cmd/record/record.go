package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/threeport/threeport-agent/internal/e2e/operators"
	"github.com/threeport/threeport-agent/internal/e2e/scenario"
	"github.com/threeport/threeport-agent/internal/e2e/scenario/recording"
)

// options are the parsed command line.
type options struct {
	check     bool
	operators bool
	only      string
	dir       string
	parallel  int
}

// A moment is recorded after its objects have not changed for settleFor, checked every settleEvery.
const (
	settleFor   = 3 * time.Second
	settleEvery = 500 * time.Millisecond
	settleLimit = 2 * time.Minute
)

// run records the selected scenarios. It returns false if the existing files differ from the recordings.
func run(ctx context.Context, o options) (same bool, err error) {
	scenarios, err := o.scenarios()
	if err != nil {
		return false, err
	}
	stack, err := start(ctx, operatorsOf(scenarios))
	defer func() { err = errors.Join(err, stack.stop()) }()
	if err != nil {
		return false, err
	}
	r := &recorder{stack: stack, files: map[string][]byte{}}
	failed := r.runAll(ctx, scenarios, o.parallel)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	files := folder{path: o.dir, complete: o.only == "" && failed == nil}
	if o.check {
		same, err = files.compare(ctx, r.files, os.Stdout)
	} else {
		same, err = true, files.write(r.files)
	}
	return same, errors.Join(failed, err)
}

func (o options) scenarios() ([]scenario.Scenario, error) {
	all, from := scenario.All(), "internal/e2e/scenario/manifests"
	if o.operators {
		all, from = nil, "internal/e2e/operators/manifests"
		for _, operator := range operators.All() {
			if operator.Name == o.only {
				return operator.Scenarios(), nil
			}
			all = append(all, operator.Scenarios()...)
		}
	}
	if o.only == "" {
		return all, nil
	}
	for _, s := range all {
		if s.Name == o.only {
			return []scenario.Scenario{s}, nil
		}
	}
	return nil, fmt.Errorf("--only: there is no scenario %q in %s", o.only, from)
}

// operatorsOf returns the operators that scenarios need; none for those of a real node.
func operatorsOf(scenarios []scenario.Scenario) []operators.Operator {
	needed := map[string]bool{}
	for _, s := range scenarios {
		needed[s.Name] = s.Operator != nil
	}
	return slices.DeleteFunc(operators.All(), func(o operators.Operator) bool {
		return !slices.ContainsFunc(o.Scenarios(), func(s scenario.Scenario) bool { return needed[s.Name] })
	})
}

// recorder runs scenarios and collects their recordings.
type recorder struct {
	stack *stack

	mu    sync.Mutex
	files map[string][]byte // by moment
}

// runAll runs several scenarios at a time. Those that act on the node run last, one by one. A failure does not stop the others.
func (r *recorder) runAll(ctx context.Context, scenarios []scenario.Scenario, parallel int) error {
	var mu sync.Mutex
	var errs []error
	addError := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, s := range scenarios {
		if !s.Node {
			group.Go(func() error { addError(r.run(ctx, s)); return nil })
		}
	}
	_ = group.Wait() // it has no errors of its own
	for _, s := range scenarios {
		if s.Node {
			addError(r.run(ctx, s))
		}
	}
	return errors.Join(errs...)
}

// attempts limits the runs of a scenario until all its moments are recorded.
const attempts = 3

// run runs a scenario, and repeats it after an unexpected result: a busy machine misses moments.
func (r *recorder) run(ctx context.Context, s scenario.Scenario) error {
	for attempt := 1; ; attempt++ {
		files, err := r.runOnce(ctx, s, attempt)
		if err == nil {
			r.mu.Lock()
			maps.Copy(r.files, files)
			r.mu.Unlock()
			return nil
		}
		if attempt == attempts || ctx.Err() != nil || r.stack.err() != nil {
			return errors.Join(err, r.stack.err())
		}
		_, _ = fmt.Fprintf(os.Stderr, "%v\ntrying scenario %s again\n", err, s.Name)
	}
}

// runOnce runs a scenario in a new namespace, and deletes it. It returns the recordings by moment.
func (r *recorder) runOnce(ctx context.Context, s scenario.Scenario, attempt int) (map[string][]byte, error) {
	if err := s.AwaitSecond(ctx); err != nil {
		return nil, err
	}
	env, remove, err := r.stack.deploy(ctx, s, fmt.Sprintf("recording-%s-%d", s.Name, attempt))
	defer remove()
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	files := map[string][]byte{}
	err = s.Play(ctx, env, func(ctx context.Context, step scenario.Step, _ recording.Snapshot) error {
		begin := time.Now()
		text, err := settled(ctx, s, step, env)
		if err != nil {
			return err
		}
		files[step.Moment] = text
		_, _ = fmt.Fprintf(os.Stderr, "recorded %s, which took %s to settle\n", step.Moment, time.Since(begin).Round(time.Second))
		return nil
	})
	return files, err
}

// overloadMessages are messages of Events of an overloaded kubelet whose caches time out after a second. The workload is not
// affected, but another run would not have these Events.
var overloadMessages = []string{"failed to sync secret cache", "failed to sync configmap cache"}

func checkOverload(at recording.Snapshot) error {
	events, err := recording.Of[corev1.Event](at)
	for _, e := range events {
		for _, text := range overloadMessages {
			if strings.Contains(e.Message, text) {
				return fmt.Errorf("the machine is busy: %s: %s", e.Reason, e.Message)
			}
		}
	}
	return err
}

// settled returns the recording of a moment after it no longer changes: controllers follow each other with delays, and Events
// follow their causes.
func settled(ctx context.Context, s scenario.Scenario, step scenario.Step, env scenario.Env) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	ticker := time.NewTicker(settleEvery)
	defer ticker.Stop()
	var last []byte
	var since time.Time
	for {
		at, err := s.Take(ctx, env)
		if err == nil {
			if err := checkOverload(at); err != nil {
				return nil, err
			}
			err = step.Reached(at)
		}
		var text []byte
		if err == nil {
			text, err = recording.Text(at, scenario.Comment(s, step))
		}
		if err != nil || !bytes.Equal(text, last) {
			last, since = text, time.Now()
		}
		if err == nil && time.Since(since) >= settleFor {
			return text, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("the objects of the moment kept changing: %w", errors.Join(ctx.Err(), err))
		}
	}
}
