package threeport

import (
	"testing"
	"time"

	otrace "go.opentelemetry.io/otel/trace"
)

func TestReport_Keep_Tree(t *testing.T) {
	for _, tc := range []struct {
		reason       string
		features     []string
		pods, starts bool // are kept
	}{
		{reason: "an earlier release"},
		{reason: "one feature", features: []string{"other", FeaturePods}, pods: true},
		{reason: "this release", features: []string{FeaturePods, FeatureSince}, pods: true, starts: true},
	} {
		tree := Report{Tree: &TreeReport{Objects: []TreeObject{{}, {Pod: &PodFacts{}, Since: &time.Time{}}}}}
		removed := tree.Keep(tc.features)
		if o := tree.Tree.Objects[1]; (o.Pod != nil) != tc.pods || (o.Since != nil) != tc.starts || removed != (!tc.pods || !tc.starts) {
			t.Errorf("%s: facts %t, start %t, removed %t; want %t and %t", tc.reason, o.Pod != nil, o.Since != nil, removed, tc.pods, tc.starts)
		}
		if tree.Keep(tc.features) {
			t.Errorf("%s: fields were removed twice", tc.reason)
		}
	}
}

func TestReport_Keep_FilteredObjects(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		features []string
		kept     int64
	}{
		{"an earlier release", []string{FeaturePods, FeatureSince, FeatureCauseSince}, 0},
		{"this release", []string{FeatureFiltered}, 3},
	} {
		report := Report{Tree: &TreeReport{Filtered: 3}}
		if removed := report.Keep(tc.features); report.Tree.Filtered != tc.kept || removed != (tc.kept == 0) {
			t.Errorf("%s: %d filtered objects, removed %t; want %d", tc.reason, report.Tree.Filtered, removed, tc.kept)
		}
	}
}

func TestReport_Keep_Status(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		features []string
		kept     bool
	}{
		{"an earlier release", []string{FeaturePods, FeatureSince}, false},
		{"this release", []string{FeatureCauseSince}, true},
	} {
		report := Report{Status: &StatusReport{Since: &time.Time{}, CauseSince: &time.Time{}}}
		removed := report.Keep(tc.features)
		if kept := report.Status.CauseSince != nil; kept != tc.kept || removed == tc.kept || report.Status.Since == nil {
			t.Errorf("%s: the start of the cause is kept: %t, removed %t; want %t", tc.reason, kept, removed, tc.kept)
		}
		if report.Keep(tc.features) {
			t.Errorf("%s: a field was removed twice", tc.reason)
		}
	}
}

func TestReport_Keep_Traceparent(t *testing.T) {
	report := Report{Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Event: &EventReport{}}
	if report.Keep([]string{FeatureTraceparent}) || report.Traceparent == "" {
		t.Error("the trace is removed for a server that takes it")
	}
	if !report.Keep([]string{FeaturePods}) || report.Traceparent != "" || report.Keep(nil) {
		t.Errorf("the trace is %q for an earlier release, want none", report.Traceparent)
	}
}

func TestReport_Trace(t *testing.T) {
	const trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for _, tc := range []struct {
		reason, text string
		sampled      bool
	}{
		{"sampled", "00-" + trace + "-" + span + "-01", true},
		{"of a later version of the format", "01-" + trace + "-" + span + "-01-more", true},
		{"not sampled", "00-" + trace + "-" + span + "-00", false},
		{"none", "", false},
		{"no traceparent", "hunter2", false},
		{"zeros", "00-00000000000000000000000000000000-" + span + "-01", false},
	} {
		report := Report{Traceparent: tc.text}
		ctx, sampled := report.Trace(t.Context())
		if sampled != tc.sampled {
			t.Errorf("%s: sampled is %t, want %t", tc.reason, sampled, tc.sampled)
		}
		if of := otrace.SpanContextFromContext(ctx); sampled && (of.TraceID().String() != trace || of.SpanID().String() != span || !of.IsRemote()) {
			t.Errorf("%s: the span is %v", tc.reason, of)
		}
		if tc.reason == "sampled" {
			var copied Report
			if copied.SetTrace(t.Context(), otrace.SpanContextFromContext(ctx)); copied.Traceparent != tc.text {
				t.Errorf("the field is %q, want %q", copied.Traceparent, tc.text)
			}
		}
	}
}
