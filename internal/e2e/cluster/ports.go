package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken below the range for outgoing connections, which begins at 32768 on Linux and at 49152 on darwin. So an
// outgoing connection cannot take a port between its choice and its use, or while a component restarts.
const (
	firstPort = 20000
	lastPort  = 32000
)

// loopback is the only listening address.
const loopback = "127.0.0.1"

// freePorts returns n different ports without a listener. They are not reserved: if another process takes one, the component dies,
// and Start retries with other ports.
func freePorts(ctx context.Context, n int) ([]int, error) {
	var ports []int
	var held []net.Listener // all at once, so that they differ
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	var lastErr error
	for range 200 {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort) //nolint:gosec // no secret
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", address(port))
		if err != nil {
			lastErr = err
			continue
		}
		held = append(held, l)
		ports = append(ports, port)
	}
	return nil, errors.Join(fmt.Errorf("find %d free ports from %d to %d", n, firstPort, lastPort), lastErr)
}

// address is host:port on the loopback interface.
func address(port int) string {
	return net.JoinHostPort(loopback, strconv.Itoa(port))
}
