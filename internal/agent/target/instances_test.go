package target

import (
	"fmt"
	"slices"
	"testing"
)

func TestInstancesAndTheirParts(t *testing.T) {
	registry := NewRegistry()
	one, two := Instance{WorkloadInstance, 2}, Instance{HelmWorkloadInstance, 3}
	ref := func(kind, name string) Ref { return Ref{Kind: kind, Namespace: "ns", Name: name} }
	for _, w := range []Workload{
		{Name: "b", Instance: one, Resources: []Resource{{Ref: ref("ConfigMap", "b")}}},
		{Name: "a", Instance: one, Resources: []Resource{{Ref: ref("ConfigMap", "a")}}},
		{Name: "c", Instance: two},
	} {
		registry.Track(w)
	}
	if got := registry.Instances(); !slices.Equal(got, []Instance{two, one}) {
		t.Errorf("instances are %v", got)
	}
	owner := Identity{ref("ConfigMap", "a"), "owner"}
	child := Identity{ref("Pod", "child"), "child"}
	labelled := Identity{ref("Pod", "labelled"), "labelled"}
	gone := Identity{ref("ConfigMap", "b"), "gone"}
	for _, o := range []Object{
		{Identity: owner},
		{Identity: child, Owners: []Identity{owner}, Instances: []Instance{one}}, // by both, and once
		{Identity: labelled, Instances: []Instance{two}},
		{Identity: gone},
		{Identity: Identity{ref("Pod", "strange"), "strange"}},
	} {
		registry.Upsert(o)
	}
	registry.Delete("gone", start)
	for instance, want := range map[Instance]string{
		one:                      "parts [a b] concerned [ConfigMap ns/a  ConfigMap ns/a owner ConfigMap ns/b  ConfigMap ns/b gone Pod ns/child child]",
		two:                      "parts [c] concerned [Pod ns/labelled labelled]",
		{WorkloadInstance, 1000}: "parts [] concerned []",
	} {
		var parts, concerned []string
		for _, w := range registry.WorkloadsOf(instance) {
			parts = append(parts, w.Name)
		}
		for _, id := range registry.ObjectsOf(instance) {
			concerned = append(concerned, fmt.Sprintf("%s %s", id.Ref, id.UID))
		}
		slices.Sort(concerned)
		if got := fmt.Sprintf("parts %v concerned %v", parts, concerned); got != want {
			t.Errorf("%s has %s, expected %s", instance, got, want)
		}
	}
}
