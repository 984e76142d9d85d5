package server

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// firstRead is the memory, in bytes, that a body has before any of it has arrived. A heartbeat and an Event of v0 fit.
const firstRead = 4 << 10

// bodyLimit bounds the body of a route's requests. Zero stands for a route that reads none.
type bodyLimit struct {
	bytes   int64
	timeout time.Duration // to arrive
}

// read reads a request's body into a buffer of first bytes, which doubles as the body arrives: each time, grow reserves its
// new size. So a body never holds more than twice what has arrived of it, or first bytes. The error is an
// [http.MaxBytesError] for a body beyond the limit, grow's own, or the connection's.
func (l bodyLimit) read(w http.ResponseWriter, req *http.Request, first int64, grow func(size int64) error) ([]byte, error) {
	if req.ContentLength > l.bytes {
		return nil, &http.MaxBytesError{Limit: l.bytes}
	}
	// A client that stalls would hold its memory without end. Only a test's writer has no deadline.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(l.timeout))
	largest := l.bytes + 1 // the end of the body shows after its last byte
	if req.ContentLength >= 0 {
		largest = req.ContentLength + 1
	}
	reader := http.MaxBytesReader(w, req.Body, l.bytes)
	body := make([]byte, 0, first)
	for {
		if len(body) == cap(body) {
			size := min(2*int64(cap(body)), largest)
			if err := grow(size); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, size), body...)
		}
		n, err := reader.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
