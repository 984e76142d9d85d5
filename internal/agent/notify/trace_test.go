package notify

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// sampled returns reports with traces, and the recorder of the spans that end.
func sampled(reports ...observe.Report) ([]observe.Report, *tracetest.SpanRecorder) {
	recorder := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("")
	for i, report := range reports {
		_, span := tracer.Start(context.Background(), "observe")
		reports[i] = observe.WithSpan(report, span)
	}
	return reports, recorder
}

// requestsOf returns the spans of requests, as W3C Trace Context names them, and those that failed.
func requestsOf(t *testing.T, recorder *tracetest.SpanRecorder) (all, failed []string) {
	t.Helper()
	parents := map[string]bool{}
	for _, span := range recorder.Ended() {
		if span.Name() == "outbox" {
			parents[span.SpanContext().SpanID().String()] = true
		}
	}
	for _, span := range recorder.Ended() {
		if span.Name() != "request" {
			continue
		}
		if !parents[span.Parent().SpanID().String()] {
			t.Error("the parent of a request is not the span of the outbox")
		}
		name := fmt.Sprintf("00-%s-%s-01", span.SpanContext().TraceID(), span.SpanContext().SpanID())
		all = append(all, name)
		if span.Status().Code == codes.Error {
			failed = append(failed, name)
		}
	}
	return all, failed
}

func (b *negotiationBench) untilEmpty() {
	for b.box.Pending() > 0 {
		runtime.Gosched()
	}
}

// The field is sent if the control plane offers it. One that no longer takes it gets the report without it.
func TestSetSender_Traceparent_OnlyIfOffered(t *testing.T) {
	for _, tc := range []struct {
		reason           string
		features         string
		refuses          bool // sets with the field
		requests, fields int
	}{
		{reason: "this release", features: `["traceparent"]`, requests: 2, fields: 2},
		{reason: "an earlier release", features: `["pods"]`, requests: 2},
		{reason: "an earlier release has replaced it", features: `["traceparent"]`, refuses: true, requests: 3},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			m := newModel(t)
			m.offers = func() string { return tc.features }
			hasField := func(r threeport.Report) bool { return r.Traceparent != "" }
			m.refuse = func(w http.ResponseWriter, set threeport.ReportSet, _ string) bool {
				no := tc.refuses && slices.ContainsFunc(set.Reports, hasField)
				if no {
					refuseFields(w)
				}
				return no
			}
			b := newNegotiationBench(t, m, nil)
			reports, recorder := sampled(eventAt("a", "1"), status(1, "Healthy"))
			b.run(func() {
				b.untilChanged()
				for _, report := range reports { // each in a set of its own
					b.offer(report)
					b.untilEmpty()
				}
				b.offer(eventAt("not sampled", "1"))
				b.untilEmpty()
			})
			var fields []string
			for _, set := range m.sets {
				for _, report := range set.Reports {
					if hasField(report) {
						fields = append(fields, report.Traceparent)
					}
				}
			}
			spans, failed := requestsOf(t, recorder)
			if len(spans) != tc.requests || len(failed) != tc.requests-2 || len(fields) != tc.fields {
				t.Errorf("%d spans, %d of them failed, and %d fields; want %d, %d and %d",
					len(spans), len(failed), len(fields), tc.requests, tc.requests-2, tc.fields)
			}
			for _, field := range fields {
				if !slices.Contains(spans, field) {
					t.Errorf("the field %s is no span of %s", field, spans)
				}
			}
			if b.box.DeadLetters() != 0 {
				t.Errorf("%d dead letters", b.box.DeadLetters())
			}
		})
	}
}

// The field is too short to make a set too large.
func TestSetSender_TracedReportTooLarge_IsRejected(t *testing.T) {
	m := newModel(t)
	m.offers = func() string { return `["traceparent"]` }
	m.refuse = func(w http.ResponseWriter, set threeport.ReportSet, _ string) bool {
		if len(set.Reports) > 0 {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
		return len(set.Reports) > 0
	}
	b := newNegotiationBench(t, m, nil)
	reports, recorder := sampled(eventAt("a", "1"))
	b.run(func() {
		b.untilChanged()
		b.offer(reports...)
		b.untilEmpty()
	})
	if _, failed := requestsOf(t, recorder); len(failed) != 1 || b.box.DeadLetters() != 1 {
		t.Errorf("%d failed requests and %d dead letters, want one of each", len(failed), b.box.DeadLetters())
	}
}

// In v0, and for proxies, the trace is in the header.
func TestSender_Traceparent_IsInTheHeader(t *testing.T) {
	for _, sets := range []bool{false, true} {
		m := newModel(t)
		var headers []string
		m.seen = func(r *http.Request) {
			if header := r.Header.Get("Traceparent"); header != "" {
				headers = append(headers, header)
			}
		}
		m.takes = func() bool { return sets }
		b := newNegotiationBench(t, m, nil)
		reports, recorder := sampled(status(1, "Healthy"))
		b.run(func() {
			if sets {
				b.untilChanged()
			}
			b.offer(status(2, "Healthy"))
			b.untilEmpty()
			b.offer(reports...)
			b.untilEmpty()
		})
		spans, _ := requestsOf(t, recorder)
		if len(spans) != 1 || strings.Join(headers, " ") != spans[0] {
			t.Errorf("report sets %t: the headers are %q, want that of the span %q", sets, headers, spans)
		}
	}
}

func TestNotifier_LogOfSampledReport_HasItsTrace(t *testing.T) {
	reports, recorder := sampled(eventAt("a", "1"))
	b := newBench(DefaultConfig(), &script{answer: func(context.Context, outbox.Item) (outbox.Receipt, error) { return outbox.Receipt{}, errBad }})
	b.flush(t, reports...)
	trace := recorder.Ended()[0].SpanContext().TraceID().String()
	if b.logged(trace) != 1 {
		t.Errorf("the log is %q, want a line with the trace %s", b.logs, trace)
	}
}
