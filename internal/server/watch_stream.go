package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

const (
	// eventTimeout is how long a client may take to read what is sent at once. One that is slower is cut off, and can
	// come again with its last event.
	eventTimeout = 10 * time.Second

	// reconnectAfter is what browsers are told to wait before they come again.
	reconnectAfter = 2 * time.Second

	// eventsAtOnce is how many events are written before they are flushed.
	eventsAtOnce = 64
)

// The names of events.
const (
	eventWorkload = "workload"
	eventReset    = "reset"
	eventPing     = "ping"
)

// streamError is a client that has gone, or does not read.
type streamError struct{ cause error }

func (e *streamError) Error() string { return "send events: " + e.cause.Error() }
func (e *streamError) Unwrap() error { return e.cause }

// eventStream writes server-sent events, as the HTML standard describes them.
type eventStream struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	timeout    time.Duration
}

func newEventStream(w http.ResponseWriter) *eventStream {
	return &eventStream{w: w, controller: http.NewResponseController(w), timeout: eventTimeout}
}

// open sends the headers, so that the client knows that it is connected, and where to go on from if nothing comes before
// it is cut off; empty for where it said itself.
func (s *eventStream) open(place string) error {
	// The server's own deadline is for requests that end. Nothing is read here, and every write has its own.
	if err := s.controller.SetReadDeadline(time.Time{}); err != nil {
		return &streamError{err}
	}
	header := s.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // nginx would wait for more
	s.w.WriteHeader(http.StatusOK)
	text := fmt.Appendf(nil, "retry: %d\n", reconnectAfter.Milliseconds())
	if place != "" {
		text = fmt.Appendf(text, "id: %s\n", place)
	}
	return s.send(append(text, '\n'))
}

// workloads sends rows; the ID of each event is when its row changed.
func (s *eventStream) workloads(rows []threeport.Workload) error {
	var text bytes.Buffer
	for i := range rows {
		body, err := json.Marshal(&rows[i])
		if err != nil {
			return fmt.Errorf("write a workload's row: %w", err)
		}
		appendEvent(&text, eventWorkload, strconv.FormatInt(int64(rows[i].Changed), 10), body)
		if (i+1)%eventsAtOnce != 0 {
			continue
		}
		if err := s.send(text.Bytes()); err != nil {
			return err
		}
		text.Reset()
	}
	return s.send(text.Bytes())
}

// bare sends an event that has nothing but a name and the place behind it.
func (s *eventStream) bare(name, place string) error {
	var text bytes.Buffer
	appendEvent(&text, name, place, []byte("{}"))
	return s.send(text.Bytes())
}

// appendEvent appends an event with an ID. JSON has no line ends, which would need a data field each.
func appendEvent(text *bytes.Buffer, name, id string, body []byte) {
	_, _ = fmt.Fprintf(text, "id: %s\nevent: %s\ndata: %s\n\n", id, name, body) // a buffer takes everything
}

// send writes and flushes. The deadline is taken away after it: HTTP/2 would end the stream when it passes.
func (s *eventStream) send(text []byte) error {
	if len(text) == 0 {
		return nil
	}
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
