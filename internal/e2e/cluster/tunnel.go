package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"sync"
	"time"
)

// The network of the real node is isolated: it has no route to other networks. A tunnel accepts a connection on one side,
// makes one on the other side, and copies the data.

// tunnelTimeout is how long making such a connection may take.
const tunnelTimeout = 10 * time.Second

// Publish makes target, a TCP address on this machine such as 127.0.0.1:1323, a service of the real node. Programs there
// reach it at service, an IP address of the cluster's services (10.96.0.0/16) and a port. It ends with Stop.
func (c *Cluster) Publish(ctx context.Context, service, target string) error {
	return c.PublishDial(ctx, service, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{Timeout: tunnelTimeout}).DialContext(ctx, "tcp", target)
	})
}

// PublishDial is Publish with a function that connects to the target. With [Cluster.DialNode] that is a pod: no kube-proxy runs.
func (c *Cluster) PublishDial(ctx context.Context, service string, dial func(context.Context) (net.Conn, error)) error {
	var listener net.Listener
	err := c.inNodeNetwork(func() (err error) {
		listener, err = new(net.ListenConfig).Listen(ctx, "tcp", service)
		return err
	})
	if err != nil {
		return fmt.Errorf("publish %s: %w", service, err)
	}
	c.tunnels.add(listener)
	c.watchers.Go(func() {
		for {
			inside, err := listener.Accept()
			if err != nil {
				return // closed by Stop
			}
			c.watchers.Go(func() {
				outside, err := dial(context.WithoutCancel(ctx))
				if err != nil {
					_ = inside.Close() // as without a listener
					return
				}
				c.tunnels.join(inside, outside)
			})
		}
	})
	return nil
}

// Proxy starts an HTTP proxy on a loopback address of this machine, and returns the address. With the method CONNECT, programs of this
// machine reach addresses in the node's network, such as those of pods. It ends with Stop.
func (c *Cluster) Proxy(ctx context.Context) (address string, err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for connections to the node: %w", err)
	}
	c.serveConnect(listener)
	return listener.Addr().String(), nil
}

// CutConnections closes the connections between the node and this machine, such as those of pods to the API server. New ones succeed.
func (c *Cluster) CutConnections() { c.tunnels.cut() }

// egressConfig makes the API server reach what is in the cluster, which is the kubelet, through serveEgress.
func (c *Cluster) egressConfig() string {
	return `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds: {udsName: "` + c.dir.file("egress.sock") + `"}
`
}

// serveEgress serves HTTP CONNECT on a Unix socket, and connects clients to addresses in the node's network.
//
// Source: https://kubernetes.io/docs/tasks/extend-kubernetes/setup-konnectivity/, which it replaces.
func (c *Cluster) serveEgress(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", c.dir.file("egress.sock"))
	if err != nil {
		return fmt.Errorf("listen for the API server's connections to the node: %w", err)
	}
	c.serveConnect(listener)
	return nil
}

// serveConnect serves HTTP CONNECT to the node's network.
func (c *Cluster) serveConnect(listener net.Listener) {
	server := &http.Server{Handler: http.HandlerFunc(c.connect), ReadHeaderTimeout: time.Minute}
	// The server does not report the end of a hijacked connection: connect calls Done for it.
	server.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew: // still on the goroutine of Serve
			c.watchers.Add(1)
		case http.StateClosed:
			c.watchers.Done()
		case http.StateActive, http.StateIdle, http.StateHijacked:
		}
	}
	c.tunnels.add(server)
	c.watchers.Go(func() { _ = server.Serve(listener) }) // until Stop closes the server
}

func (c *Cluster) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT is understood", http.StatusMethodNotAllowed)
		return
	}
	inside, err := c.DialNode(r.Context(), r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		_ = inside.Close()
		return
	}
	outside, _, err := hijacker.Hijack()
	if err != nil {
		_ = inside.Close()
		return
	}
	defer c.watchers.Done()
	if _, err := io.WriteString(outside, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_, _ = inside.Close(), outside.Close()
		return
	}
	c.tunnels.join(inside, outside)
}

// DialNode connects to a TCP address in the node's network, such as that of a pod.
func (c *Cluster) DialNode(ctx context.Context, address string) (conn net.Conn, err error) {
	err = c.inNodeNetwork(func() (err error) {
		conn, err = (&net.Dialer{Timeout: tunnelTimeout}).DialContext(ctx, "tcp", address)
		return err
	})
	return conn, err
}

// inNodeNetwork calls f on a thread that is in the node's network namespace. A socket that f creates stays in that
// namespace.
func (c *Cluster) inNodeNetwork(f func() error) error {
	pid, err := c.nodePID()
	if err != nil {
		return err
	}
	onOwnThread(func() {
		if err = enter(pid, networkNamespace); err == nil {
			err = f()
		}
	})
	return err
}

// runInNode runs a program in the node and returns what it printed.
func (c *Cluster) runInNode(ctx context.Context, stdin io.Reader, path string, args ...string) (string, error) {
	pid, err := c.nodePID()
	if err != nil {
		return "", err
	}
	var out []byte
	onOwnThread(func() {
		if err = enter(pid, allNamespaces); err != nil {
			return
		}
		cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // programs of the machine that findMachine found
		cmd.Dir = "/"
		cmd.Env = []string{"PATH=" + searchPath()}
		cmd.Stdin = stdin
		out, err = cmd.CombinedOutput()
	})
	return string(out), err
}

// tunnels are the open listeners and connections across the node's border.
type tunnels struct {
	mu     sync.Mutex
	open   map[io.Closer]struct{}
	closed bool
}

// add registers a closer for close. After close, it closes the closer at once.
func (t *tunnels) add(closer io.Closer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		_ = closer.Close()
		return
	}
	if t.open == nil {
		t.open = map[io.Closer]struct{}{}
	}
	t.open[closer] = struct{}{}
}

func (t *tunnels) remove(closer io.Closer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, closer)
	_ = closer.Close()
}

// close closes everything.
func (t *tunnels) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	var errs []error
	for closer := range t.open {
		if err := closer.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	t.open = nil
	return errors.Join(errs...)
}

// cut closes the connections, and no listener.
func (t *tunnels) cut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for closer := range t.open {
		if conn, ok := closer.(net.Conn); ok {
			_ = conn.Close() // join removes it
		}
	}
}

// join copies both ways until both ends have nothing more to say.
func (t *tunnels) join(a, b net.Conn) {
	t.add(a)
	t.add(b)
	defer t.remove(a)
	defer t.remove(b)
	var copies sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		copies.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			if half, ok := way[0].(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
		})
	}
	copies.Wait()
}
