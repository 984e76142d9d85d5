package reporter

import (
	"context"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

func TestSamples_FirstChangeOfAQueuedKey_Counts(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("")
	s := newSamples[string](Tracing{Tracer: tracer, Ratio: 1})
	before := time.Now()
	s.add("web")
	after := time.Now()
	s.add("web")
	sink := &intake{}
	ctx := s.take(t.Context(), "web")
	instance := target.Instance{Type: target.WorkloadInstance, ID: 1}
	offer(ctx, sink, observe.Status{Workload: instance, Status: "Healthy"})
	offer(ctx, sink, observe.Tree{Workload: instance})
	offer(s.take(t.Context(), "web"), sink, observe.Status{Workload: instance, Status: "Down"})
	for i, report := range sink.offered {
		span, ok := observe.SpanOf(report).(sdktrace.ReadOnlySpan)
		if ok != (i < 2) {
			t.Fatalf("%s number %d is sampled: %t", report, i, ok)
		}
		if ok && (span.Name() != "observe" || span.StartTime().Before(before) || span.StartTime().After(after) || span.Parent().IsValid()) {
			t.Errorf("the span is %s of %s, want a root from the first change", span.Name(), span.StartTime())
		}
	}
	if first, second := observe.SpanOf(sink.offered[0]), observe.SpanOf(sink.offered[1]); first.SpanContext().TraceID() == second.SpanContext().TraceID() {
		t.Error("two reports have one trace")
	}
	if len(s.times) != 0 {
		t.Errorf("%d times are left", len(s.times))
	}
}

// A long Event is read whole by another worker, and a status may wait for its turn. Both keep the time of the change.
func TestSamples_Move_KeepsTheTime(t *testing.T) {
	tracing := Tracing{Tracer: sdktrace.NewTracerProvider().Tracer(""), Ratio: 1}
	from, to := newSamples[string](tracing), newSamples[types.NamespacedName](tracing)
	from.add("web")
	at, name := from.times["web"], types.NamespacedName{Name: "web"}
	to.move(from.take(t.Context(), "web"), name)
	if to.times[name] != at {
		t.Errorf("the time is %s, want %s", to.times[name], at)
	}
	to.move(t.Context(), types.NamespacedName{Name: "other"})
	if len(to.times) != 1 {
		t.Errorf("%d times, want that of the sampled change", len(to.times))
	}
}

func TestSamples_Off(t *testing.T) {
	for _, tracing := range []Tracing{{}, {Ratio: 1}, {Tracer: sdktrace.NewTracerProvider().Tracer("")}} {
		s := newSamples[string](tracing)
		if s != nil {
			t.Errorf("%+v has samples", tracing)
		}
		var report observe.Report = observe.Status{Status: "Healthy"}
		sink, ctx := &intake{offered: make([]observe.Report, 0, 1000)}, context.Background()
		if allocated := testing.AllocsPerRun(100, func() {
			s.add("web")
			taken := s.take(ctx, "web")
			s.move(taken, "web")
			offer(taken, sink, report)
		}); allocated != 0 {
			t.Errorf("%v allocations without traces, want none", allocated)
		}
	}
}

// intake is an Intake that keeps what it is offered.
type intake struct{ offered []observe.Report }

func (r *intake) Offer(report observe.Report) { r.offered = append(r.offered, report) }

func (*intake) Drop(observe.Event, string) bool { return false }
