package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// refresh is the interval of requests to the control-plane API while the workloads start.
const refresh = 500 * time.Millisecond

// errInterrupted means that the demo was interrupted during its start.
var errInterrupted = errors.New("interrupted; everything is stopped")

// demo is one run.
type demo struct {
	config
	out io.Writer
}

func newDemo(cfg config, out io.Writer) *demo { return &demo{cfg, out} }

// run runs the demo, and stops everything at its end.
func (d *demo) run(ctx context.Context) error {
	root, err := sourceTree()
	if err != nil {
		return err
	}
	m := fakeNodes()
	if d.node == nodeReal {
		m = realNodeOr(m, cluster.CanRunRealNode(), d.say)
	}
	s := newStack(root, d.out, m)
	err = d.show(ctx, s)
	switch {
	case err != nil && ctx.Err() != nil:
		err = errInterrupted // other errors follow from the interruption
	case err != nil:
		s.printLogs(ctx)
	}
	d.say("\nStopping the agent, the control-plane API and the cluster.")
	return errors.Join(err, s.stop())
}

func (d *demo) show(ctx context.Context, s *stack) error {
	if err := s.start(ctx); err != nil {
		return err
	}
	ctx, release := s.guard(ctx)
	defer release()

	scene, err := newScene(s)
	if err != nil {
		return err
	}
	if s.access.credentials != nil {
		if err := scene.page.login(ctx); err != nil {
			return err
		}
	}
	d.say("\n%s\n", scene.page.hint())
	if !d.once && newScreen(d.out).terminal >= 0 {
		scene.page.open(ctx)
	}
	d.say("Deploying the workloads: registered in the API, created in the cluster, declared to the agent.\n")
	if err := scene.deploy(ctx); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	unmet, err := d.settle(ctx, scene)
	if err != nil {
		return err
	}
	if len(unmet) == 0 {
		d.say("\nEverything expected is in the control-plane API, and nothing else.")
	} else {
		err = fmt.Errorf("%d expectations are not met after %s:\n  %s", len(unmet), d.timeout, strings.Join(unmet, "\n  "))
	}
	if d.once {
		return err
	}
	if err != nil {
		d.say("\n%s", err)
	}
	if err := d.hint(ctx, s, scene); err != nil {
		return err
	}
	return d.stay(ctx, scene)
}

// settle shows the rows of the control-plane API until they are as expected. After a timeout it returns the differences.
func (d *demo) settle(ctx context.Context, scene *scene) (unmet []string, err error) {
	deadline := time.NewTimer(d.timeout)
	defer deadline.Stop()
	ticker := time.NewTicker(refresh)
	defer ticker.Stop()
	screen := newScreen(d.out)
	for {
		said, unmet := scene.look(ctx)
		if said != nil {
			screen.show(table(scene.deployed, *said, screen.width()))
		}
		if len(unmet) == 0 {
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-deadline.C:
			return unmet, nil
		case <-ticker.C:
		}
	}
}

// stay runs until the demo is interrupted, or returns an error when a part of it dies.
func (d *demo) stay(ctx context.Context, scene *scene) error {
	ticker := time.NewTicker(refresh)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			if death, ok := errors.AsType[*deathError](context.Cause(ctx)); ok {
				return death
			}
			return nil
		case <-ticker.C:
			_ = scene.operator.reconcile(ctx) // it is tried again, as by any operator
		}
	}
}

func (d *demo) say(format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, format+"\n", args...)
}

// scene has the workloads of the demo and its view of them.
type scene struct {
	config   *rest.Config
	upstream *upstream.Upstream
	page     *page
	operator *cacheOperator
	oracle   *oracle.Oracle // nil until there is something to watch
	leaks    *leakDetector
	logs     func(context.Context) (map[string]string, error) // by the name of the program that writes them
	deployed []deployed
}

func newScene(s *stack) (*scene, error) {
	leaks := newLeakDetector(s.access.transport)
	config := s.cluster.Config()
	up, err := upstream.New(config, upstream.API{URL: s.apiURL, HTTP: leaks.client()})
	if err != nil {
		return nil, err
	}
	op, err := newCacheOperator(config, up)
	if err != nil {
		return nil, err
	}
	board := &page{url: s.apiURL, http: leaks.client()}
	return &scene{config: config, upstream: up, page: board, operator: op, leaks: leaks, logs: s.logs}, nil
}

// deploy deploys the workloads. The oracle watches the cluster from before.
func (s *scene) deploy(ctx context.Context) (err error) {
	if err := prepareNamespace(ctx, s.upstream); err != nil {
		return err
	}
	if err := s.operator.install(ctx); err != nil {
		return err
	}
	if s.oracle, err = oracle.Watch(ctx, s.config); err != nil {
		return err
	}
	for _, w := range workloads() {
		d, err := w.deploy(ctx, s.upstream, s.leaks.secret)
		if err != nil {
			return fmt.Errorf("deploy workload %s: %w", w.name, err)
		}
		s.deployed = append(s.deployed, d)
	}
	return nil
}

// look returns the rows of the control-plane API, nil without an answer, and the differences from the expectation.
func (s *scene) look(ctx context.Context) (*history, []string) {
	if err := s.operator.reconcile(ctx); err != nil {
		return nil, []string{fmt.Sprintf("custom: expected the demo to play the operator of %s: %v", cacheKind.Kind, err)}
	}
	said, err := readHistory(ctx, s.upstream.API, s.deployed)
	if err != nil {
		return nil, []string{fmt.Sprintf("expected the control-plane API to answer: %v", err)}
	}
	if said.board, err = s.page.workloads(ctx); err != nil {
		return nil, []string{fmt.Sprintf("expected the page's rows: %v", err)}
	}
	expected := make([]oracle.Expected, 0, len(s.deployed))
	for _, w := range s.deployed {
		expected = append(expected, oracle.Expected{Deployed: w.Deployed})
	}
	unmet := append(check(s.deployed, said), s.oracle.Check(said.History, expected)...)
	if len(unmet) == 0 { // to read the agent's log may take a process: once is enough, and the end is when to do it
		unmet = s.leaked(ctx)
	}
	return &said, unmet
}

// leaked searches all observed output of the agent for the Secret's value.
func (s *scene) leaked(ctx context.Context) []string {
	logs, err := s.logs(ctx)
	if err != nil {
		return []string{fmt.Sprintf("expected the logs to be there: %v", err)}
	}
	return s.leaks.check(logs)
}
