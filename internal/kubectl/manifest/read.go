package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
)

// largeDocument is how many bytes a document has that is decoded while no other one is kept, for the memory's sake.
const largeDocument = 1 << 20

// job is a document that is being decoded.
type job struct {
	docs chan []Document // of capacity 1
	err  error           // why there are no more documents; io.EOF at the end of the input
}

// Documents returns what is in an input, in its order. If it cannot be read to its end, the last document says why.
//
// Documents are decoded side by side, a few ahead of the one that is asked for. When ctx ends there are no more of
// them, and the goroutine that reads ends after the Read that it is in.
func Documents(ctx context.Context, source string, in io.Reader) iter.Seq[Document] {
	return func(yield func(Document) bool) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		jobs := make(chan *job, 2*runtime.GOMAXPROCS(0))
		go split(ctx, newSplitter(in), jobs)
		number := 0
		for {
			var docs []Document
			select {
			case <-ctx.Done():
				yield(Document{Source: source, Err: fmt.Errorf("interrupted: %w", context.Cause(ctx))})
				return
			case j := <-jobs:
				if errors.Is(j.err, io.EOF) {
					return
				}
				if j.err != nil {
					yield(Document{Source: source, Err: fmt.Errorf("cannot be read: %w", j.err)})
					return
				}
				docs = <-j.docs
			}
			for _, d := range docs {
				if d.Item <= 1 { // 0 for an object by itself
					number++
				}
				d.Source, d.Number = source, number
				if !yield(d) {
					return
				}
			}
		}
	}
}

// split cuts an input into documents, and has them decoded.
func split(ctx context.Context, s *splitter, jobs chan<- *job) {
	for {
		j := &job{docs: make(chan []Document, 1)}
		var c chunk
		c, j.err = s.next()
		select {
		case jobs <- j:
		case <-ctx.Done():
			return
		}
		switch {
		case j.err != nil:
			return
		case len(c.text) > largeDocument:
			j.docs <- decode(c, maxRetries)
		default:
			go func() { j.docs <- decode(c, maxRetries) }()
		}
	}
}
