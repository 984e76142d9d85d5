package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/threeport/threeport-agent/hack/figures"
	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/etcd"
	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// timeout only means that something hangs.
const timeout = 10 * time.Minute

// agentUser is the user that the agent's ClusterRoles are bound to.
const agentUser = "agent"

// bench has the binaries of all sizes.
type bench struct {
	options
	dir, apiBinary string
}

// run measures all sizes.
func run(ctx context.Context, o options) (err error) {
	b := &bench{options: o}
	if b.dir, err = os.MkdirTemp("", "threeport-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.agent == "" {
		if b.agent, err = process.Build(ctx, ".", "./cmd/agent", b.dir); err != nil {
			return err
		}
	}
	if b.apiBinary, err = process.Build(ctx, ".", "./cmd/controlplane", b.dir); err != nil {
		return err
	}
	if b.keepOutput != "" {
		if err = os.MkdirAll(b.keepOutput, 0o700); err != nil {
			return err
		}
	}
	fmt.Printf("%s, %d CPUs for everything, environment of the agent %q, %s\n", runtime.Version(), runtime.NumCPU(), b.env, time.Now().UTC().Format(time.DateOnly))
	for _, s := range b.sizes {
		if err := b.measure(ctx, s); err != nil {
			return fmt.Errorf("size %s: %w", s, err)
		}
	}
	return nil
}

// measure measures one size, and prints its table.
func (b *bench) measure(ctx context.Context, s size) (err error) {
	w := &world{bench: b, size: s}
	defer func() { err = errors.Join(err, w.stop()) }()
	if err := w.start(ctx); err != nil {
		return err
	}
	defer func() { // after an error, with the figures so far
		fmt.Printf("\n%d tracked Pods of %d workloads, %d other Pods:\n\n%s", s.tracked, len(w.population.tracked), s.untracked, &w.table)
	}()
	w.table.columns = append(append(w.table.columns, b.protocols...), columnInformers, columnMetadata, columnPosts, columnForward)
	if err := w.population.resetEvents(ctx); err != nil {
		return err
	}
	for _, metadataOnly := range []bool{true, false} {
		if err := w.measureInformers(ctx, metadataOnly); err != nil {
			return err
		}
	}
	if err := w.measureFloors(ctx); err != nil {
		return fmt.Errorf("floors of delivery: %w", err)
	}
	for _, protocol := range b.protocols {
		if err := w.measureAgent(ctx, protocol); err != nil {
			return fmt.Errorf("%s: %w", protocol, err)
		}
	}
	return nil
}

// world is a cluster of one size.
type world struct {
	*bench
	size       size
	table      table
	cluster    *cluster.Cluster
	client     kubernetes.Interface
	etcd       *etcd.Client
	kubeconfig string // of the agent's user
	population *population
}

func (w *world) start(ctx context.Context) error {
	progress("cluster with %s Pods", w.size)
	var err error
	if w.cluster, err = cluster.Start(ctx, cluster.Options{Components: cluster.APIOnly(), Log: os.Stderr}); err != nil {
		return err
	}
	if w.client, err = kubernetes.NewForConfig(w.cluster.Config()); err != nil {
		return err
	}
	if w.etcd, err = etcd.New(w.cluster.Dir()); err != nil {
		return err
	}
	installer, err := upstream.New(w.cluster.Config(), upstream.API{})
	if err != nil {
		return err
	}
	if err = installer.Install(ctx, ".", agentUser); err != nil {
		return err
	}
	secrets, err := installer.InstallComponent(ctx, ".", "secrets")
	if err != nil {
		return err
	}
	if err = installer.Grant(ctx, secrets, agentUser); err != nil { // no controller adds its rules to those of the agent
		return err
	}
	if w.kubeconfig, _, err = w.cluster.User(agentUser); err != nil {
		return err
	}
	begin := time.Now()
	w.population, err = populate(ctx, w.etcd, w.size)
	progress("populated in %s", time.Since(begin).Round(time.Second))
	return err
}

func (w *world) stop() error {
	if w.etcd != nil {
		w.etcd.Close()
	}
	if w.cluster == nil {
		return nil
	}
	return w.cluster.Stop()
}

// measureInformers measures the floor of memory: a process of bare informers.
func (w *world) measureInformers(ctx context.Context, metadataOnly bool) error {
	column := columnInformers
	args := []string{informersCommand, "--kubeconfig=" + w.cluster.Kubeconfig()}
	if metadataOnly {
		column = columnMetadata
		args = append(args, "--metadata")
	}
	progress("%s", column)
	before, err := w.serverMemory(ctx)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p, err := process.Start(self, []string{"GODEBUG=gctrace=1"}, args)
	if err != nil {
		return err
	}
	defer p.Kill()
	begin := time.Now()
	if _, err := p.WaitFor(ctx, syncedText); err != nil {
		return err
	}
	w.table.set("first start", "s", column, time.Since(begin).Seconds())
	if err := w.recordMemory(ctx, "after the first start", column, p); err != nil {
		return err
	}
	if err := w.recordServer(ctx, column, before); err != nil {
		return err
	}
	used, err := usageOf(p)
	w.table.set("read from the API server at the first start", "MB", column, float64(used.read)/1e6)
	return err
}

// recordMemory records the memory of an idle process, its largest so far and the heap after the last collection. Then it
// resets the largest.
func (w *world) recordMemory(ctx context.Context, when, column string, p *process.Process) error {
	peak, err := process.PeakResidentBytes(p.PID())
	if err != nil {
		return err
	}
	resident, err := medianMemory(ctx, p.PID())
	if err != nil {
		return err
	}
	live, err := liveHeap(p)
	if err != nil {
		return err
	}
	w.table.set("resident "+when, "MB", column, resident)
	w.table.set("largest resident until then, "+when, "MB", column, float64(peak)/1e6)
	w.table.set("live heap "+when, "MB", column, live)
	return process.ResetPeak(p.PID())
}

// serverMemory returns the resident memory of the API server in MB.
func (w *world) serverMemory(ctx context.Context) (float64, error) {
	return medianMemory(ctx, w.cluster.PID(cluster.APIServer))
}

// recordServer records by how much the API server has grown.
func (w *world) recordServer(ctx context.Context, column string, before float64) error {
	after, err := w.serverMemory(ctx)
	w.table.set("growth of the API server", "MB", column, after-before)
	return err
}

// medianMemory returns the resident memory of a process in MB, as the median of readings in five seconds.
func medianMemory(ctx context.Context, pid int) (float64, error) {
	return figures.MedianMemory(ctx, pid, 11, 500*time.Millisecond)
}

func (b *bench) file(name string) string { return filepath.Join(b.dir, name) }

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}
