package endpoints

import (
	"container/list"
	"net"
	"sync"
)

// boundedListener bounds the open connections. When one more arrives, it closes the oldest one. So a client that holds many
// connections does not keep others out, such as the kubelet, whose probes take milliseconds.
type boundedListener struct {
	net.Listener
	most int

	mu   sync.Mutex
	open *list.List // of *boundedConn, the oldest first
}

func newBoundedListener(l net.Listener, most int) *boundedListener {
	return &boundedListener{Listener: l, most: most, open: list.New()}
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
	if l.open.Len() >= l.most {
		oldest = l.open.Front().Value.(*boundedConn)
	}
	conn.place = l.open.PushBack(conn)
	return oldest
}

func (l *boundedListener) remove(place *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open.Remove(place)
}

// boundedConn is a connection of a boundedListener.
type boundedConn struct {
	net.Conn
	listener *boundedListener
	place    *list.Element
	once     sync.Once
}

// Close closes the connection, so that another one may open.
func (c *boundedConn) Close() error {
	c.once.Do(func() { c.listener.remove(c.place) })
	return c.Conn.Close()
}
