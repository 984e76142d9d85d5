package notify

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// requestSpans are the spans of one request, one for each of its sampled reports.
type requestSpans []trace.Span

// start starts the span of a sampled report; nil if the report is not sampled. reports is the number of reports of the request.
func (s *requestSpans) start(item outbox.Item, reports int) trace.Span {
	span := observe.StartSpan(item.Report, "request", trace.SpanKindClient)
	if span == nil {
		return nil
	}
	span.SetAttributes(attribute.Int("threeport.request.reports", reports), attribute.Int("threeport.report.attempt", item.Attempt))
	*s = append(*s, span)
	return span
}

// context returns the context of the request. Its header names the trace of the first sampled report.
func (s requestSpans) context(ctx context.Context) context.Context {
	if len(s) == 0 {
		return ctx
	}
	return trace.ContextWithSpan(ctx, s[0])
}

// end ends the spans with the result of the request.
func (s requestSpans) end(err error) {
	for _, span := range s {
		if status := threeport.StatusOf(err); status != 0 {
			span.SetAttributes(attribute.Int("http.response.status_code", status))
		}
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// sendTraced sends one report, with a span if it is sampled.
func sendTraced(ctx context.Context, single Single, item outbox.Item) (outbox.Receipt, error) {
	var spans requestSpans
	spans.start(item, 1)
	receipt, err := single.Send(spans.context(ctx), item)
	spans.end(err)
	return receipt, err
}
