package process

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"
)

// The ports lie below those that an outgoing connection gets, and those of a cluster's components: one stays free
// while nothing listens on it.
const (
	firstPort = 10000
	lastPort  = 20000
)

var given sync.Map // ports

// FreeAddress returns a loopback address, as host:port, that nothing listens on. It gives each once, so that a server
// can go and come back. It asks by a connection: a child that is started meanwhile has a copy of every listener until
// it runs its program, and would hold the port a little longer.
func FreeAddress() (string, error) {
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort) //nolint:gosec // no secret
		if _, again := given.LoadOrStore(port, true); again {
			continue
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		conn, err := net.Dial("tcp", address) //nolint:noctx // loopback answers at once
		if errors.Is(err, syscall.ECONNREFUSED) {
			return address, nil
		}
		if err == nil {
			_ = conn.Close()
		}
	}
	return "", errors.New("found no free port from 10000 to 20000")
}
