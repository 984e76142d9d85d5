package reporter

import (
	"context"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/threeport/threeport-agent/internal/agent/informers"
)

// relay forwards TCP connections. Frozen connections stay open and forward nothing.
type relay struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
	ice   chan struct{} // closed when the open connections are frozen
	over  chan struct{} // closed when the test ends
	ends  sync.WaitGroup
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: listener, ice: make(chan struct{}), over: make(chan struct{})}
	r.ends.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := new(net.Dialer).DialContext(context.WithoutCancel(t.Context()), "tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			r.mu.Lock()
			r.conns = append(r.conns, client, server)
			ice := r.ice
			r.mu.Unlock()
			r.ends.Go(func() { r.pass(server, client, ice) })
			r.ends.Go(func() { r.pass(client, server, ice) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		close(r.over)
		r.mu.Lock()
		for _, c := range r.conns {
			_ = c.Close()
		}
		r.mu.Unlock()
		r.ends.Wait()
	})
	return r
}

func (r *relay) pass(to, from net.Conn, ice <-chan struct{}) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-ice:
			<-r.over // the end of the connection is not forwarded either
			return
		default:
		}
		if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil {
			_ = to.Close()
			_ = from.Close()
			return
		}
	}
}

// freeze freezes the open connections, and returns their number.
func (r *relay) freeze() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.ice)
	r.ice = make(chan struct{})
	return len(r.conns) / 2
}

// Changes after a connection became half open are seen within the time that NewClients documents, through each of the
// clients.
func TestClients_HalfOpenConnection_IsClosed(t *testing.T) {
	t.Parallel()
	const bound, slack = 45 * time.Second, 15 * time.Second // client-go waits before it reconnects
	w := newIdleWorld(t, shared.reader, quick())
	address, err := url.Parse(shared.reader.Host)
	w.must(err)
	r := newRelay(t, address.Host)
	config := rest.CopyConfig(shared.reader)
	config.Host = "https://" + r.Addr().String()
	clients, err := informers.NewClients(config)
	w.must(err)
	w.reporter.close()
	w.reporter = New(quick(), clients, w.targets, w.sink, nil, NewMetrics(prometheus.NewRegistry()), logr.Discard(), func(string) {})
	w.run()
	objects := map[string]string{
		"v1 ConfigMap a":       configMap("a"),                                                       // dynamic client
		"v1 Pod a":             pod("a"),                                                             // typed client
		"apps/v1 ReplicaSet a": replicaSet("a"),                                                      // metadata client
		"v1 Secret a":          "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: NS}}", // transport for Secrets
	}
	var resources []string
	for resource, manifest := range objects {
		w.create(manifest)
		resources = append(resources, resource)
	}
	wl := w.track("wl", resources...)
	for i := range wl.Resources {
		w.expectLives(wl.Resources[i].Ref, "[1]")
	}
	w.awaitSync()
	conns := r.freeze()
	begin := time.Now()
	for _, manifest := range objects {
		w.remove(w.parse(manifest))
	}
	waiting := map[string]struct{}{}
	for i := range wl.Resources {
		waiting[wl.Resources[i].Kind] = struct{}{}
	}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for len(waiting) > 0 {
		<-ticker.C
		for _, res := range wl.Resources {
			if _, ok := waiting[res.Kind]; ok && lives(w.sink.operations(res.Ref)) == "[1 1-deleted]" {
				delete(waiting, res.Kind)
				t.Logf("the deletion of the %s was seen %s after %d connections were frozen", res.Kind, time.Since(begin).Round(100*time.Millisecond), conns)
			}
		}
		if time.Since(begin) > bound+slack {
			t.Fatalf("the deletions of %v were not seen within %s", waiting, bound+slack)
		}
	}
}
