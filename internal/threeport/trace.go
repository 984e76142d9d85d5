package threeport

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceparent is the name of the header of W3C Trace Context, and of the field of a report.
const traceparent = "traceparent"

// SetTrace sets the trace of a report to that of a span.
func (r *Report) SetTrace(ctx context.Context, span trace.SpanContext) {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(ctx, span), carrier)
	r.Traceparent = carrier[traceparent]
}

// Trace returns a context with the span of the agent that sent a report, and true if the report is sampled.
func (r *Report) Trace(ctx context.Context) (context.Context, bool) {
	if r.Traceparent == "" {
		return ctx, false
	}
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceparent: r.Traceparent})
	return ctx, trace.SpanContextFromContext(ctx).IsSampled()
}

// setTraceHeader sets the header of a request with the span of a context, so that proxies add their spans to the trace.
func setTraceHeader(ctx context.Context, header http.Header) {
	if trace.SpanContextFromContext(ctx).IsSampled() {
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
	}
}
