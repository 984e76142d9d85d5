package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// get answers with a workload and its tree, chunk by chunk: a tree has up to 20,000 objects with long texts. The answer is a
// [threeport.WorkloadDetail].
func (w *workloads) get(ctx context.Context, request *struct{ InstancePath }) (*huma.StreamResponse, error) {
	instance, err := request.instance()
	if err != nil {
		return nil, err
	}
	if err := w.answers.reserve(ctx, treeCopies*store.MaxAnswerBytes); err != nil {
		return nil, err
	}
	tree, err := w.store.Workload(ctx, instance)
	if err != nil {
		return nil, storeProblem(ctx, err)
	}
	answer := &treeAnswer{tree: tree}
	if err := answer.begin(ctx); err != nil {
		return nil, storeProblem(ctx, err)
	}
	return &huma.StreamResponse{Body: func(to huma.Context) {
		to.SetHeader("Content-Type", "application/json")
		answer.send(ctx, to)
	}}, nil
}

// treeAnswer is the text of a workload with its tree. It has one chunk of objects, and the objects of the next.
type treeAnswer struct {
	tree *store.Tree
	text bytes.Buffer
	next []threeport.Object
}

// begin makes the text of the first chunk. Until then, a failure has a status code of its own.
func (a *treeAnswer) begin(ctx context.Context) (err error) {
	workload, err := json.Marshal(a.tree.Workload)
	if err != nil {
		return err
	}
	a.text.WriteString(`{"workload":`)
	a.text.Write(workload)
	if len(a.tree.Silences) > 0 {
		silences, err := json.Marshal(a.tree.Silences)
		if err != nil {
			return err
		}
		a.text.WriteString(`,"silences":`)
		a.text.Write(silences)
	}
	a.text.WriteString(`,"objects":[`)
	if a.next, err = a.tree.Next(ctx); err != nil {
		return err
	}
	return a.append(ctx)
}

// append appends the objects that were read, and reads the next. It ends the text after the last.
func (a *treeAnswer) append(ctx context.Context) (err error) {
	encoder := json.NewEncoder(&a.text)
	for i := range a.next {
		if i > 0 {
			a.text.WriteByte(',')
		}
		if err := encoder.Encode(&a.next[i]); err != nil {
			return err
		}
	}
	a.next = nil
	if a.next, err = a.tree.Next(ctx); err == nil && len(a.next) == 0 {
		a.text.WriteString("]}\n")
	}
	return err
}

// send writes the text. The answer has begun when a later chunk fails, so it is cut off: no client takes it for the whole tree.
func (a *treeAnswer) send(ctx context.Context, to huma.Context) {
	if len(a.next) == 0 {
		answerOf(ctx).shrink(pageCopies * int64(a.text.Len()))
	}
	for {
		if _, err := to.BodyWriter().Write(a.text.Bytes()); err != nil || len(a.next) == 0 {
			return // an error means that the client has gone
		}
		a.text.Reset()
		a.text.WriteByte(',')
		if err := a.append(ctx); err != nil {
			setCause(ctx, err)
			panic(http.ErrAbortHandler)
		}
	}
}
