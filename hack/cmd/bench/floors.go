package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// floors measures programs that deliver Events and do nothing else, to a control-plane API of their own.
type floors struct {
	*world
	api      *upstream.Upstream
	instance int64
}

func (w *world) measureFloors(ctx context.Context) (err error) {
	server, api, err := w.startAPI(ctx, w.file(w.size.String()+"-floors"))
	if server != nil {
		defer func() { err = errors.Join(err, server.Stop(time.Minute)) }()
	}
	if err != nil {
		return err
	}
	f := floors{world: w, api: api}
	if f.instance, err = api.API.Create(ctx, upstream.WorkloadInstances, map[string]any{"Name": "floor", "Status": "Healthy"}); err != nil {
		return err
	}
	if err := f.measurePosts(ctx); err != nil {
		return err
	}
	return f.measureForward(ctx)
}

// start starts a command of this program that posts Events.
func (f floors) start(command string, args ...string) (*process.Process, error) {
	progress("%s", command)
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return process.Start(self, nil, append([]string{command, "--url=" + f.api.API.URL, fmt.Sprintf("--instance=%d", f.instance)}, args...))
}

// measurePosts measures a process that posts Events one after another.
func (f floors) measurePosts(ctx context.Context) error {
	const events = 2000
	p, err := f.start(postsCommand, fmt.Sprintf("--events=%d", events))
	if err != nil {
		return err
	}
	defer p.Kill()
	line, err := p.WaitFor(ctx, postedText)
	if err != nil {
		return err
	}
	_, text, _ := strings.Cut(line, postedText)
	took, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	used, err := process.CPUTime(p.PID())
	f.table.set("time per Event, one at a time", "ms", columnPosts, took.Seconds()*1000/events)
	f.table.set("CPU per Event", "ms", columnPosts, used.Seconds()*1000/events)
	return err
}

// measureForward measures a process that posts each Event that a watch receives, at each rate.
func (f floors) measureForward(ctx context.Context) error {
	p, err := f.start(forwardCommand, "--kubeconfig="+f.cluster.Kubeconfig())
	if err != nil {
		return err
	}
	defer p.Kill()
	if _, err := p.WaitFor(ctx, watchingText); err != nil {
		return err
	}
	for _, rate := range f.rates {
		if err := f.measureForwardAt(ctx, rate, p); err != nil {
			return fmt.Errorf("%d/s: %w", rate, err)
		}
	}
	return nil
}

func (f floors) measureForwardAt(ctx context.Context, rate int, p *process.Process) error {
	before, err := process.CPUTime(p.PID())
	if err != nil {
		return err
	}
	posted, err := f.api.API.Count(ctx, upstream.WorkloadEvents)
	if err != nil {
		return err
	}
	written, err := f.createEvents(ctx, rate)
	if err != nil {
		return err
	}
	err = await(ctx, p, func(ctx context.Context) (string, error) {
		n, err := f.api.API.Count(ctx, upstream.WorkloadEvents)
		if err != nil || n >= posted+len(written) {
			return "", err
		}
		return fmt.Sprintf("it has %d of %d Events", n, posted+len(written)), nil
	})
	if err != nil {
		return err
	}
	after, err := process.CPUTime(p.PID())
	f.table.set(cpuPerEvent(rate), "ms", columnForward, (after-before).Seconds()*1000/float64(len(written)))
	return err
}
