package server

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// firstRead is the memory, in bytes, that a body has before any of it has arrived. A heartbeat and an Event of v0 fit.
const firstRead = 4 << 10

// A body has progressTimeout for each progressBytes, so that a client that stalls does not hold memory for long. An agent on a link
// that is slower gives up a set of 1 MiB itself.
const (
	progressBytes   = 64 << 10
	progressTimeout = 5 * time.Second
)

// bodyLimit bounds the body of a route's requests. Zero stands for a route that reads none.
type bodyLimit struct {
	bytes   int64
	timeout time.Duration // of the whole body
}

// read reads a request's body into a buffer of first bytes, which doubles as the body arrives: each time, grow reserves its
// new size. So a body never holds more than twice what has arrived of it, or first bytes. The error is an
// [http.MaxBytesError] for a body beyond the limit, grow's own, or the connection's.
func (l bodyLimit) read(w http.ResponseWriter, req *http.Request, first int64, grow func(size int64) error) ([]byte, error) {
	if req.ContentLength > l.bytes {
		return nil, &http.MaxBytesError{Limit: l.bytes}
	}
	controller, end, next := http.NewResponseController(w), time.Now().Add(l.timeout), 0
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
		if len(body) >= next {
			_ = controller.SetReadDeadline(earlier(end, time.Now().Add(progressTimeout))) // only a test's writer has none
			next = len(body) + progressBytes
		}
		n, err := reader.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		bodyRead(req, n)
		if errors.Is(err, io.EOF) {
			_ = controller.SetReadDeadline(time.Time{}) // it would end the request while it is served
			return body, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// earlier returns the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
