package server

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// v0Body bounds one body of v0. Threeport's API has no bound (200 MiB were measured to pass); this one keeps a mistake from
// taking all memory.
var v0Body = bodyLimit{bytes: 256 << 20, timeout: readTimeout}

// The bounds of all bodies of v0 together, in bytes. A body counts for at most v0Ordinary of v0Memory. A larger body needs
// one of v0Large slots as well, and a sender has one at a time.
const (
	v0MemoryBytes     = 64 << 20
	v0MemoryPerSender = v0MemoryBytes / 2
	v0Ordinary        = v0MemoryPerSender / 2
	v0Large           = 2
)

// v0Wait is how long a request of v0 waits for memory before the server asks its sender to repeat it.
const v0Wait = 5 * time.Second

// v0Memory bounds the memory of v0's bodies until their requests are answered.
type v0Memory struct {
	bytes *memoryLimiter
	large *memoryLimiter // counts bodies, not bytes
}

func newV0Memory() *v0Memory {
	return &v0Memory{
		bytes: newMemoryLimiter(v0MemoryBytes, v0MemoryPerSender, v0Wait),
		large: newMemoryLimiter(v0Large, 1, v0Wait),
	}
}

// v0Reservation is the memory that one body holds. The handler releases it when the request is answered.
type v0Reservation struct {
	bytes *reservation
	large *reservation // 1 for a body larger than v0Ordinary, else 0
}

// acquire reserves memory for the first part of a request's body.
func (m *v0Memory) acquire(req *http.Request) (*v0Reservation, error) {
	first := int64(firstRead)
	if req.ContentLength >= 0 {
		first = min(first, req.ContentLength+1) // the end of the body shows after its last byte
	}
	sender := senderOf(req)
	bytes, err := m.bytes.acquire(req.Context(), sender, first)
	if err != nil {
		return nil, err
	}
	large, err := m.large.acquire(req.Context(), sender, 0)
	if err != nil {
		bytes.release()
		return nil, err
	}
	return &v0Reservation{bytes, large}, nil
}

// grow raises the reservation to a body of n bytes. It does not wait.
func (r *v0Reservation) grow(n int64) error {
	if err := r.bytes.grow(min(n, v0Ordinary)); err != nil || n <= v0Ordinary {
		return err
	}
	return r.large.grow(1)
}

func (r *v0Reservation) release() {
	r.bytes.release()
	r.large.release()
}

// read reads a request's body into the reserved memory.
func (r *v0Reservation) read(w http.ResponseWriter, req *http.Request, limit bodyLimit) ([]byte, error) {
	body, err := limit.read(w, req, r.bytes.bytes, r.grow)
	if err == nil || errors.Is(err, errNoMemory) {
		return body, err
	}
	return nil, bodyError(err)
}

// bodyError is the error of a body that did not arrive. It is no error of the database, although the errors of both
// connections look alike.
func bodyError(err error) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return fmt.Errorf("read body: %w", err)
	}
	return &httpError{http.StatusInternalServerError, "read body: " + err.Error()}
}
