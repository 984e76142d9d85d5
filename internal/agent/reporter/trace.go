package reporter

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/threeport/threeport-agent/internal/agent/observe"
)

// Tracing samples changes, and starts the traces of their reports. The zero value samples none.
type Tracing struct {
	Tracer trace.Tracer // nil for no traces
	// Ratio is the share of the changes that is sampled, 0 to 1.
	Ratio float64
}

// samples has the times of sampled changes whose keys are queued. A nil samples has none.
type samples[T comparable] struct {
	Tracing
	mu    sync.Mutex
	times map[T]time.Time
}

func newSamples[T comparable](tracing Tracing) *samples[T] {
	if tracing.Tracer == nil || tracing.Ratio <= 0 {
		return nil
	}
	return &samples[T]{Tracing: tracing, times: map[T]time.Time{}}
}

// add samples a change of a key, before the key is queued. Of several changes of a queued key, the first sampled one counts.
func (s *samples[T]) add(key T) {
	if s == nil || rand.Float64() >= s.Ratio { //nolint:gosec // need not be secret
		return
	}
	s.addAt(key, time.Now())
}

func (s *samples[T]) addAt(key T, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.times[key]; !ok {
		s.times[key] = at
	}
}

// sample is a sampled change.
type sample struct {
	tracer trace.Tracer
	at     time.Time
}

type sampleKey struct{}

// take returns the context for the reports about a key that a worker has taken from its queue.
func (s *samples[T]) take(ctx context.Context, key T) context.Context {
	if s == nil {
		return ctx
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.times[key]
	if !ok {
		return ctx
	}
	delete(s.times, key)
	return context.WithValue(ctx, sampleKey{}, sample{s.Tracer, at})
}

// move samples a key that is about to be queued, if the change of a context was sampled.
func (s *samples[T]) move(ctx context.Context, key T) {
	if of, ok := ctx.Value(sampleKey{}).(sample); ok {
		s.addAt(key, of.at)
	}
}

// offer offers a report. If its change was sampled, the report has a trace of its own, whose first span begins with the change. Without a
// place for the report in the outbox, the span never ends and is not exported.
func offer(ctx context.Context, sink Intake, report observe.Report) {
	if of, ok := ctx.Value(sampleKey{}).(sample); ok {
		_, span := of.tracer.Start(context.Background(), "observe",
			trace.WithTimestamp(of.at), trace.WithAttributes(observe.SpanAttributes(report)...))
		report = observe.WithSpan(report, span)
	}
	sink.Offer(report)
}
