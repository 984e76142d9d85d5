package target

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestAttributions_Rules(t *testing.T) {
	var (
		stranger = ident(podKind, "stranger", "uid-stranger")
		cronRS   = ident(replicaSetKind, "other", "uid-other")
		clusterP = clusterScoped(ident(nodeKind, "parent", "uid-parent"))
		foreign  = Identity{Ref: Ref{Kind: "Pod", Namespace: "evil", Name: "p"}, UID: "uid-evil"}
	)
	tests := []struct {
		reason    string
		workloads []Workload
		objects   []Object
		about     Identity
		want      []string
	}{
		{
			reason:    "a listed object is attributed by its name, even if it is unknown",
			workloads: []Workload{workload("shop", 1, web)},
			about:     web,
			want:      []string{"shop: Deployment app/web itself"},
		},
		{
			reason:    "a chain of any length leads to the listed object",
			workloads: []Workload{workload("shop", 1, web)},
			objects:   []Object{owned(web), owned(webRS, web), owned(webPod, webRS)},
			about:     webPod,
			want:      []string{"shop: Deployment app/web"},
		},
		{
			reason:    "the listed owner is known only by the reference to it",
			workloads: []Workload{workload("shop", 1, web)},
			objects:   []Object{owned(webRS, web), owned(webPod, webRS)},
			about:     webPod,
			want:      []string{"shop: Deployment app/web"},
		},
		{
			reason:    "an unknown owner in between ends the chain",
			workloads: []Workload{workload("shop", 1, web)},
			objects:   []Object{owned(web), owned(webPod, webRS)},
			about:     webPod,
		},
		{
			reason:    "an unlisted object without owners and labels belongs to no workload",
			workloads: []Workload{workload("shop", 1, web)},
			objects:   []Object{owned(stranger)},
			about:     stranger,
		},
		{
			reason:    "the nearest listed ancestor decides",
			workloads: []Workload{workload("shop", 1, web), workload("sets", 2, webRS)},
			objects:   []Object{owned(web), owned(webRS, web), owned(webPod, webRS)},
			about:     webPod,
			want:      []string{"sets: ReplicaSet app/web-1"},
		},
		{
			reason:    "an object that is listed itself does not belong to its owner's workload",
			workloads: []Workload{workload("shop", 1, web), workload("pods", 2, webPod)},
			objects:   []Object{owned(web), owned(webRS, web), owned(webPod, webRS)},
			about:     webPod,
			want:      []string{"pods: Pod app/web-1-x itself"},
		},
		{
			reason:    "several workloads list one object: all count, ordered by instance ID if declared at one time",
			workloads: []Workload{workload("b", 2, web), workload("a", 3, web), workload("c", 1, web)},
			objects:   []Object{owned(web), owned(webRS, web)},
			about:     webRS,
			want:      []string{"c: Deployment app/web", "b: Deployment app/web", "a: Deployment app/web"},
		},
		{
			reason:    "two listed owners of the same level both count",
			workloads: []Workload{workload("shop", 1, web), workload("sets", 2, cronRS)},
			objects:   []Object{owned(web), owned(cronRS), owned(webPod, cronRS, web)},
			about:     webPod,
			want:      []string{"shop: Deployment app/web", "sets: ReplicaSet app/other"},
		},
		{
			reason:    "a label counts if no owner is listed",
			workloads: []Workload{workload("shop", 1, web)},
			objects:   []Object{labelled(owned(stranger), 1)},
			about:     stranger,
			want:      []string{"shop"},
		},
		{
			reason:    "a label is inherited from an owner",
			workloads: []Workload{workload("shop", 1, web)},
			objects:   []Object{labelled(owned(cronRS), 1), owned(stranger, cronRS)},
			about:     stranger,
			want:      []string{"shop"},
		},
		{
			reason:    "the nearest label counts",
			workloads: []Workload{labelsIn(workload("shop", 1), "app"), labelsIn(workload("far", 2), "app")},
			objects:   []Object{labelled(owned(cronRS), 2), labelled(owned(stranger, cronRS), 1)},
			about:     stranger,
			want:      []string{"shop"},
		},
		{
			reason:    "a listed owner outweighs a label, however far away it is",
			workloads: []Workload{workload("shop", 1, web), workload("label", 2)},
			objects:   []Object{owned(web), owned(webRS, web), labelled(owned(webPod, webRS), 2)},
			about:     webPod,
			want:      []string{"shop: Deployment app/web"},
		},
		{
			reason:    "a label of an unknown instance has no effect",
			workloads: []Workload{workload("shop", 1, web)},
			objects:   []Object{labelled(owned(stranger), 9)},
			about:     stranger,
		},
		{
			reason:    "all workloads of a labelled instance count, in an order that does not depend on the labels",
			workloads: []Workload{labelsIn(workload("b", 1), "app"), labelsIn(workload("a", 1), "app"), labelsIn(workload("z", 2), "app")},
			objects:   []Object{labelled(owned(stranger), 2, 1)},
			about:     stranger,
			want:      []string{"a", "b", "z"},
		},
		{
			reason:    "a namespaced object has a known cluster-scoped owner",
			workloads: []Workload{workload("shop", 1, clusterP)},
			objects:   []Object{owned(clusterP), owned(stranger, ident(nodeKind, "parent", "uid-parent"))},
			about:     stranger,
			want:      []string{"shop: Node parent"},
		},
		{
			reason:    "a namespaced object has a cluster-scoped owner, known only by the reference",
			workloads: []Workload{workload("shop", 1, clusterP)},
			objects:   []Object{owned(stranger, ident(nodeKind, "parent", "uid-parent"))},
			about:     stranger,
			want:      []string{"shop: Node parent"},
		},
		{
			reason:    "the owner is cluster-scoped and known; a listed namespaced object of the same name is another object",
			workloads: []Workload{workload("shop", 1, ident(nodeKind, "parent", ""))},
			objects:   []Object{owned(clusterP), owned(stranger, ident(nodeKind, "parent", "uid-parent"))},
			about:     stranger,
		},
		{
			reason:    "a reference to the UID of an owner in another namespace",
			workloads: []Workload{workload("shop", 1, web)},
			objects:   []Object{owned(web), owned(foreign, Identity{Ref: Ref{Group: "apps", Kind: "Deployment", Namespace: "evil", Name: "web"}, UID: web.UID})},
			about:     foreign,
		},
		{
			reason:    "a reference to the UID of an owner with another name",
			workloads: []Workload{workload("shop", 1, web)},
			objects:   []Object{owned(web), owned(stranger, ident(deploymentKind, "other", web.UID))},
			about:     stranger,
		},
		{
			reason:    "the search ends in an owner cycle, and finds the listed owner",
			workloads: []Workload{workload("shop", 1, web)},
			objects:   []Object{owned(webRS, webPod), owned(webPod, webRS), owned(stranger, webPod, web)},
			about:     stranger,
			want:      []string{"shop: Deployment app/web"},
		},
		{
			reason:  "the search ends in an owner cycle, and finds nothing",
			objects: []Object{owned(webRS, webPod), owned(webPod, webRS), owned(stranger, stranger)},
			about:   webPod,
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			r := NewRegistry()
			for _, w := range tt.workloads {
				r.Track(w)
			}
			for _, o := range tt.objects {
				r.Upsert(o)
			}
			expectAttributions(t, r, tt.about, tt.want...)
		})
	}
}

func TestAttributionsByName_AnotherIncarnationExists(t *testing.T) {
	again := ident(deploymentKind, "web", "uid-web-2")
	withoutUID := web
	withoutUID.UID = ""
	tests := []struct {
		reason string
		before func(*Registry)
		about  Identity
		want   []string
	}{
		{
			reason: "no object of the name is known",
			before: func(*Registry) {},
			about:  web,
			want:   []string{"shop: Deployment app/web itself"},
		},
		{
			reason: "the object itself exists",
			before: func(r *Registry) { r.Upsert(owned(web)) },
			about:  web,
			want:   []string{"shop: Deployment app/web itself"},
		},
		{
			reason: "another incarnation exists",
			before: func(r *Registry) { r.Upsert(owned(again)) },
			about:  web,
		},
		{
			reason: "an Event without a UID is about the existing object",
			before: func(r *Registry) { r.Upsert(owned(again)) },
			about:  withoutUID,
			want:   []string{"shop: Deployment app/web itself"},
		},
		{
			reason: "another incarnation was deleted",
			before: func(r *Registry) { r.Upsert(owned(again)); r.Delete(again.UID, time.Now()) },
			about:  web,
			want:   []string{"shop: Deployment app/web itself"},
		},
		{
			reason: "the name is not listed",
			before: func(*Registry) {},
			about:  webPod,
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			r := NewRegistry()
			shop := workload("shop", 1, web)
			shop.Declared = start
			r.Track(shop)
			tt.before(r)
			if got := attributionTexts(r.AttributionsByName(tt.about, start.Add(-time.Second))); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAttributionsByName_AnotherIncarnationExists_WorkloadDeclaredBeforeEvent(t *testing.T) {
	r := NewRegistry()
	declared := workload("shop", 1, web)
	declared.Declared = start
	r.Track(declared)
	r.Track(workload("unknown", 2, web))
	r.Upsert(owned(ident(deploymentKind, "web", "uid-web-2")))
	for at, want := range map[time.Time]int{start.Add(-time.Second): 0, start: 1, start.Add(time.Second): 1} {
		if got := attributionTexts(r.AttributionsByName(web, at)); len(got) != want {
			t.Errorf("Event created %s after the declaration: attributions are %q, want %d", at.Sub(start), got, want)
		}
	}
}

// An Event has one row, so it must not depend on the order of declarations whether its object is known.
func TestAttributionsByName_OrderedAsAttributions(t *testing.T) {
	ref := Ref{Kind: "ConfigMap", Namespace: "ns", Name: "conf"}
	r := NewRegistry()
	for _, id := range []int64{9, 3, 7} {
		r.Track(Workload{
			Name: fmt.Sprintf("workload-%d", id), Instance: Instance{Type: WorkloadInstance, ID: id},
			Resources: []Resource{{Ref: ref, Version: "v1"}},
		})
	}
	unknown := r.AttributionsByName(Identity{Ref: ref, UID: "u"}, time.Now())
	r.Upsert(Object{Identity: Identity{Ref: ref, UID: "u"}})
	known := r.Attributions(Identity{Ref: ref, UID: "u"})
	if !slices.Equal(unknown, known) || len(known) != 3 || known[0].Instance.ID != 3 {
		t.Errorf("before the object is known: %v, afterwards: %v; want the same, the lowest ID first", unknown, known)
	}
}
