package endpoints

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// boundedListener bounds the open connections. When one more arrives, it closes the oldest one that waits for a request. So a client
// that holds or opens many connections does not keep others out. The probes of the kubelet take milliseconds, and no answer to a scrape
// is interrupted.
type boundedListener struct {
	net.Listener
	most int

	mu sync.Mutex
	// Both have *boundedConn, the oldest first.
	waiting, answering *list.List
}

func newBoundedListener(l net.Listener, most int) *boundedListener {
	return &boundedListener{Listener: l, most: most, waiting: list.New(), answering: list.New()}
}

// Accept waits for a connection.
func (l *boundedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	accepted := &boundedConn{Conn: conn, listener: l}
	if oldest := l.add(accepted); oldest != nil {
		_ = oldest.Close()
	}
	return accepted, nil
}

// add records a connection, and returns the one to close.
func (l *boundedListener) add(conn *boundedConn) (oldest *boundedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting.Len()+l.answering.Len() >= l.most {
		first := l.waiting.Front()
		if first == nil {
			first = l.answering.Front()
		}
		oldest = first.Value.(*boundedConn)
	}
	conn.in, conn.place = l.waiting, l.waiting.PushBack(conn)
	return oldest
}

// move puts an open connection at the end of a list, or in none.
func (l *boundedListener) move(conn *boundedConn, to *list.List) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if conn.in == nil {
		return
	}
	conn.in.Remove(conn.place)
	if conn.in = to; to != nil {
		conn.place = to.PushBack(conn)
	}
}

// boundedConn is a connection of a boundedListener, in one of its lists while it is open.
type boundedConn struct {
	net.Conn
	listener *boundedListener
	in       *list.List // nil after Close
	place    *list.Element
}

// Close closes the connection, so that another one may open.
func (c *boundedConn) Close() error {
	c.listener.move(c, nil)
	return c.Conn.Close()
}

// connKey is the context key of the connection of a request.
type connKey struct{}

// withConn adds the connection to the context of its requests.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	return context.WithValue(ctx, connKey{}, conn)
}

// markAnswers marks the connection of a request until its answer is written.
func markAnswers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, ok := r.Context().Value(connKey{}).(*boundedConn); ok {
			conn.listener.move(conn, conn.listener.answering)
			defer conn.listener.move(conn, conn.listener.waiting)
		}
		next.ServeHTTP(w, r)
	})
}
