package outbox

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/threeport/threeport-agent/internal/agent/observe"
)

// How a report leaves the outbox, for its span.
const (
	leftDelivered = "delivered"
	leftRejected  = "rejected"
	leftDiscarded = "discarded" // the control plane has not its row
	leftReplaced  = "replaced"  // by a newer report of the key
	leftDropped   = "dropped"   // to keep the bound
	leftWithdrawn = "withdrawn" // it is no longer to be sent
)

// enter returns a report that comes into the outbox. If it is sampled, the span of the stage before ends and that of the outbox starts.
func enter(r observe.Report) observe.Report {
	span := observe.StartSpan(r, "outbox", trace.SpanKindInternal)
	if span == nil {
		return r
	}
	span.SetAttributes(observe.SpanAttributes(r)...)
	observe.SpanOf(r).End()
	return observe.WithSpan(r, span)
}

// leave ends the span of a report that leaves the outbox after a number of attempts to send it. A report leaves once: later calls
// change nothing.
func leave(r observe.Report, left string, attempts int) {
	if span := observe.SpanOf(r); span != nil {
		span.SetAttributes(attribute.String("threeport.report.left", left), attribute.Int("threeport.report.attempts", attempts))
		span.End()
	}
}
