package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The limit and the interval of waiting for a component.
const (
	readyTimeout = 3 * time.Minute
	readyPoll    = 50 * time.Millisecond
)

// nodeEndTimeout limits the time between the end of a process in the node and that of the node.
const nodeEndTimeout = 500 * time.Millisecond

// errStopped is the error of methods of a stopped cluster.
var errStopped = errors.New("the cluster is stopped")

// Kill sends SIGKILL to a component, and waits for its end. The other components keep running, and Done stays open. Restart starts
// the component again.
func (c *Cluster) Kill(component Component) error {
	p := c.process(component)
	if p == nil {
		return fmt.Errorf("kill %s: this cluster runs only %s", component, join(c.Components()))
	}
	p.stop(0)
	return nil
}

// Restart starts a component again on the same port and with the same storage. It stops a running component with SIGTERM; call Kill before
// for a crash. Restart waits until etcd, the API server or containerd answers; ctx limits the wait. For other components, it may return
// before they work, because the API still has the state from before the end.
func (c *Cluster) Restart(ctx context.Context, component Component) error {
	p := c.process(component)
	if p == nil {
		return fmt.Errorf("restart %s: this cluster runs only %s", component, join(c.Components()))
	}
	p.stop(stopGrace)
	return c.launchAndAwait(ctx, component)
}

// launch starts the process of a component, and watches for its end.
func (c *Cluster) launch(ctx context.Context, component Component) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.done:
		return errors.Join(errStopped, c.err)
	default:
	}
	log := c.dir.file(string(component) + ".log")
	start := startSpec{component: component, path: c.binaries[component], args: c.args(component), dir: c.dir.path, logFile: log}
	start.ownNamespaces = component == nodeInit
	if c.runsInNode(component) {
		start.namespacesOf = c.processes[nodeInit].pid
	}
	p, err := startProcess(ctx, start)
	if err != nil {
		return err
	}
	c.processes[component] = p
	c.watchers.Go(func() {
		<-p.exited
		if c.runsInNode(component) && c.nodeEnds() {
			return // it was killed with the node, and the node reports the cause
		}
		if !p.expected.Load() {
			c.fail(p.deathError())
		}
	})
	return nil
}

func (c *Cluster) launchAndAwait(ctx context.Context, component Component) error {
	if err := c.launch(ctx, component); err != nil {
		return err
	}
	return c.awaitReady(ctx, component)
}

func (c *Cluster) runsInNode(component Component) bool {
	return component == Containerd || component == Kubelet
}

// nodeEnds waits shortly for the end of the node's first process, and reports whether it has ended.
func (c *Cluster) nodeEnds() bool {
	node := c.process(nodeInit)
	timer := time.NewTimer(nodeEndTimeout)
	defer timer.Stop()
	select {
	case <-node.exited:
		return true
	case <-timer.C:
		return false
	}
}

// awaitReady waits until a component is ready.
func (c *Cluster) awaitReady(ctx context.Context, component Component) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		err := c.ready(ctx, component)
		if err == nil {
			return nil
		}
		select {
		case <-c.done:
			return errors.Join(errStopped, c.Err())
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; last: %w; the end of its log:\n%s",
				component, ctx.Err(), err, tail(c.dir.file(string(component)+".log"), tailLines))
		case <-ticker.C:
		}
	}
}

// ready returns nil if a component is ready. Components without a server are checked by their effects in the API.
func (c *Cluster) ready(ctx context.Context, component Component) error {
	switch component {
	case Etcd:
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address(c.ports.etcd))
		if err != nil {
			return fmt.Errorf("connect to etcd: %w", err)
		}
		return conn.Close()
	case APIServer:
		return c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	case ControllerManager:
		_, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	case Kwok:
		if !slices.Contains(c.options.Components, ControllerManager) {
			return nil // without it, new nodes keep their taint
		}
		return nodesReady(ctx, c.client, c.options.Nodes)
	case nodeInit:
		return c.nodeInitReady()
	case Containerd:
		return c.containerdReady(ctx)
	case Kubelet:
		return c.realNodeReady(ctx)
	case Scheduler, Kubectl, ctr:
		// A scheduler affects only pods, so there is no check. Its death closes Done.
	}
	return nil
}
