package target

import (
	"slices"
	"testing"
)

// A label counts only in the namespaces of the workload, so that a user of another namespace cannot add objects to it.
func TestLabels_CountInNamespacesOfWorkload(t *testing.T) {
	in := func(namespace string, id Identity) Identity {
		id.Namespace = namespace
		return id
	}
	helm := func(w Workload) Workload {
		w.Instance.Type = HelmWorkloadInstance
		return w
	}
	pod := ident(podKind, "p", "uid-p")
	parent := clusterScoped(ident(nodeKind, "parent", "uid-parent"))
	bare := in("", ident(deploymentKind, "bare", ""))
	for _, tt := range []struct {
		reason     string
		workload   Workload
		about      Identity
		namespaced bool // whether the scope of Deployments is known
		counts     bool
		everywhere bool
	}{
		{reason: "the namespace of a resource", workload: workload("shop", 1, web), about: pod, counts: true},
		{reason: "another namespace", workload: workload("shop", 1, web), about: in("evil", pod)},
		{reason: "the default namespace of the resources", workload: workload("shop", 1, bare), namespaced: true, about: in("default", pod), counts: true},
		{reason: "not the default namespace", workload: workload("shop", 1, bare), namespaced: true, about: in("evil", pod)},
		{reason: "a namespace of the annotation", workload: labelsIn(workload("shop", 1, web), "more"), about: in("more", pod), counts: true},
		{reason: "no namespace at all", workload: workload("shop", 1), about: pod},
		{reason: "only cluster-scoped resources", workload: workload("shop", 1, parent), about: pod},
		{reason: "a cluster-scoped object", workload: workload("shop", 1, web), about: clusterScoped(ident(nodeKind, "n", "uid-n")), counts: true},
		{reason: "the namespace of a release", workload: helm(workload("chart", 1, web)), about: pod, counts: true},
		{reason: "not the namespace of a release", workload: helm(workload("chart", 1, web)), about: in("evil", pod)},
		{
			reason: "an unknown release", workload: helm(workload("chart", 1, bare)), namespaced: true, about: in("any", pod),
			counts: true, everywhere: true,
		},
		{reason: "a release in the annotation", workload: labelsIn(helm(workload("chart", 1, bare)), "app"), about: pod, counts: true},
		{reason: "not the release in the annotation", workload: labelsIn(helm(workload("chart", 1, bare)), "app"), about: in("any", pod)},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			r := NewRegistry()
			r.Upsert(Object{Identity: tt.about, Instances: []Instance{tt.workload.Instance}})
			r.Track(tt.workload)
			if tt.namespaced {
				r.SetScope(deploymentKind, true)
			}
			var want []string
			var ignored []Ref
			if tt.counts {
				want = []string{tt.workload.Name}
			} else {
				ignored = []Ref{tt.about.Ref}
			}
			expectAttributions(t, r, tt.about, want...)
			use := r.LabelUse(tt.workload.Name)
			if use.Everywhere != tt.everywhere || !slices.Equal(use.Ignored, ignored) {
				t.Errorf("the use of the label is %+v, want everywhere %t and ignored %v", use, tt.everywhere, ignored)
			}
		})
	}
}

// The label of a cluster-scoped owner does not reach into other namespaces.
func TestLabels_OfClusterScopedOwner(t *testing.T) {
	r := NewRegistry()
	r.Track(workload("shop", 1, web))
	parent := clusterScoped(ident(nodeKind, "parent", "uid-parent"))
	r.Upsert(labelled(owned(parent), 1))
	inside, outside := ident(podKind, "in", "uid-in"), ident(podKind, "out", "uid-out")
	outside.Namespace = "evil"
	r.Upsert(owned(inside, ident(nodeKind, "parent", parent.UID)))
	r.Upsert(owned(outside, parent))
	expectAttributions(t, r, inside, "shop")
	expectAttributions(t, r, outside)
}

func TestLabels_AnnotationChanges_AffectsObjects(t *testing.T) {
	r := NewRegistry()
	pod := ident(podKind, "p", "uid-p")
	pod.Namespace = "more"
	r.Upsert(labelled(owned(pod), 1))
	r.Track(workload("shop", 1, web))
	r.Drain()
	r.Track(labelsIn(workload("shop", 1, web), "more"))
	expectDrained(t, r, pod)
	expectAttributions(t, r, pod, "shop")
}
