package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/hack/figures"
	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// delivery is an agent that delivers to a control-plane API of its own, both as processes.
type delivery struct {
	*world
	protocol string
	folder   string // of the API's database and the agent's state
	api      *process.Process
	agent    *process.Process
	upstream *upstream.Upstream
	deployed []upstream.Deployed
	reported int // Events that the control plane must have
}

// measureAgent measures the agent with one protocol, in the life of a cluster: first start, Events at each rate, restart, churn of a
// node, and a rollout of everything.
func (w *world) measureAgent(ctx context.Context, protocol string) (err error) {
	d := &delivery{world: w, protocol: protocol, folder: w.file(w.size.String() + "-" + protocol)}
	defer func() { err = errors.Join(err, d.stop()) }()
	if d.api, d.upstream, err = w.startAPI(ctx, d.folder); err != nil {
		return err
	}
	if err := d.population.resetEvents(ctx); err != nil {
		return err
	}
	if err := d.declare(ctx); err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"first start", d.measureFirstStart},
		{"rates of Events", d.measureRates},
		{"restart", d.measureRestart},
		{"churn of a node", d.measureChurn},
		{"rollout of everything", d.measureRollout},
	} {
		progress("%s: %s", protocol, step.name)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// startAPI starts a control-plane API with a database in a folder. The process is nil if it was not started.
func (w *world) startAPI(ctx context.Context, folder string) (*process.Process, *upstream.Upstream, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, nil, err
	}
	api, err := process.Start(w.apiBinary, nil, []string{
		"--bind-address=127.0.0.1:0", "--auth-enabled=false", "--database=sqlite:" + filepath.Join(folder, "controlplane.db"),
		"--events-per-workload=10000000", // enough for every measurement
	})
	if err != nil {
		return nil, nil, err
	}
	url, err := api.URL(ctx)
	if err != nil {
		return api, nil, err
	}
	client, err := upstream.New(w.cluster.Config(), upstream.API{URL: url})
	return api, client, err
}

// declare registers a workload for each Deployment, and declares it.
func (d *delivery) declare(ctx context.Context) error {
	d.deployed = make([]upstream.Deployed, len(d.population.tracked))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i, one := range d.population.tracked {
		group.Go(func() error {
			objects, err := upstream.Parse(strings.ReplaceAll(listed, "NAMESPACE", one.namespace))
			if err != nil {
				return err
			}
			registered, err := d.upstream.Register(ctx, upstream.Workload{Name: one.namespace, Type: v1alpha1.WorkloadTypeInstance, Objects: objects})
			d.deployed[i] = registered
			if err != nil {
				return err
			}
			return d.upstream.Declare(ctx, registered)
		})
	}
	return group.Wait()
}

// listed are the objects that a workload lists.
const listed = `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: NAMESPACE}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: conf, namespace: NAMESPACE}}
---
{apiVersion: v1, kind: Secret, metadata: {name: credentials, namespace: NAMESPACE}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: NAMESPACE}}
`

func (d *delivery) startAgent(ctx context.Context) error {
	env := append([]string{"GODEBUG=gctrace=1"}, d.env...)
	args := []string{
		"--kubeconfig=" + d.kubeconfig, "--threeport-api-server=" + d.upstream.API.URL, "--auth-enabled=false",
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--state-dir=" + filepath.Join(d.folder, "state"),
	}
	if d.protocol == protocolV0 {
		args = append(args, "--report-sets=false")
	}
	var err error
	if d.agent, err = process.Start(d.bench.agent, env, args); err != nil {
		return err
	}
	_, err = d.agent.WaitFor(ctx, "Starting workers")
	return err
}

func (d *delivery) stopAgent() error {
	if d.agent == nil {
		return nil
	}
	agent := d.agent
	d.agent = nil
	err := agent.Stop(time.Minute)
	if d.keepOutput != "" {
		err = errors.Join(err, os.WriteFile(filepath.Join(d.keepOutput, fmt.Sprintf("%s-%s-%d.log", d.size, d.protocol, agent.PID())), []byte(agent.Output()), 0o600))
	}
	return err
}

func (d *delivery) stop() error {
	err := d.stopAgent()
	if d.api != nil {
		err = errors.Join(err, d.api.Stop(time.Minute))
	}
	return err
}

// awaitReported waits until the control plane has all Events and, if statuses is true, the status of each workload.
func (d *delivery) awaitReported(ctx context.Context, statuses bool) error {
	return await(ctx, d.agent, func(ctx context.Context) (string, error) { return d.missing(ctx, statuses) })
}

// await waits until nothing is missing. It returns an error if the process ends.
func await(ctx context.Context, p *process.Process, missing func(context.Context) (string, error)) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		text, err := missing(ctx)
		if err != nil || text == "" {
			return err
		}
		select {
		case <-ticker.C:
		case <-p.Done():
			return fmt.Errorf("the process ended: %s", p.Output()[max(0, len(p.Output())-4096):])
		case <-ctx.Done():
			return fmt.Errorf("wait for reports: %s: %w", text, ctx.Err())
		}
	}
}

// missing says what the control plane does not have yet; empty if nothing is missing.
func (d *delivery) missing(ctx context.Context, statuses bool) (string, error) {
	n, err := d.upstream.API.Count(ctx, upstream.WorkloadEvents)
	if err != nil {
		return "", err
	}
	if n < d.reported {
		return fmt.Sprintf("it has %d of %d Events", n, d.reported), nil
	}
	rows, err := d.upstream.API.Events(ctx, nil) // the agent makes Events too
	if err != nil {
		return "", err
	}
	n = 0
	for _, row := range rows {
		if *row.Reason == podEventReason {
			n++
		}
	}
	if n < d.reported {
		return fmt.Sprintf("it has %d of %d Events about Pods", n, d.reported), nil
	}
	if !statuses {
		return "", nil
	}
	all, err := d.upstream.API.Statuses(ctx, upstream.WorkloadInstances)
	if err != nil {
		return "", err
	}
	for _, status := range all {
		if status != "Healthy" {
			return fmt.Sprintf("a workload is %q", status), nil
		}
	}
	return "", nil
}

// measureFirstStart starts an agent without state, in a cluster with Events.
func (d *delivery) measureFirstStart(ctx context.Context) error {
	d.reported = d.population.events
	server, err := d.serverMemory(ctx)
	if err != nil {
		return err
	}
	watches, err := figures.CountWatches(ctx, d.client)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := d.startAgent(ctx); err != nil {
		return err
	}
	if err := d.awaitReported(ctx, true); err != nil {
		return err
	}
	took := time.Since(begin).Seconds()
	used, err := usageOf(d.agent)
	if err != nil {
		return err
	}
	d.table.set("first start", "s", d.protocol, took)
	d.table.set("CPU of the first start", "s", d.protocol, used.cpu.Seconds())
	if err := d.recordMemory(ctx, "after the first start", d.protocol, d.agent); err != nil {
		return err
	}
	if err := d.recordServer(ctx, d.protocol, server); err != nil {
		return err
	}
	d.table.set("read from the API server at the first start", "MB", d.protocol, float64(used.read)/1e6)
	after, err := figures.CountWatches(ctx, d.client)
	d.table.set("watches", "", d.protocol, float64(after-watches))
	return err
}

// measureRestart restarts the agent after an Event about each workload that it has not seen.
func (d *delivery) measureRestart(ctx context.Context) error {
	if err := d.stopAgent(); err != nil {
		return err
	}
	if err := d.population.reportOne(ctx); err != nil {
		return err
	}
	d.reported = d.population.events
	begin := time.Now()
	if err := d.startAgent(ctx); err != nil {
		return err
	}
	if err := d.awaitReported(ctx, true); err != nil {
		return err
	}
	d.table.set("restart", "s", d.protocol, time.Since(begin).Seconds())
	return d.recordMemory(ctx, "after a restart", d.protocol, d.agent)
}

// measureChurn replaces a tenth of the Pods, with an Event about each, as the loss of a node does.
func (d *delivery) measureChurn(ctx context.Context) error {
	return d.measureChange(ctx, "churn of a tenth", func(ctx context.Context, one *deployment) error {
		return d.population.replacePods(ctx, one, max(1, len(one.live)/10))
	})
}

// measureRollout replaces all Pods, with an Event about each.
func (d *delivery) measureRollout(ctx context.Context) error {
	return d.measureChange(ctx, "a rollout of all", d.population.rollOut)
}

// measureChange changes all Deployments, and measures until all is reported.
func (d *delivery) measureChange(ctx context.Context, name string, change func(context.Context, *deployment) error) error {
	before, err := usageOf(d.agent)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := d.population.each(ctx, d.population.tracked, change); err != nil {
		return err
	}
	if err := d.population.reportPods(ctx, d.population.tracked); err != nil {
		return err
	}
	d.reported = d.population.events
	if err := d.awaitReported(ctx, true); err != nil {
		return err
	}
	d.table.set("time of "+name, "s", d.protocol, time.Since(begin).Seconds())
	after, err := usageOf(d.agent)
	if err != nil {
		return err
	}
	used := after.since(before)
	d.table.set("CPU of "+name, "s", d.protocol, used.cpu.Seconds())
	d.table.set("garbage collection in the CPU of "+name, "%", d.protocol, 100*used.gc.Seconds()/used.cpu.Seconds())
	return d.recordMemory(ctx, "after "+name, d.protocol, d.agent)
}
