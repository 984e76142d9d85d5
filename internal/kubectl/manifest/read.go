package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
)

// largeDocument is the minimum size of a document that is decoded alone, to bound the memory.
const largeDocument = 1 << 20

// job is the decoding of one document.
type job struct {
	docs chan []Document // of capacity 1
	err  error           // ends the documents; io.EOF at the end of the input
}

// Documents returns the documents of an input, in order. A read error is the last document.
//
// Documents are decoded concurrently, a few ahead of the consumer. The sequence ends when ctx ends. The goroutine that
// reads ends after its current Read.
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

// split cuts an input into documents and starts their decoding.
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
