package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// link is a TCP proxy between the agent and a server that injects network faults.
type link struct {
	*toxiproxy.Proxy
	*testing.T
}

// newLink returns a link to a server with an address host:port.
func newLink(w *world.World, name, server string) *link {
	w.Helper()
	log := zerolog.Nop()
	p := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), log), name, w.FreeAddress(), server)
	l := &link{p, w.T}
	l.up()
	w.Cleanup(p.Stop)
	return l
}

// down closes all connections and stops listening.
func (l *link) down() {
	l.Helper()
	l.Stop()
}

// up listens again, on the same port. It retries: a child process that another test starts at this moment may have inherited
// the closed listener, and keeps the port until it executes its program.
func (l *link) up() {
	l.Helper()
	var last error
	err := wait.PollUntilContextTimeout(l.Context(), time.Millisecond, world.Timeout, true, func(context.Context) (bool, error) {
		last = l.Start()
		return !errors.Is(last, syscall.EADDRINUSE), nil
	})
	if err = cmp.Or(last, err); err != nil {
		l.Fatalf("bring the link to %s up: %v", l.Name, err)
	}
}

// cut closes all connections once.
func (l *link) cut() {
	l.down()
	l.up()
}

// impair injects a fault, such as "latency", in both directions until the returned function is called. The attributes are
// those of the toxic.
func (l *link) impair(kind, attributes string) (restore func()) {
	l.Helper()
	for _, stream := range []string{"upstream", "downstream"} {
		text := fmt.Sprintf(`{"type":%q,"name":%q,"stream":%q,"attributes":%s}`, kind, stream, stream, attributes)
		if _, err := l.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
			l.Fatalf("impair the link to %s with %s: %v", l.Name, text, err)
		}
	}
	return func() { l.Toxics.ResetToxics(l.Context()) }
}

// relay forwards connections to a server, and can freeze the existing ones: they stay open but transfer no data, as if a
// router had dropped their state. New connections work.
type relay struct {
	address string
	server  string
	// frozen is for new connections. The channel is closed when they freeze.
	frozen atomic.Pointer[chan struct{}]

	mu    sync.Mutex
	conns []net.Conn
	done  sync.WaitGroup
}

func newRelay(t *testing.T, server string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at the end
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{address: listener.Addr().String(), server: server}
	r.frozen.Store(new(make(chan struct{})))
	r.done.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r.connect(conn)
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		r.mu.Lock()
		for _, conn := range r.conns {
			_ = conn.Close()
		}
		r.mu.Unlock()
		r.done.Wait()
	})
	return r
}

func (r *relay) connect(client net.Conn) {
	server, err := net.Dial("tcp", r.server) //nolint:noctx // on loopback
	if err != nil {
		_ = client.Close()
		return
	}
	r.mu.Lock()
	r.conns = append(r.conns, client, server)
	r.mu.Unlock()
	frozen := *r.frozen.Load()
	r.done.Go(func() { pass(server, client, frozen) })
	r.done.Go(func() { pass(client, server, frozen) })
}

// pass copies one direction until it ends or freezes. After a freeze it reads and discards the data, so that the sender notices
// nothing.
func pass(to, from net.Conn, frozen <-chan struct{}) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-frozen:
			_, _ = io.Copy(io.Discard, from)
			return // without closing anything
		default:
		}
		if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil {
			_ = to.Close()
			_ = from.Close()
			return
		}
	}
}

// freeze freezes the existing connections.
func (r *relay) freeze() {
	close(*r.frozen.Swap(new(make(chan struct{}))))
}
