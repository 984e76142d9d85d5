package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/threeport/threeport-agent/internal/server/auth"
)

// The bounds of the connections of one replica. Each takes about 40 KiB, and up to 100 KiB while it receives headers.
const (
	// maxUnauthenticatedConnections bounds the connections on which no request was authenticated yet.
	maxUnauthenticatedConnections = 512
	// maxUnauthenticatedConnectionsPerAddress is the share of an address. It counts only while all unauthenticated connections are in use,
	// because all clients may come from the address of a load balancer.
	maxUnauthenticatedConnectionsPerAddress = maxUnauthenticatedConnections / 8

	// maxAuthenticated bounds the others. The people and programs of a role other than the agents have a quarter of them.
	maxAuthenticated         = 4096
	maxAuthenticatedPerRole  = maxAuthenticated / 4
	maxAuthenticatedPerAgent = 64 // of the agents of one cluster
)

// unauthenticatedDrain is how long connections without an authenticated request stay open when the server stops. It is enough for one
// request. A client may hold such a connection without a request, or until its pause ends, and the stop would wait for it.
const unauthenticatedDrain = 2 * time.Second

// connections counts the open connections and bounds those without an authenticated request. When one more arrives, the oldest one is
// closed. So others can connect while an attacker holds connections: the first authenticated request makes a connection safe. A
// connection beyond the bounds of authenticated ones is served too, but counts as unauthenticated. It is safe for concurrent use.
type connections struct {
	perPerson int            // authenticated connections of a viewer or an administrator
	proxies   []netip.Prefix // their connections have the requests of many clients
	closed    prometheus.Counter

	mu              sync.Mutex
	unauthenticated *list.List // of *connection, the oldest first
	byAddress       map[string]int
	authenticated   int
	byRole          map[auth.Role]int
	bySender        map[string]int
	overheads       map[string]*senderOverhead // by the name of the sender
}

// senderOverhead is that of the open connections of a sender, also of those beyond the bounds.
type senderOverhead struct {
	*overhead
	connections int
}

// newConnections permits a viewer or an administrator this many authenticated connections. A watch over HTTP/1.1 takes one. Connections
// of trusted proxies never pause.
func newConnections(perPerson int, proxies []netip.Prefix) *connections {
	return &connections{
		perPerson: perPerson, proxies: proxies,
		closed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "controlplane_connections_closed_total", Help: "Connections without an authenticated request that were closed because there were too many.",
		}),
		unauthenticated: list.New(),
		byAddress:       map[string]int{}, byRole: map[auth.Role]int{}, bySender: map[string]int{},
		overheads: map[string]*senderOverhead{},
	}
}

// connection is an open connection. Its place and sender are guarded by the mutex of connections.
type connection struct {
	net.Conn
	of      *connections
	address string
	refused *refused // nil for those of a trusted proxy

	place  *list.Element // among the unauthenticated ones; nil for others
	sender *sender       // that authenticated first; nil for others

	isAuthenticated atomic.Bool // for a check without the mutex

	isHTTP1   atomic.Bool  // it had a request of HTTP/1.1, so that it never has one of HTTP/2
	handshake atomic.Int64 // the bytes that the client may still send in the TLS handshake; 0 after it

	records tlsRecords // that Read has begun

	overhead atomic.Pointer[overhead]
	shares   *senderOverhead // the overhead of its sender; nil without an authenticated request. Guarded by the mutex of connections.
	done     chan struct{}   // closed with the connection
	isClosed bool            // guarded by the mutex of connections
}

// listen returns a listener whose connections are counted.
func (c *connections) listen(on net.Listener) net.Listener { return &countingListener{on, c} }

type countingListener struct {
	net.Listener
	connections *connections
}

func (l *countingListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err // net/http knows it
	}
	return l.connections.add(accepted), nil
}

// add counts a new connection, and closes another one if there are too many.
func (c *connections) add(accepted net.Conn) *connection {
	peer := accepted.RemoteAddr().String()
	added := &connection{
		Conn: accepted, of: c, address: auth.ClientAddress(peer), done: make(chan struct{}),
	}
	added.overhead.Store(newOverhead(time.Now()))
	if at, err := netip.ParseAddrPort(peer); err != nil || !isTrusted(at.Addr(), c.proxies) {
		added.refused = newRefused()
	}
	added.handshake.Store(maxHandshakeBytes)
	c.mu.Lock()
	surplus := c.surplus(added.address)
	added.place = c.unauthenticated.PushBack(added)
	c.byAddress[added.address]++
	c.mu.Unlock()
	if surplus != nil {
		c.closed.Inc()
		_ = surplus.Close() // its goroutine ends with any error
	}
	return added
}

// surplus is the connection to close for another one of this address: the oldest of the address if it has more than its share, and
// else the oldest of all. It is nil if there are few.
func (c *connections) surplus(address string) *connection {
	if c.unauthenticated.Len() < maxUnauthenticatedConnections {
		return nil
	}
	hasShare := c.byAddress[address] >= maxUnauthenticatedConnectionsPerAddress
	for place := c.unauthenticated.Front(); place != nil; place = place.Next() {
		if oldest, _ := place.Value.(*connection); !hasShare || oldest.address == address {
			c.forget(oldest)
			return oldest
		}
	}
	return nil
}

// authenticate moves a connection to the authenticated ones, unless there are too many of them.
func (c *connections) authenticate(opened *connection, by sender) {
	if opened.isAuthenticated.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.share(opened, by)
	if opened.place == nil || c.authenticated >= maxAuthenticated {
		return // it was closed, or authenticated meanwhile
	}
	if by.role == auth.RoleAgent {
		if c.bySender[by.name] >= maxAuthenticatedPerAgent {
			return
		}
	} else if c.bySender[by.name] >= c.perPerson || c.byRole[by.role] >= maxAuthenticatedPerRole {
		return
	}
	c.forget(opened)
	opened.sender = &by
	opened.isAuthenticated.Store(true)
	c.authenticated++
	c.byRole[by.role]++
	c.bySender[by.name]++
}

// share lets a connection use the overhead of its sender, with the mutex held. An overhead is kept until it is full again, so that a sender
// gains nothing by new connections.
func (c *connections) share(opened *connection, by sender) {
	if opened.shares != nil || opened.isClosed {
		return
	}
	of := c.overheads[by.name]
	if of == nil {
		now := time.Now()
		for name, other := range c.overheads {
			if other.connections == 0 && other.isFull(now) {
				delete(c.overheads, name)
			}
		}
		of = &senderOverhead{overhead: newSharedOverhead(now)}
		c.overheads[by.name] = of
	}
	of.connections++
	opened.shares = of
	opened.overhead.Store(of.overhead)
}

// crowd is how many times few connections are among those without an authenticated request, and at least 1. Each of them has that part of a
// rate, so together they have about the rate of few.
func (c *connections) crowd(few int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(1, c.unauthenticated.Len()/few)
}

// ofPerson is the number of the authenticated connections of the same person; 0 for other connections.
func (c *connections) ofPerson(opened *connection) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if by := opened.sender; by != nil && by.role != auth.RoleAgent {
		return c.bySender[by.name]
	}
	return 0
}

// drain closes the connections on which no request was authenticated within unauthenticatedDrain.
func (c *connections) drain() {
	time.AfterFunc(unauthenticatedDrain, func() {
		c.mu.Lock()
		var open []*connection
		for place := c.unauthenticated.Front(); place != nil; place = place.Next() {
			opened, _ := place.Value.(*connection)
			open = append(open, opened)
		}
		c.mu.Unlock()
		for _, opened := range open {
			_ = opened.Close() // its goroutine ends with any error
		}
	})
}

// forget stops counting a connection. It may be called more than once.
func (c *connections) forget(opened *connection) {
	switch {
	case opened.place != nil:
		c.unauthenticated.Remove(opened.place)
		opened.place = nil
		decrement(c.byAddress, opened.address)
	case opened.sender != nil:
		c.authenticated--
		decrement(c.byRole, opened.sender.role)
		decrement(c.bySender, opened.sender.name)
		opened.sender = nil
	}
}

func decrement[K comparable](counts map[K]int, key K) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}

// Close closes the connection. It may be called more than once.
func (c *connection) Close() error {
	c.of.mu.Lock()
	c.of.forget(c)
	if !c.isClosed {
		c.isClosed = true
		close(c.done)
		if c.shares != nil {
			c.shares.connections--
		}
	}
	c.of.mu.Unlock()
	return c.Conn.Close()
}

type connectionKey struct{}

// withConnection makes a connection known to its requests. It is the ConnContext of an [http.Server].
func withConnection(ctx context.Context, opened net.Conn) context.Context {
	if secured, ok := opened.(*tls.Conn); ok {
		opened = secured.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, opened)
}

// handler authenticates the connections of requests that have a principal.
func (c *connections) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		opened, ok := req.Context().Value(connectionKey{}).(*connection)
		if by := senderOf(req); by.role != "" {
			requestInfoOf(req.Context()).authorized = true
			if ok {
				c.authenticate(opened, by)
			}
		}
		next.ServeHTTP(w, req)
	})
}

// collectors are the metrics of the connections.
func (c *connections) collectors() []prometheus.Collector {
	gauge := func(authenticated string, count func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "controlplane_connections", Help: "Open connections, by whether a request on them was authenticated.",
			ConstLabels: prometheus.Labels{"authenticated": authenticated},
		}, func() float64 {
			c.mu.Lock()
			defer c.mu.Unlock()
			return float64(count())
		})
	}
	return []prometheus.Collector{
		c.closed,
		gauge("true", func() int { return c.authenticated }),
		gauge("false", c.unauthenticated.Len),
	}
}
