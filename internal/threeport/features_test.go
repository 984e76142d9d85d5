package threeport

import (
	"testing"
	"time"
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
