package observe

import (
	"encoding/json"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

func TestSpanOf(t *testing.T) {
	instance := target.Instance{Type: target.WorkloadInstance, ID: 7}
	_, span := sdktrace.NewTracerProvider().Tracer("").Start(t.Context(), "observe")
	for _, report := range []Report{
		Operation{Attribution: target.Attribution{Instance: instance}}, Event{Workload: instance}, Status{Workload: instance}, Tree{Workload: instance},
	} {
		traced := WithSpan(report, span)
		if SpanOf(report) != nil || SpanOf(traced) != span {
			t.Errorf("%s: the span is %v, want one with WithSpan only", report, SpanOf(report))
		}
		if traced.Version() != report.Version() || traced.Key() != report.Key() {
			t.Errorf("%s: the trace changes the version or the key", report)
		}
		before, err := json.Marshal(report)
		after, err2 := json.Marshal(traced)
		if err != nil || err2 != nil || string(before) != string(after) {
			t.Errorf("%s: the record of the report has the trace: %s", report, after)
		}
	}
	if StartSpan(Event{}, "outbox", 0) != nil || SpanOf(nil) != nil {
		t.Error("a report that is not sampled has a span")
	}
}

func TestSpanAttributes_NameTheObject(t *testing.T) {
	instance := target.Instance{Type: target.WorkloadInstance, ID: 7}
	ref := target.Ref{Kind: "Pod", Namespace: "shop", Name: "web-0"}
	of := map[string]string{"k8s.object.kind": "Pod", "k8s.object.name": "web-0", "k8s.object.uid": "u", "k8s.namespace.name": "shop"}
	for _, tc := range []struct {
		report Report
		kind   string
		object map[string]string
	}{
		{Operation{Attribution: target.Attribution{Instance: instance}, Object: target.Identity{Ref: ref, UID: "u"}}, "operation", of},
		{Event{Workload: instance, Involved: ref, InvolvedUID: "u", Message: "secret"}, "event", of},
		{Status{Workload: instance, Cause: "secret"}, "status", nil},
		{Tree{Workload: instance}, "tree", nil},
	} {
		got := map[string]string{}
		for _, attribute := range SpanAttributes(tc.report) {
			got[string(attribute.Key)] = attribute.Value.AsString()
		}
		delete(got, "k8s.event.reason")
		if got["threeport.report.kind"] != tc.kind || got["threeport.workload.type"] != "WorkloadInstance" || got["threeport.workload.id"] != "7" ||
			len(got) != 3+len(tc.object) {
			t.Errorf("the attributes of %s are %v", tc.report, got)
		}
		for name, want := range tc.object {
			if got[name] != want {
				t.Errorf("%s of %s is %q, want %q", name, tc.report, got[name], want)
			}
		}
	}
}
