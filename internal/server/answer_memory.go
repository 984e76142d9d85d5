package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// The copies of an answer in memory at once. A buffer may have twice the size of its text.
const (
	pageCopies       = 3 // the rows, and their text in a buffer
	treeCopies       = 4 // the text of a chunk in a buffer, and the objects of two chunks
	definitionCopies = 4 // as stored, as redacted, and in a buffer
)

// answerMemory reserves memory for the answers of operations. Those of v0 use the same limiter.
type answerMemory struct{ *limiter }

// forPage reserves memory for a page of a list.
func (m answerMemory) forPage(ctx context.Context) error {
	return m.reserve(ctx, pageCopies*store.MaxAnswerBytes)
}

// reserve reserves n bytes until the answer to the request of a context is written. An operation calls it once, before it reads.
func (m answerMemory) reserve(ctx context.Context, n int64) error {
	answer := answerOf(ctx)
	held, err := m.acquire(ctx, answer.sender, n)
	if err != nil {
		return unavailable(ctx, "too many large answers at once: ask again", err)
	}
	answer.memory = held
	return nil
}

// answerWriter writes the answer of an operation. It releases the memory that the answer does not need.
type answerWriter struct {
	http.ResponseWriter
	sender sender
	memory *reservation // nil if the operation reserves none
}

// Unwrap gives an [http.ResponseController] the server's own writer.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// shrink gives back the memory beyond n bytes.
func (w *answerWriter) shrink(n int64) {
	if w.memory != nil {
		w.memory.shrink(n)
	}
}

type answerKey struct{}

func answerOf(ctx context.Context) *answerWriter {
	answer, _ := ctx.Value(answerKey{}).(*answerWriter) // holdingAnswer sets it for all operations
	return answer
}

// holdingAnswer makes an operation hold the memory that it reserves until its answer is written.
func holdingAnswer(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		answer := &answerWriter{ResponseWriter: w, sender: senderOf(req)}
		defer func() { answer.memory.release() }()
		serve(answer, req.WithContext(context.WithValue(req.Context(), answerKey{}, answer)))
	}
}

// marshalAnswer writes an answer as JSON. The encoder writes all of it at once.
func marshalAnswer(w io.Writer, answer any) error {
	if err := json.NewEncoder(wholeAnswer{w}).Encode(answer); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// wholeAnswer writes the text of an answer, which takes less memory than was reserved. It ignores errors: a write fails only if
// the client has gone.
type wholeAnswer struct{ io.Writer }

func (w wholeAnswer) Write(text []byte) (int, error) {
	if answer, ok := w.Writer.(*answerWriter); ok {
		answer.shrink(pageCopies * int64(len(text)))
	}
	_, _ = w.Writer.Write(text)
	return len(text), nil
}
