package tracing

import (
	"context"
	"fmt"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/threeport/threeport-agent/internal/otlp"
)

// client sends spans to an OTLP receiver. It implements [otlptrace.Client], without concurrent calls. The client of otlptracehttp links
// gRPC, and drops nothing while it repeats a request.
type client struct{ *otlp.Client }

// Start does nothing: the first request connects.
func (c client) Start(context.Context) error { return nil }

// Stop closes the connection.
func (c client) Stop(context.Context) error {
	c.Close()
	return nil
}

// UploadTraces sends spans.
func (c client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// The request of OTLP has the same fields. Its own package needs gRPC.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	answer, err := c.Post(ctx, body)
	if err != nil {
		return err
	}
	if !answer.Accepted() {
		return fmt.Errorf("the collector answered with HTTP %d", answer.Code)
	}
	return nil
}
