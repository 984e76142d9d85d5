package process

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"
)

// The ports are below those of outgoing connections and of a cluster's components, so a port stays free while no server of a
// test listens on it.
const (
	firstPort = 10000
	lastPort  = 20000
)

var given sync.Map // ports

// FreeAddress returns a loopback address, as host:port, without a listener. It returns each address only once, so that a
// server can stop and start again on it. It tests a port by connecting, not by listening: a child process that starts at
// that moment would inherit the listener and keep the port for a while.
func FreeAddress() (string, error) {
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort) //nolint:gosec // no secret
		if _, again := given.LoadOrStore(port, true); again {
			continue
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		conn, err := net.Dial("tcp", address) //nolint:noctx // immediate on loopback
		if errors.Is(err, syscall.ECONNREFUSED) {
			return address, nil
		}
		if err == nil {
			_ = conn.Close()
		}
	}
	return "", errors.New("found no free port from 10000 to 20000")
}
