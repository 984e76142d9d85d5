package target

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// trackWithLabelledPods declares a workload, and creates Pods with its label in another namespace, each owned by the nine before.
func trackWithLabelledPods(pods int) (*Registry, Workload) {
	r, wl := NewRegistry(), Workload{
		Name: "web", Instance: Instance{Type: WorkloadInstance, ID: 1},
		Resources: []Resource{{Ref: Ref{Kind: "ConfigMap", Namespace: "ns", Name: "x"}, Version: "v1"}},
	}
	r.Track(wl)
	var owners []Identity
	for i := range pods {
		id := Identity{Ref: Ref{Kind: "Pod", Namespace: "foreign", Name: fmt.Sprint(i)}, UID: types.UID(fmt.Sprint("uid-", i))}
		r.Upsert(Object{Identity: id, Instances: []Instance{wl.Instance}, Owners: owners})
		owners = append([]Identity{id}, owners[:min(len(owners), 8)]...)
	}
	return r, wl
}

// The author of Pods chooses their labels and owners. If each labelled Pod began another walk, 10,000 of them would hold the
// lock of the registry for two minutes.
func TestRegistry_VisitObjects_LabelledObjectsThatOwnEachOther(t *testing.T) {
	const pods = 500
	r, wl := trackWithLabelledPods(pods)
	visits := 0
	r.visitObjects(r.workloads[wl.Name], func(Identity) { visits++ })
	if want := pods + 1; visits != want { // and the listed name
		t.Errorf("there are %d visits of %d Pods, want %d", visits, pods, want)
	}
}

func TestRegistry_LabelUse_ManyIgnored(t *testing.T) {
	for pods, more := range map[int]bool{maxIgnored: false, maxIgnored + 1: true} {
		r, wl := trackWithLabelledPods(pods)
		if use := r.LabelUse(wl.Name); len(use.Ignored) != maxIgnored || use.More != more {
			t.Errorf("of %d Pods, %d are ignored, more: %t, want %d, %t", pods, len(use.Ignored), use.More, maxIgnored, more)
		}
	}
}
