package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// createdStore answers that each report was created, or fails.
type createdStore struct{ err error }

func (s createdStore) ApplyAs(_ context.Context, set threeport.ReportSet, _ store.ClaimPolicy) (threeport.ReportSetAnswer, []threeport.Instance, error) {
	answer := threeport.ReportSetAnswer{Items: make([]threeport.ReportAnswer, len(set.Reports))}
	for i := range answer.Items {
		answer.Items[i].Outcome = threeport.OutcomeCreated
	}
	if s.err != nil {
		answer = threeport.ReportSetAnswer{}
	}
	return answer, nil, s.err
}

// tracedEvent is an Event of a report set with a traceparent, which may be invalid.
func tracedEvent(traceparent string) string {
	return fmt.Sprintf(`{"instance":{"type":"WorkloadInstance","id":"7"},"version":"2","traceparent":%q,"event":{"uid":"u","involved":`+
		`{"kind":"Pod","namespace":"shop","name":"web-0","uid":"pod"},"type":"Normal","reason":"Started","message":"secret","time":"2026-01-02T03:04:05Z"}}`, traceparent)
}

const (
	someTrace       = "0af7651916cd43dd8448eb211c80319c"
	someTraceparent = "00-" + someTrace + "-b7ad6b7169203331-01"
)

func TestReportSets_SampledReports_HaveSpans(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		reports []string
		failed  error
		spans   int
	}{
		{"one is sampled", []string{tracedEvent(someTraceparent), tracedEvent("00-" + someTrace + "-b7ad6b7169203331-00"), tracedEvent("")}, nil, 1},
		{"an invalid trace is ignored", []string{tracedEvent("hunter2"), tracedEvent(strings.Repeat("0", 10_000))}, nil, 0},
		{"a trace is too long", []string{tracedEvent("01" + someTraceparent[2:] + "-" + strings.Repeat("0", maxTraceparent))}, nil, 0},
		{"the database fails", []string{tracedEvent(someTraceparent)}, errors.New("hunter2"), 1},
		{"an agent that samples all", slicesOf(tracedEvent(someTraceparent), 150), nil, maxStoreSpans},
	} {
		recorder := tracetest.NewSpanRecorder()
		r := newReportSets(createdStore{tc.failed}, DefaultLimits(), newMetrics(), &claims{})
		r.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("")
		url := serveSets(t, r, slog.New(slog.DiscardHandler))
		answer := send(t, http.DefaultClient, http.MethodPost, url, asJSON(), []byte(`{`+someAgent+`,"reports":[`+strings.Join(tc.reports, ",")+`]}`))
		if want := http.StatusOK; tc.failed == nil && answer.code != want {
			t.Errorf("%s: the answer is %d %s, want %d", tc.reason, answer.code, answer.body, want)
		}
		spans := recorder.Ended()
		if len(spans) != tc.spans {
			t.Errorf("%s: %d spans, want %d", tc.reason, len(spans), tc.spans)
			continue
		}
		for _, span := range spans {
			checkStoreSpan(t, tc.reason, span, tc.failed != nil)
		}
	}
}

func slicesOf(text string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = text
	}
	return out
}

func checkStoreSpan(t *testing.T, reason string, span sdktrace.ReadOnlySpan, failed bool) {
	t.Helper()
	if span.Name() != "store" || span.Parent().TraceID().String() != someTrace || !span.Parent().IsRemote() || (span.Status().Code == codes.Error) != failed {
		t.Errorf("%s: the span is %s of %v with %v", reason, span.Name(), span.Parent(), span.Status())
	}
	attributes := map[string]string{}
	for _, attribute := range span.Attributes() {
		attributes[string(attribute.Key)] = attribute.Value.String()
	}
	for name, want := range map[string]string{
		"k8s.cluster.uid": "c", "k8s.namespace.name": "shop", "k8s.object.kind": "Pod", "k8s.object.name": "web-0", "k8s.object.uid": "pod",
		"threeport.workload.type": "WorkloadInstance", "threeport.workload.id": "7", "threeport.report.kind": "event",
	} {
		if attributes[name] != want {
			t.Errorf("%s: %s is %q, want %q", reason, name, attributes[name], want)
		}
	}
	if _, hasOutcome := attributes["threeport.report.outcome"]; hasOutcome == failed {
		t.Errorf("%s: the outcome is %q", reason, attributes["threeport.report.outcome"])
	}
	if text := fmt.Sprint(attributes, span.Status()); strings.Contains(text, "secret") || strings.Contains(text, "hunter2") {
		t.Errorf("%s: the span has content: %s", reason, text)
	}
}

// An agent can report the name of another cluster.
func TestReportSets_ClusterNameOfSpan_IsThatOfCredential(t *testing.T) {
	agent := strings.Replace(someAgent, `"clusterUID":"c"`, `"clusterUID":"c","clusterName":"other"`, 1)
	for _, fixed := range []string{"", "bound"} {
		recorder := tracetest.NewSpanRecorder()
		r := newReportSets(createdStore{}, DefaultLimits(), newMetrics(), &claims{})
		r.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("")
		sender := auth.Principal{Role: auth.RoleAgent, ClusterUID: "c", ClusterName: fixed}
		url := serveSetsOf(t, sender, r, slog.New(slog.DiscardHandler))
		answer := send(t, http.DefaultClient, http.MethodPost, url, asJSON(), []byte(`{`+agent+`,"reports":[`+tracedEvent(someTraceparent)+`]}`))
		spans := recorder.Ended()
		if len(spans) != 1 {
			t.Fatalf("the answer is %d %s with %d spans, want 1", answer.code, answer.body, len(spans))
		}
		name := ""
		for _, attribute := range spans[0].Attributes() {
			if attribute.Key == "k8s.cluster.name" {
				name = attribute.Value.AsString()
			}
		}
		if name != fixed {
			t.Errorf("the span has the cluster %q, want %q, which the credential fixes", name, fixed)
		}
	}
}

// A text that no valid report has would hold its memory until the export.
func TestSpanAttributes_LongText_IsLeftOut(t *testing.T) {
	report := &threeport.Report{Event: &threeport.EventReport{Involved: threeport.ObjectRef{Kind: "Pod", Name: strings.Repeat("x", maxSpanText+1)}}}
	for _, attribute := range spanAttributes("", "", report) {
		if attribute.Key == "k8s.object.name" {
			t.Errorf("the name has %d bytes, want none", len(attribute.Value.AsString()))
		}
	}
}
