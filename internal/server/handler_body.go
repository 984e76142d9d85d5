package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
)

// maxBody bounds a request's body, in bytes. v0 has no limit (200 MiB were
// measured to pass); this one only keeps a mistake from taking all memory.
const maxBody = 256 << 20

// What bounds all bodies of v0 together, in bytes, as they are until their
// requests are answered: all of them, those of one sender, and what one body
// takes of these. What a body has beyond that is taken by the few that may be
// large at once, of which one sender has one.
const (
	bodiesBytes  = 64 << 20
	bodiesShare  = bodiesBytes / 2
	ordinaryBody = bodiesShare / 2
	largeBodies  = 2
)

// bodiesWait is how long a body waits for room before its sender is asked to
// come again, and bodiesTry how often it looks. It is in no queue meanwhile:
// behind one that waits for much, all that need little would wait too.
const (
	bodiesWait = 5 * time.Second
	bodiesTry  = 20 * time.Millisecond
)

// errBusy is a body for which there was no room in time.
var errBusy = &failure{http.StatusServiceUnavailable, "too many bodies at once: send it again"}

// bodies bounds the memory of v0's bodies. It is safe for concurrent use.
type bodies struct {
	bytes, large *semaphore.Weighted
	shares       *senders[*bodiesOfOne]
	wait         time.Duration
}

// bodiesOfOne is what one sender may have.
type bodiesOfOne struct{ bytes, large *semaphore.Weighted }

func newBodies() *bodies {
	return &bodies{
		bytes: semaphore.NewWeighted(bodiesBytes),
		large: semaphore.NewWeighted(largeBodies),
		shares: newSenders(func() *bodiesOfOne {
			return &bodiesOfOne{semaphore.NewWeighted(bodiesShare), semaphore.NewWeighted(1)}
		}),
		wait: bodiesWait,
	}
}

// room is what one body has of the memory. Free it when its request is
// answered.
type room struct {
	bytes    *reservation
	large    *reservation // of 1 if it is, else of nothing
	leave    func()
	patience time.Duration // for how long it may wait still
}

// enter makes room for a body of which nothing has arrived.
func (b *bodies) enter(req *http.Request) (*room, error) {
	share, leave := b.shares.shareOf(senderOf(req))
	r := &room{
		bytes: &reservation{kinds: []*semaphore.Weighted{share.bytes, b.bytes}},
		large: &reservation{kinds: []*semaphore.Weighted{share.large, b.large}},
		leave: leave, patience: b.wait,
	}
	first := int64(leastRoom)
	if req.ContentLength >= 0 {
		first = min(first, req.ContentLength+1) // the end is seen behind the last byte
	}
	if err := r.grow(req.Context(), first); err != nil {
		r.free()
		return nil, err
	}
	return r, nil
}

// grow takes more, so that there is room for n bytes.
func (r *room) grow(ctx context.Context, n int64) error {
	err := r.try(ctx, func() error { return r.bytes.grow(min(n, ordinaryBody)) })
	if err != nil || n <= ordinaryBody {
		return err
	}
	return r.try(ctx, func() error { return r.large.grow(1) })
}

func (r *room) free() {
	r.bytes.free()
	r.large.free()
	r.leave()
}

// try tries to take memory until it succeeds, or there is no patience left.
func (r *room) try(ctx context.Context, take func() error) error {
	if take() == nil {
		return nil
	}
	begin := time.Now()
	defer func() { r.patience -= time.Since(begin) }()
	end := time.NewTimer(r.patience)
	defer end.Stop()
	again := time.NewTicker(bodiesTry)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			if take() == nil {
				return nil
			}
		case <-end.C:
			return errBusy
		case <-ctx.Done():
			return fmt.Errorf("read body: %w", ctx.Err())
		}
	}
}

// receive reads a body. Its room is never more than twice what has arrived,
// besides the first of it.
func (r *room) receive(w http.ResponseWriter, req *http.Request) ([]byte, error) {
	if req.ContentLength > maxBody {
		return nil, &http.MaxBytesError{Limit: maxBody}
	}
	most := int64(maxBody) + 1
	if req.ContentLength >= 0 {
		most = req.ContentLength + 1
	}
	reader := http.MaxBytesReader(w, req.Body, maxBody)
	body := make([]byte, 0, r.bytes.bytes)
	for {
		if len(body) == cap(body) {
			larger := min(2*int64(cap(body)), most)
			if err := r.grow(req.Context(), larger); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, larger), body...)
		}
		n, err := reader.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		if err != nil {
			return nil, unreadBody(err)
		}
	}
}

// unreadBody is what became of a body that did not arrive. It says nothing of the database, though the errors of both
// connections are alike.
func unreadBody(err error) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return fmt.Errorf("read body: %w", err)
	}
	return &failure{http.StatusInternalServerError, "read body: " + err.Error()}
}
