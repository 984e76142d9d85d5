package server

import (
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// The requests of one connection that are refused. A connection with more of them pauses. Each costs the server about 0.1 ms, and
// anybody can send thousands of them per second. Before a principal is authenticated, all requests count, such as probes.
const (
	refusedPerSecond = 10
	refusedBurst     = maxStreams // of one connection of HTTP/2
	maxRefusedPause  = time.Second
)

// refused counts the requests of a connection that are refused. The connection of a proxy has the requests of many clients, so it does
// not pause: neither that of a trusted one nor one on which two senders were authenticated.
type refused struct {
	limit  *rate.Limiter
	until  atomic.Int64           // the end of the pause, in nanoseconds since the epoch
	first  atomic.Pointer[sender] // that was authenticated; nil before
	shared atomic.Bool            // by several senders
}

func newRefused() *refused {
	return &refused{limit: rate.NewLimiter(refusedPerSecond, refusedBurst)}
}

// authorize notes the sender of a request that is not refused.
func (r *refused) authorize(by sender) {
	if first := r.first.Load(); first == nil {
		r.first.CompareAndSwap(nil, &by)
	} else if *first != by {
		r.shared.Store(true)
	}
}

// counts reports whether a request without a sender counts, by the code of its answer.
func (r *refused) counts(code int) bool {
	return r.first.Load() == nil || code >= http.StatusBadRequest && !r.shared.Load()
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
		if !ok || opened.refused == nil {
			next.ServeHTTP(w, req)
			return
		}
		info, recorder := requestInfoOf(req.Context()), &statusRecorder{ResponseWriter: w}
		defer func() { // a handler may panic
			if !info.authorized && opened.refused.counts(recorder.code()) {
				opened.refused.add(time.Now())
			}
		}()
		next.ServeHTTP(recorder, req)
	})
}
