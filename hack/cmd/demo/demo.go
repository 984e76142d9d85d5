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
		m = realNodeOr(m, cluster.CanRunRealNode(), d.printf)
	}
	s := newStack(root, d.out, m)
	err = d.runOn(ctx, s)
	switch {
	case err != nil && ctx.Err() != nil:
		err = errInterrupted // other errors follow from the interruption
	case err != nil:
		s.printLogs(ctx)
	}
	d.printf("\nStopping the agent, the control-plane API and the cluster.")
	return errors.Join(err, s.stop())
}

func (d *demo) runOn(ctx context.Context, s *stack) error {
	if err := s.start(ctx); err != nil {
		return err
	}
	ctx, release := s.contextUntilExit(ctx)
	defer release()

	h, err := newHarness(s)
	if err != nil {
		return err
	}
	if s.access.credentials != nil {
		if err := h.ui.login(ctx); err != nil {
			return err
		}
	}
	d.printf("\n%s\n", h.ui.loginHint())
	if !d.once && newScreen(d.out).terminal >= 0 {
		h.ui.open(ctx)
	}
	d.printf("Deploying the workloads: registered in the API, created in the cluster, declared to the agent.\n")
	if err := h.deploy(ctx); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	differences, err := d.awaitExpected(ctx, s, h)
	if err != nil {
		return err
	}
	if len(differences) == 0 {
		d.printf("\nEverything expected is in the control-plane API, and nothing else.")
	} else {
		err = fmt.Errorf("%d expectations are not met after %s:\n  %s", len(differences), d.timeout, strings.Join(differences, "\n  "))
	}
	if d.once {
		return err
	}
	if err != nil {
		d.printf("\n%s", err)
	}
	if err := d.printHints(ctx, s, h); err != nil {
		return err
	}
	return d.runUntilInterrupted(ctx, s, h)
}

// awaitExpected shows the rows of the control-plane API until they are as expected. After a timeout it returns the differences. If
// the agent ends, it returns an error.
func (d *demo) awaitExpected(ctx context.Context, s *stack, h *harness) (differences []string, err error) {
	deadline := time.NewTimer(d.timeout)
	defer deadline.Stop()
	ticker := time.NewTicker(refresh)
	defer ticker.Stop()
	screen := newScreen(d.out)
	d.printf("\n%s", legend)
	defer screen.finish()
	for {
		found, differences := h.compare(ctx)
		if found != nil {
			screen.show(table(h.deployed, *found, screen.width()))
		}
		if len(differences) == 0 {
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-s.agentDone():
			return nil, &exitError{"the agent", errors.New("see the end of its log above")}
		case <-deadline.C:
			return differences, nil
		case <-ticker.C:
		}
	}
}

// runUntilInterrupted runs until the demo is interrupted, or returns an error when the cluster or the control-plane API dies. It
// continues without the agent, so that the user sees what the plugin and the web UI show then.
func (d *demo) runUntilInterrupted(ctx context.Context, s *stack, h *harness) error {
	agentDone := s.agentDone()
	ticker := time.NewTicker(refresh)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			if exit, ok := errors.AsType[*exitError](context.Cause(ctx)); ok {
				return exit
			}
			return nil
		case <-agentDone:
			agentDone = nil
			d.printf("\nThe agent ended. The demo continues without it, and Ctrl-C stops everything. The agent's log: %s", s.logPath(agentLog))
			d.printf("Start it again, in another terminal, and stop it there before the demo:\n  %s", s.agent.restartCommand())
		case <-ticker.C:
			_ = h.operator.reconcile(ctx) // the next tick retries
		}
	}
}

func (d *demo) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, format+"\n", args...)
}

// harness deploys the workloads of the demo, and compares the control-plane API with the expectations.
type harness struct {
	root     string // of the source tree
	config   *rest.Config
	upstream *upstream.Upstream
	ui       *ui
	operator *cacheOperator
	oracle   *oracle.Oracle // nil until there is something to watch
	leaks    *leakDetector
	logs     func(context.Context) (map[string]string, error) // by the name of the program that writes them
	deployed []deployed
}

func newHarness(s *stack) (*harness, error) {
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
	ui := &ui{url: s.apiURL, http: leaks.client()}
	return &harness{root: s.root, config: config, upstream: up, ui: ui, operator: op, leaks: leaks, logs: s.logs}, nil
}

// deploy deploys the workloads. The oracle watches the cluster from before.
func (h *harness) deploy(ctx context.Context) (err error) {
	if err := prepareNamespace(ctx, h.upstream); err != nil {
		return err
	}
	if _, err := h.upstream.InstallComponent(ctx, h.root, "secrets"); err != nil { // the workload web lists a Secret
		return err
	}
	if err := h.operator.install(ctx); err != nil {
		return err
	}
	if h.oracle, err = oracle.Watch(ctx, h.config); err != nil {
		return err
	}
	for _, w := range workloads() {
		d, err := w.deploy(ctx, h.upstream, h.leaks.secret)
		if err != nil {
			return fmt.Errorf("deploy workload %s: %w", w.name, err)
		}
		h.deployed = append(h.deployed, d)
	}
	return nil
}

// compare returns the content of the control-plane API, nil without an answer, and the differences from the expectation.
func (h *harness) compare(ctx context.Context) (*content, []string) {
	if err := h.operator.reconcile(ctx); err != nil {
		return nil, []string{fmt.Sprintf("custom: expected the demo's operator to reconcile %s: %v", cacheKind.Kind, err)}
	}
	found, err := readContent(ctx, h.upstream.API, h.deployed)
	if err != nil {
		return nil, []string{fmt.Sprintf("expected the control-plane API to answer: %v", err)}
	}
	if found.workloads, err = h.ui.workloads(ctx); err != nil {
		return nil, []string{fmt.Sprintf("expected the workload list: %v", err)}
	}
	expected := make([]oracle.Expected, 0, len(h.deployed))
	for _, w := range h.deployed {
		expected = append(expected, oracle.Expected{Deployed: w.Deployed})
	}
	differences := append(check(h.deployed, found), h.oracle.Check(found.History, expected)...)
	if len(differences) == 0 { // reading the agent's log may start a process, so it happens only once
		differences = h.checkLeaks(ctx)
	}
	return &found, differences
}

// checkLeaks searches all observed output of the agent for the Secret's value.
func (h *harness) checkLeaks(ctx context.Context) []string {
	logs, err := h.logs(ctx)
	if err != nil {
		return []string{fmt.Sprintf("expected the logs to be readable: %v", err)}
	}
	return h.leaks.check(logs)
}
