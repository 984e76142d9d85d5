package target

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestSharedResources(t *testing.T) {
	registry := NewRegistry()
	ref := func(name string) Ref { return Ref{Kind: "ConfigMap", Namespace: "ns", Name: name} }
	track := func(name string, id int64, declared time.Time, names ...string) {
		w := Workload{Name: name, Instance: Instance{WorkloadInstance, id}, Declared: declared}
		for _, object := range names {
			w.Resources = append(w.Resources, Resource{Ref: ref(object)})
		}
		registry.Track(w)
	}
	track("later", 1, start.Add(time.Minute), "common", "own")
	track("first", 2, start, "common")
	track("same-instance", 2, start, "common", "of-two-workloads")
	track("alone", 2, start, "of-two-workloads")

	for workload, want := range map[string]string{
		"later":         "[{ConfigMap ns/common [first same-instance] first}] beside [first same-instance]",
		"first":         "[{ConfigMap ns/common [later] first}] beside [alone later same-instance]",
		"same-instance": "[{ConfigMap ns/common [later] first}] beside [alone first later]",
		"alone":         "[] beside [first same-instance]",
		"unknown":       "[] beside []",
	} {
		shared := []string{}
		for _, r := range registry.SharedResources(workload) {
			shared = append(shared, fmt.Sprintf("{%s %v %s}", r.Ref, r.Workloads, r.First))
		}
		if got := fmt.Sprintf("%v beside %v", shared, registry.WorkloadsBeside(workload)); got != want {
			t.Errorf("%s shares %s, want %s", workload, got, want)
		}
	}
	if instances, resources := registry.sharedInstances(), registry.sharedResources(); instances != 1 || resources != 1 {
		t.Errorf("%d instances and %d resources are shared, want 1 and 1", instances, resources)
	}

	var order []string
	for _, attribution := range registry.Attributions(Identity{Ref: ref("common")}) {
		order = append(order, attribution.Workload)
	}
	if want := []string{"first", "same-instance", "later"}; !slices.Equal(order, want) {
		t.Errorf("the workloads of the object are %v, want %v", order, want)
	}
}
