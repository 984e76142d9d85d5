package observe

import (
	"context"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// scope is the instrumentation scope of the spans of reports.
const scope = "github.com/threeport/threeport-agent"

// Trace has the span of the stage that a sampled report is in. It does not outlive the process.
type Trace struct{ span trace.Span }

// SpanOf returns the span of the stage that a report is in; nil if the report is not sampled.
func SpanOf(r Report) trace.Span {
	var t *Trace
	switch r := r.(type) {
	case Operation:
		t = r.Trace
	case Event:
		t = r.Trace
	case Status:
		t = r.Trace
	case Tree:
		t = r.Trace
	}
	if t == nil {
		return nil
	}
	return t.span
}

// WithSpan returns a report in the stage of a span.
func WithSpan(r Report, span trace.Span) Report {
	t := &Trace{span}
	switch r := r.(type) {
	case Operation:
		r.Trace = t
		return r
	case Event:
		r.Trace = t
		return r
	case Status:
		r.Trace = t
		return r
	case Tree:
		r.Trace = t
		return r
	}
	return r
}

// StartSpan starts the span of the next stage of a report; nil if the report is not sampled.
func StartSpan(r Report, name string, kind trace.SpanKind) trace.Span {
	parent := SpanOf(r)
	if parent == nil {
		return nil
	}
	_, span := parent.TracerProvider().Tracer(scope).Start(
		trace.ContextWithSpan(context.Background(), parent), name, trace.WithSpanKind(kind))
	return span
}

// SpanAttributes names a report and its object, without contents of the object.
func SpanAttributes(r Report) []attribute.KeyValue {
	at := r.Instance()
	out := []attribute.KeyValue{
		attribute.String("threeport.workload.type", string(at.Type)), attribute.String("threeport.workload.id", strconv.FormatInt(at.ID, 10)),
	}
	switch r := r.(type) {
	case Operation:
		return append(append(out, attribute.String("threeport.report.kind", "operation")), objectAttributes(r.Object)...)
	case Event:
		out = append(out, attribute.String("threeport.report.kind", "event"), attribute.String("k8s.event.reason", r.Reason))
		return append(out, objectAttributes(target.Identity{Ref: r.Involved, UID: r.InvolvedUID})...)
	case Status:
		return append(out, attribute.String("threeport.report.kind", "status"))
	case Tree:
		return append(out, attribute.String("threeport.report.kind", "tree"))
	}
	return out
}

func objectAttributes(id target.Identity) []attribute.KeyValue {
	out := []attribute.KeyValue{
		attribute.String("k8s.object.kind", id.Kind), attribute.String("k8s.object.name", id.Name), attribute.String("k8s.object.uid", string(id.UID)),
	}
	if id.Namespace != "" {
		out = append(out, attribute.String("k8s.namespace.name", id.Namespace))
	}
	return out
}
