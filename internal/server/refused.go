package server

import (
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// The requests of one connection that are refused, or served without a principal. A connection with more of them pauses. Each costs
// the server about 0.1 ms, and anybody can send thousands of them per second.
const (
	refusedPerSecond = 10
	refusedBurst     = maxStreams // of one connection of HTTP/2
	maxRefusedPause  = time.Second
)

// refused counts the requests of a connection that are refused, or that have no principal.
type refused struct {
	limit *rate.Limiter
	until atomic.Int64 // the end of the pause, in nanoseconds since the epoch
}

func newRefused() *refused {
	return &refused{limit: rate.NewLimiter(refusedPerSecond, refusedBurst)}
}

// add counts a request. The connection pauses if there were too many.
func (r *refused) add(now time.Time) {
	wait := min(r.limit.ReserveN(now, 1).DelayFrom(now), maxRefusedPause)
	r.until.Store(now.Add(wait).UnixNano())
}

// pause is the rest of the pause. It is negative after its end.
func (r *refused) pause(now time.Time) time.Duration {
	return time.Duration(r.until.Load() - now.UnixNano())
}

// Read reads from the client, and gives the bytes to the server after the pause. So the client has its answers at once, and a request
// that waits takes no memory.
func (c *connection) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if c.refused != nil {
		if pause := c.refused.pause(time.Now()); pause > 0 {
			<-time.After(pause)
		}
	}
	return n, err
}

// pauseRefused lets the connections of clients pause whose requests are refused.
func pauseRefused(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		opened, ok := req.Context().Value(connectionKey{}).(*connection)
		info := requestInfoOf(req.Context())
		defer func() { // a handler may panic
			if ok && opened.refused != nil && !info.authorized {
				opened.refused.add(time.Now())
			}
		}()
		next.ServeHTTP(w, req)
	})
}
