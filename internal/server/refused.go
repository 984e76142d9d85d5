package server

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// The requests of one connection that have no principal: refused ones and those that anybody may send, such as probes. A connection with
// more of them pauses. Each costs the server about 0.1 ms, and anybody can send thousands of them per second.
const (
	refusedPerSecond = 10
	refusedBurst     = maxStreams // of one connection of HTTP/2
	maxRefusedPause  = time.Second

	// fileCost is the part of such a request that a file of the web UI counts, once a request on the connection had a principal.
	fileCost = 0.1
)

// refused counts the requests of a connection that have no principal.
type refused struct {
	limit   *rate.Limiter // in units of fileCost
	until   atomic.Int64  // the end of the pause, in nanoseconds since the epoch
	hasUser atomic.Bool   // a request on the connection had a principal
}

func newRefused() *refused {
	return &refused{limit: rate.NewLimiter(refusedPerSecond/fileCost, refusedBurst/fileCost)}
}

// add counts a request. The connection pauses if there were too many. In a crowd of connections without a principal, each has a part of
// the usual rate.
func (r *refused) add(now time.Time, isFile bool, crowd int) {
	cost := int(1 / fileCost)
	switch {
	case !r.hasUser.Load():
		cost = min(cost*crowd, r.limit.Burst())
	case isFile:
		cost, crowd = 1, 1
	default:
		crowd = 1
	}
	wait := min(r.limit.ReserveN(now, cost).DelayFrom(now), maxRefusedPause*time.Duration(crowd))
	r.until.Store(now.Add(wait).UnixNano())
}

// pause is the rest of the pause. It is negative after its end.
func (r *refused) pause(now time.Time) time.Duration {
	return time.Duration(r.until.Load() - now.UnixNano())
}

var errLongHandshake = fmt.Errorf("the client sends more than %d bytes in the TLS handshake", maxHandshakeBytes)

// Read reads from the client, and gives the bytes to the server after the pause. So the client has its answers at once, and a request
// that waits takes no memory.
func (c *connection) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if c.handshake.Load() > 0 && c.handshake.Add(-int64(n)) <= 0 {
		return 0, errLongHandshake
	}
	if c.refused != nil {
		if pause := c.refused.pause(time.Now()); pause > 0 {
			<-time.After(pause)
		}
	}
	return n, err
}

// pauseRefused lets the connections of clients pause that send requests without a principal.
func pauseRefused(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		opened, ok := req.Context().Value(connectionKey{}).(*connection)
		if !ok || opened.refused == nil {
			next.ServeHTTP(w, req)
			return
		}
		info := requestInfoOf(req.Context())
		defer func() { // a handler may panic
			if !info.authorized {
				opened.refused.add(time.Now(), strings.HasPrefix(req.URL.Path, "/page/"), opened.of.crowd())
			}
		}()
		next.ServeHTTP(w, req)
	})
}
