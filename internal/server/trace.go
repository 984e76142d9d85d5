package server

import (
	"context"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// maxStoreSpans bounds the spans of one report set. The agent decides which reports are sampled.
const maxStoreSpans = 100

// maxSpanText bounds a text of a report in an attribute, in bytes. A longer one is invalid, and would hold memory until the export.
const maxSpanText = 253

// storeSpans makes the spans of the sampled reports of a set that the store has applied since begin. Without a tracer it does nothing.
// clusterName is the name that the credential fixes: an agent could report that of another cluster.
func storeSpans(tracer trace.Tracer, set threeport.ReportSet, clusterName string, begin time.Time, answer threeport.ReportSetAnswer, failed error) {
	if tracer == nil {
		return
	}
	spans := 0
	for i := range set.Reports {
		report := &set.Reports[i]
		ctx, sampled := report.Trace(context.Background())
		if !sampled {
			continue
		}
		if spans++; spans > maxStoreSpans {
			return
		}
		_, span := tracer.Start(ctx, "store", trace.WithTimestamp(begin), trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(spanAttributes(set.Agent.ClusterUID, clusterName, report)...))
		span.SetAttributes(attribute.Int("threeport.request.reports", len(set.Reports)))
		if failed != nil {
			span.SetStatus(codes.Error, "the report set was not applied") // the log has the error, which may quote a value
		} else {
			span.SetAttributes(attribute.String("threeport.report.outcome", answer.Items[i].Outcome))
		}
		span.End()
	}
}

// spanAttributes names a report, its object and its cluster, without contents of the object.
func spanAttributes(clusterUID, clusterName string, report *threeport.Report) []attribute.KeyValue {
	object := threeport.ObjectRef{}
	switch {
	case report.Operation != nil:
		object = report.Operation.Object
	case report.Event != nil:
		object = report.Event.Involved
	}
	out := []attribute.KeyValue{
		attribute.String("threeport.report.kind", kindOf(report)),
		attribute.String("threeport.workload.id", strconv.FormatInt(int64(report.Instance.ID), 10)),
	}
	for _, text := range []struct{ name, value string }{
		{"k8s.cluster.name", clusterName},
		{"k8s.cluster.uid", clusterUID},
		{"threeport.workload.type", report.Instance.Type},
		{"k8s.object.kind", object.Kind},
		{"k8s.object.name", object.Name},
		{"k8s.object.uid", object.UID},
		{"k8s.namespace.name", object.Namespace},
	} {
		if text.value != "" && len(text.value) <= maxSpanText {
			out = append(out, attribute.String(text.name, text.value))
		}
	}
	return out
}

func kindOf(report *threeport.Report) string {
	switch {
	case report.Operation != nil:
		return "operation"
	case report.Event != nil:
		return "event"
	case report.Status != nil:
		return "status"
	default:
		return "tree"
	}
}
