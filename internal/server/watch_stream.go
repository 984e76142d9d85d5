package server

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"github.com/threeport/threeport-agent/internal/server/store"
)

const (
	// eventTimeout is how long a client may take to read one write. The server cuts off a slower client, which can resume
	// from its last event.
	eventTimeout = 10 * time.Second

	// reconnectAfter is how long a browser waits before it reconnects.
	reconnectAfter = 2 * time.Second

	// flushBytes is the size of the text after which it is written and flushed. A watch holds little more.
	flushBytes = 16 << 10
)

// The names of events.
const (
	eventWorkload = "workload"
	eventReset    = "reset"
	eventPing     = "ping"
)

// streamError is the error of a client that has gone or does not read.
type streamError struct{ cause error }

func (e *streamError) Error() string { return "send events: " + e.cause.Error() }
func (e *streamError) Unwrap() error { return e.cause }

// eventStream writes server-sent events, as the HTML standard describes them.
type eventStream struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	timeout    time.Duration
	budget     *rate.Limiter // of bytes
	paidAt     time.Time     // when the budget has the bytes of all writes
}

func newEventStream(w http.ResponseWriter, budget *rate.Limiter) *eventStream {
	return &eventStream{w: w, controller: http.NewResponseController(w), timeout: eventTimeout, budget: budget}
}

// wait waits until the budget has the bytes of all writes.
func (s *eventStream) wait(ctx context.Context) error {
	timer := time.NewTimer(time.Until(s.paidAt))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// charge takes a write from the budget.
func (s *eventStream) charge(size int) {
	now := time.Now()
	s.paidAt = now.Add(s.budget.ReserveN(now, min(size+writeCost, watchBurst)).DelayFrom(now))
}

// open sends the headers at once, and the place to resume from if the stream breaks before the first event. The place is
// empty for a client that has sent one.
func (s *eventStream) open(place string) error {
	// The server's deadlines are for requests that end. A stream reads nothing, and each write has its own deadline.
	if err := s.controller.SetReadDeadline(time.Time{}); err != nil {
		return &streamError{err}
	}
	header := s.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // nginx would buffer the events
	s.w.WriteHeader(http.StatusOK)
	text := fmt.Appendf(nil, "retry: %d\n", reconnectAfter.Milliseconds())
	if place != "" {
		text = fmt.Appendf(text, "id: %s\n", place)
	}
	return s.send(append(text, '\n'))
}

// workloads sends rows. The ID of each event is the version of its row.
func (s *eventStream) workloads(rows []*store.Change) error {
	var text bytes.Buffer
	for _, row := range rows {
		line, err := row.JSON()
		if err != nil {
			return err
		}
		beginEvent(&text, eventWorkload, strconv.FormatInt(int64(row.Changed), 10))
		text.Write(line)
		text.WriteString("\n\n")
		if text.Len() < flushBytes {
			continue
		}
		if err := s.send(text.Bytes()); err != nil {
			return err
		}
		text.Reset()
	}
	return s.send(text.Bytes())
}

// bare sends an event without data, with a place to resume from.
func (s *eventStream) bare(name, place string) error {
	var text bytes.Buffer
	beginEvent(&text, name, place)
	text.WriteString("{}\n\n")
	return s.send(text.Bytes())
}

// beginEvent appends an event up to its body. The body is JSON on one line: each line would need a data field of its own. An empty
// line ends the event.
func beginEvent(text *bytes.Buffer, name, id string) {
	_, _ = fmt.Fprintf(text, "id: %s\nevent: %s\ndata: ", id, name) // a buffer never fails
}

// send writes and flushes. It removes the deadline afterwards, because HTTP/2 would end the stream when it passes.
func (s *eventStream) send(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	s.charge(len(text))
	if err := s.controller.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return &streamError{err}
	}
	if _, err := s.w.Write(text); err != nil {
		return &streamError{err}
	}
	if err := s.controller.Flush(); err != nil {
		return &streamError{err}
	}
	if err := s.controller.SetWriteDeadline(time.Time{}); err != nil {
		return &streamError{err}
	}
	return nil
}
