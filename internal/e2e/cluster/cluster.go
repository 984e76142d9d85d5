package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/threeport/threeport-agent/internal/testing/certs"
)

// portAttempts limits the attempts of Start with other ports after a port was in use.
const portAttempts = 5

// Cluster is a running control plane. See the package's documentation for its lifecycle.
type Cluster struct {
	options   Options
	binaries  Binaries
	dir       *runDir
	ports     ports
	authority *certs.Authority
	admin     certs.KeyPair
	client    kubernetes.Interface

	mu        sync.Mutex // guards processes and err
	processes map[Component]*process
	err       error

	machine machine // of the real node
	tunnels tunnels

	done     chan struct{} // closed once, by fail or Stop
	doneOnce sync.Once
	watchers sync.WaitGroup // a goroutine per process ever started
	stopOnce sync.Once
	stopErr  error
}

// Start starts a control plane and waits until it is ready: the API serves, and, depending on the components, default
// ServiceAccounts exist and the nodes are Ready.
//
// It builds missing binaries, see FindBinaries. ctx limits only the start: the cluster runs until Stop. After an error nothing
// is left behind, and the error contains the last log lines of the failed component.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	options = options.withDefaults()
	wanted := slices.Clone(options.Components)
	var m machine
	if options.RealNode {
		var err error
		if m, err = findMachine(); err != nil {
			return nil, err
		}
		wanted = append(wanted, Kubelet)
	}
	binaries, err := FindBinaries(ctx, options.Log, wanted...)
	if err != nil {
		return nil, fmt.Errorf("find the control plane's binaries: %w", err)
	}
	binaries[Containerd], binaries[ctr] = m.containerd, m.ctr
	for attempt := 1; ; attempt++ {
		c, err := start(ctx, options, binaries, m)
		if err == nil {
			return c, nil
		}
		death, ok := errors.AsType[*deathError](err)
		if !ok || !death.portTaken() || attempt == portAttempts {
			return nil, fmt.Errorf("start control plane: %w", err)
		}
		_, _ = fmt.Fprintf(options.Log, "a port of %s was taken meanwhile, trying others\n", death.component)
	}
}

func start(ctx context.Context, options Options, binaries Binaries, m machine) (*Cluster, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	dir, err := newRunDir(ctx, filepath.Join(cache, "run"))
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		options:   options,
		binaries:  binaries,
		machine:   m,
		dir:       dir,
		processes: map[Component]*process{},
		done:      make(chan struct{}),
	}
	c.binaries[nodeInit] = dir.file("nodeinit") // built by buildNode
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	free, err := freePorts(ctx, 3)
	if err != nil {
		return err
	}
	c.ports = ports{etcd: free[0], etcdPeer: free[1], api: free[2]}
	if c.authority, err = certs.NewAuthority("threeport-local"); err != nil {
		return err
	}
	if c.admin, err = c.authority.Client("admin", "system:masters"); err != nil {
		return err
	}
	if c.client, err = kubernetes.NewForConfig(c.Config()); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	if err := c.writeFiles(); err != nil {
		return err
	}
	begin := time.Now()
	for _, component := range []Component{Etcd, APIServer} {
		if err := c.launch(ctx, component); err != nil {
			return err
		}
		if err := c.awaitReady(ctx, component); err != nil {
			return err
		}
	}
	version, err := discovery.ToServerVersionInterfaceWithContext(c.client.Discovery()).ServerVersionWithContext(ctx)
	if err != nil {
		return fmt.Errorf("get version of API server: %w", err)
	}
	_, _ = fmt.Fprintf(c.options.Log, "API server %s is ready at https://%s after %s\n", version.GitVersion, address(c.ports.api), since(begin))
	return c.startRest(ctx, begin)
}

// startRest starts all components that need a ready API server, in parallel.
func (c *Cluster) startRest(ctx context.Context, begin time.Time) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.startComponents(ctx, begin) })
	if c.options.RealNode {
		group.Go(func() error {
			if err := c.startNode(ctx); err != nil {
				return err
			}
			_, _ = fmt.Fprintf(c.options.Log, "%s is ready after %s\n", RealNodeName, since(begin))
			return nil
		})
	}
	return group.Wait()
}

func (c *Cluster) startComponents(ctx context.Context, begin time.Time) error {
	rest := c.options.Components[2:]
	if len(rest) == 0 {
		return nil
	}
	for _, component := range rest {
		if err := c.launch(ctx, component); err != nil {
			return err
		}
	}
	var taints []corev1.Taint
	if c.options.RealNode {
		taints = []corev1.Taint{fakeTaint}
	}
	if err := createNodes(ctx, c.client, c.options.Nodes, taints...); err != nil {
		return err
	}
	for _, component := range rest {
		if err := c.awaitReady(ctx, component); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(c.options.Log, "%s and %d nodes are ready after %s\n", join(rest), max(0, c.options.Nodes), since(begin))
	return nil
}

func since(begin time.Time) time.Duration {
	return time.Since(begin).Round(100 * time.Millisecond)
}

// Config returns a copy of the client configuration of the administrator (system:masters), with a high rate limit.
func (c *Cluster) Config() *rest.Config {
	return c.clientConfig(c.admin)
}

// Kubeconfig is the path of the administrator's kubeconfig. Stop removes it.
func (c *Cluster) Kubeconfig() string {
	return c.dir.file("admin.kubeconfig")
}

// Dir is the run directory, with a COMPONENT.log of each component. Stop removes it.
func (c *Cluster) Dir() string {
	return c.dir.path
}

// Done is closed when a component has died or Stop was called.
func (c *Cluster) Done() <-chan struct{} {
	return c.done
}

// Err returns the death of a component with the last lines of its log, or nil.
func (c *Cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Stop stops all components, those with clients last, and removes the run directory. It kills a component that does not end
// within 3 s. Further calls return the same result.
func (c *Cluster) Stop() error {
	c.stopOnce.Do(func() {
		c.finish()
		stages := [][]Component{{Kwok, Scheduler, ControllerManager, Kubelet}, {Containerd}, {nodeInit}, {APIServer}, {Etcd}}
		tunnelsErr := c.tunnels.close()
		for _, stage := range stages {
			var group sync.WaitGroup
			for _, component := range stage {
				if p := c.process(component); p != nil {
					group.Go(func() { p.stop(stopGrace) })
				}
			}
			group.Wait()
		}
		c.watchers.Wait()
		c.stopErr = errors.Join(tunnelsErr, c.dir.remove())
	})
	return c.stopErr
}

// process returns the latest process of a component, or nil.
func (c *Cluster) process(component Component) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.processes[component]
}

// Components returns the components of the cluster, in the order of their start.
func (c *Cluster) Components() []Component {
	components := slices.Clone(c.options.Components)
	if c.options.RealNode {
		components = append(components, nodeInit, Containerd, Kubelet)
	}
	return components
}

// PID is the process ID of a component, 0 if it does not run.
func (c *Cluster) PID(component Component) int {
	p := c.process(component)
	if p == nil || !p.alive() {
		return 0
	}
	return p.pid
}

// fail records the first component that died.
func (c *Cluster) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	c.finish()
}

func (c *Cluster) finish() {
	c.doneOnce.Do(func() { close(c.done) })
}
