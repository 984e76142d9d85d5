package server

import (
	"net/http"
	"time"
)

// stallTimeout is how long a client may take to read a piece of an answer. A client that reads a few KiB per second is fast
// enough, and a connection without packets for this long is broken.
const stallTimeout = 30 * time.Second

// pieceBytes is the size of the pieces in which an answer is written.
const pieceBytes = 64 << 10

// stallHandler cuts off clients that stop reading, because an answer holds memory and slots until it is written.
type stallHandler struct {
	http.Handler
	timeout time.Duration
}

func (h *stallHandler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	pieces := &pieceWriter{ResponseWriter: w, timeout: h.timeout, end: time.Now().Add(writeTimeout)}
	h.Handler.ServeHTTP(pieces, req)
	if !pieces.ownDeadlines { // of a short answer, which is written after the handler
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.timeout))
	}
}

// pieceWriter writes in pieces with a deadline for each. After a handler has set a write deadline itself, as that of a stream does,
// pieceWriter sets none.
type pieceWriter struct {
	http.ResponseWriter
	timeout      time.Duration
	end          time.Time // of the whole answer
	ownDeadlines bool
}

func (w *pieceWriter) Write(body []byte) (written int, err error) {
	if w.ownDeadlines {
		return w.ResponseWriter.Write(body)
	}
	controller := http.NewResponseController(w.ResponseWriter)
	// HTTP/2 ends a stream at its deadline, even while the handler prepares the next write.
	defer func() { _ = controller.SetWriteDeadline(w.end) }()
	for {
		piece := body[written:min(len(body), written+pieceBytes)]
		deadline := time.Now().Add(w.timeout)
		if deadline.After(w.end) {
			deadline = w.end
		}
		_ = controller.SetWriteDeadline(deadline) // only a test's writer has none
		n, err := w.ResponseWriter.Write(piece)
		written += n
		if err != nil || written == len(body) {
			return written, err
		}
	}
}

// SetWriteDeadline is called by [http.ResponseController].
func (w *pieceWriter) SetWriteDeadline(deadline time.Time) error {
	w.ownDeadlines = true
	return http.NewResponseController(w.ResponseWriter).SetWriteDeadline(deadline)
}

// Unwrap gives an [http.ResponseController] the server's own writer.
func (w *pieceWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
