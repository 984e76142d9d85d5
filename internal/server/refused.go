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

	// refusedCrowd is the number of connections whose rate all together have. Their requests take 3 % of a processor.
	refusedCrowd = 32

	// fileCost is the part of such a request that a file of the web UI counts on an authenticated connection of a person. The connections of
	// one sender share the rate.
	fileCost = 0.1
)

// refused counts the requests of a connection that have no principal.
type refused struct {
	limit *rate.Limiter // in units of fileCost
	until atomic.Int64  // the end of the pause, in nanoseconds since the epoch
}

func newRefused() *refused {
	return &refused{limit: rate.NewLimiter(refusedPerSecond/fileCost, refusedBurst/fileCost)}
}

// add counts a request. The connection pauses if there were too many. In a crowd of connections without a principal, each has a part of
// the usual rate. The connections of one person share the rate of files.
func (r *refused) add(now time.Time, isFile bool, crowd, ofPerson int) {
	cost := int(1 / fileCost)
	switch {
	case ofPerson == 0:
		cost *= crowd
	case isFile:
		cost, crowd = ofPerson, 1
	default:
		crowd = 1
	}
	wait := r.limit.ReserveN(now, min(cost, r.limit.Burst())).DelayFrom(now)
	r.until.Store(now.Add(min(wait, maxRefusedPause*time.Duration(crowd))).UnixNano())
}

// pause is the rest of the pause. It is negative after its end.
func (r *refused) pause(now time.Time) time.Duration {
	return time.Duration(r.until.Load() - now.UnixNano())
}

var errLongHandshake = fmt.Errorf("the client sends more than %d bytes in the TLS handshake", maxHandshakeBytes)

// Read reads from the client, and gives the bytes to the server after the pause. So the client has its answers at once, and a request
// that waits takes no memory.
func (c *connection) Read(into []byte) (int, error) {
	c.awaitOverhead()
	n, err := c.Conn.Read(into[:min(len(into), c.mostAtOnce())])
	if c.handshake.Load() > 0 && c.handshake.Add(-int64(n)) <= 0 {
		return 0, errLongHandshake
	}
	c.received(into[:n])
	if c.refused != nil {
		if pause := c.refused.pause(time.Now()); pause > 0 {
			<-time.After(pause)
		}
	}
	return n, err
}

// await lets a request of HTTP/1.1 wait for the end of the pause, because one record of TLS may have hundreds of them. They follow each
// other, so that only one waits. HTTP/2 has maxStreams.
func (c *connection) await(req *http.Request) {
	if pause := c.refused.pause(time.Now()); pause > 0 && req.ProtoMajor == 1 {
		select {
		case <-time.After(pause):
		case <-req.Context().Done():
		}
	}
}

// pauseRefused lets the connections of clients pause that send requests without a principal.
func pauseRefused(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		opened, ok := req.Context().Value(connectionKey{}).(*connection)
		if !ok || opened.refused == nil {
			next.ServeHTTP(w, req)
			return
		}
		if req.ProtoMajor == 1 {
			opened.isHTTP1.Store(true)
		}
		opened.await(req)
		info := requestInfoOf(req.Context())
		defer func() { // a handler may panic
			if !info.authorized {
				all := opened.of
				opened.refused.add(time.Now(), strings.HasPrefix(req.URL.Path, "/page/"), all.crowd(refusedCrowd), all.ofPerson(opened))
			}
		}()
		next.ServeHTTP(w, req)
	})
}
