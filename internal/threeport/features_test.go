package threeport

import (
	"testing"
	"time"
)

func TestTreeReport_Keep(t *testing.T) {
	for _, tc := range []struct {
		reason       string
		features     []string
		pods, starts bool // are kept
	}{
		{reason: "an earlier release"},
		{reason: "one feature", features: []string{"other", FeaturePods}, pods: true},
		{reason: "this release", features: []string{FeaturePods, FeatureSince}, pods: true, starts: true},
	} {
		tree := TreeReport{Objects: []TreeObject{{}, {Pod: &PodFacts{}, Since: &time.Time{}}}}
		removed := tree.Keep(tc.features)
		if o := tree.Objects[1]; (o.Pod != nil) != tc.pods || (o.Since != nil) != tc.starts || removed != (!tc.pods || !tc.starts) {
			t.Errorf("%s: facts %t, start %t, removed %t; want %t and %t", tc.reason, o.Pod != nil, o.Since != nil, removed, tc.pods, tc.starts)
		}
		if tree.Keep(tc.features) {
			t.Errorf("%s: fields were removed twice", tc.reason)
		}
	}
}
