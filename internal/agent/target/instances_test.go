package target

import (
	"fmt"
	"slices"
	"testing"
)

func TestInstances_WorkloadsAndObjects(t *testing.T) {
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
		t.Errorf("instances are %v, want %v and %v", got, two, one)
	}
	owner := Identity{ref("ConfigMap", "a"), "owner"}
	child := Identity{ref("Pod", "child"), "child"}
	labelled := Identity{ref("Pod", "labelled"), "labelled"}
	deleted := Identity{ref("ConfigMap", "b"), "deleted"}
	for _, o := range []Object{
		{Identity: owner},
		{Identity: child, Owners: []Identity{owner}, Instances: []Instance{one}}, // by owner and by label
		{Identity: labelled, Instances: []Instance{two}},
		{Identity: deleted},
		{Identity: Identity{ref("Pod", "other"), "other"}},
	} {
		registry.Upsert(o)
	}
	registry.Delete("deleted", start)
	for instance, want := range map[Instance]string{
		one:                                "workloads [a b] objects [ConfigMap ns/a  ConfigMap ns/a owner ConfigMap ns/b  ConfigMap ns/b deleted Pod ns/child child]",
		two:                                "workloads [c] objects [Pod ns/labelled labelled]",
		{Type: WorkloadInstance, ID: 1000}: "workloads [] objects []",
	} {
		var workloads, objects []string
		for _, w := range registry.WorkloadsOf(instance) {
			workloads = append(workloads, w.Name)
		}
		for _, id := range registry.ObjectsOf(instance) {
			objects = append(objects, fmt.Sprintf("%s %s", id.Ref, id.UID))
		}
		slices.Sort(objects)
		if got := fmt.Sprintf("workloads %v objects %v", workloads, objects); got != want {
			t.Errorf("%s has %s, want %s", instance, got, want)
		}
	}
}
