package target

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestClaimsFollowOwnersThenLabels(t *testing.T) {
	var (
		stranger = ident(podKind, "stranger", "uid-stranger")
		cronRS   = ident(replicaSetKind, "other", "uid-other")
		clusterP = clusterWide(ident(nodeKind, "parent", "uid-parent"))
	)
	tests := []struct {
		reason    string
		workloads []Workload
		objects   []Object
		about     Identity
		want      []string
	}{
		{
			reason:    "a listed object is claimed by its name, whether it was seen or not",
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
			reason:    "the last owner of the chain may be known by the reference to it only",
			workloads: []Workload{workload("shop", 1, web)},
			objects:   []Object{owned(webRS, web), owned(webPod, webRS)},
			about:     webPod,
			want:      []string{"shop: Deployment app/web"},
		},
		{
			reason:    "an unseen owner in between hides the chain",
			workloads: []Workload{workload("shop", 1, web)},
			objects:   []Object{owned(web), owned(webPod, webRS)},
			about:     webPod,
		},
		{
			reason:    "nobody's object has no claim",
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
			reason:    "several workloads may list one object: all claim it, by instance ID",
			workloads: []Workload{workload("b", 2, web), workload("a", 3, web), workload("c", 1, web)},
			objects:   []Object{owned(web), owned(webRS, web)},
			about:     webRS,
			want:      []string{"c: Deployment app/web", "b: Deployment app/web", "a: Deployment app/web"},
		},
		{
			reason:    "two owners that are as near both count",
			workloads: []Workload{workload("shop", 1, web), workload("sets", 2, cronRS)},
			objects:   []Object{owned(web), owned(cronRS), owned(webPod, cronRS, web)},
			about:     webPod,
			want:      []string{"shop: Deployment app/web", "sets: ReplicaSet app/other"},
		},
		{
			reason:    "a label counts where there is no chain",
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
			workloads: []Workload{workload("shop", 1), workload("far", 2)},
			objects:   []Object{labelled(owned(cronRS), 2), labelled(owned(stranger, cronRS), 1)},
			about:     stranger,
			want:      []string{"shop"},
		},
		{
			reason:    "a chain outweighs a label, however far it leads",
			workloads: []Workload{workload("shop", 1, web), workload("label", 2)},
			objects:   []Object{owned(web), owned(webRS, web), labelled(owned(webPod, webRS), 2)},
			about:     webPod,
			want:      []string{"shop: Deployment app/web"},
		},
		{
			reason:    "a label that names no workload says nothing",
			workloads: []Workload{workload("shop", 1, web)},
			objects:   []Object{labelled(owned(stranger), 9)},
			about:     stranger,
		},
		{
			reason:    "all workloads of a labelled instance claim, in a stable order whatever that of the labels",
			workloads: []Workload{workload("b", 1), workload("a", 1), workload("z", 2)},
			objects:   []Object{labelled(owned(stranger), 2, 1)},
			about:     stranger,
			want:      []string{"a", "b", "z"},
		},
		{
			reason:    "a cluster-scoped owner of a namespaced object, seen",
			workloads: []Workload{workload("shop", 1, clusterP)},
			objects:   []Object{owned(clusterP), owned(stranger, ident(nodeKind, "parent", "uid-parent"))},
			about:     stranger,
			want:      []string{"shop: Node parent"},
		},
		{
			reason:    "a cluster-scoped owner of a namespaced object, known by the reference only",
			workloads: []Workload{workload("shop", 1, clusterP)},
			objects:   []Object{owned(stranger, ident(nodeKind, "parent", "uid-parent"))},
			about:     stranger,
			want:      []string{"shop: Node parent"},
		},
		{
			reason:    "a namespaced namesake of a cluster-scoped owner that was seen is another object",
			workloads: []Workload{workload("shop", 1, ident(nodeKind, "parent", ""))},
			objects:   []Object{owned(clusterP), owned(stranger, ident(nodeKind, "parent", "uid-parent"))},
			about:     stranger,
		},
		{
			reason:    "owners in a circle end, and lead where one of them is listed",
			workloads: []Workload{workload("shop", 1, web)},
			objects:   []Object{owned(webRS, webPod), owned(webPod, webRS), owned(stranger, webPod, web)},
			about:     stranger,
			want:      []string{"shop: Deployment app/web"},
		},
		{
			reason:  "owners in a circle end, and lead nowhere",
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
			expectClaims(t, r, tt.about, tt.want...)
		})
	}
}

func TestClaimsOfNameAreRuledOutByAnotherIncarnation(t *testing.T) {
	again := ident(deploymentKind, "web", "uid-web-2")
	nobody := web
	nobody.UID = ""
	tests := []struct {
		reason string
		before func(*Registry)
		about  Identity
		want   []string
	}{
		{"nothing bears the name yet", func(*Registry) {}, web, []string{"shop: Deployment app/web itself"}},
		{"the object itself bears it", func(r *Registry) { r.Upsert(owned(web)) }, web, []string{"shop: Deployment app/web itself"}},
		{"another incarnation bears it", func(r *Registry) { r.Upsert(owned(again)) }, web, nil},
		{
			"an Event that names no UID is about what bears the name",
			func(r *Registry) { r.Upsert(owned(again)) }, nobody,
			[]string{"shop: Deployment app/web itself"},
		},
		{
			"another incarnation bore it and is gone",
			func(r *Registry) { r.Upsert(owned(again)); r.Delete(again.UID, time.Now()) }, web,
			[]string{"shop: Deployment app/web itself"},
		},
		{"the name is not listed", func(*Registry) {}, webPod, nil},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			r := NewRegistry()
			shop := workload("shop", 1, web)
			shop.Declared = start
			r.Track(shop)
			tt.before(r)
			if got := claimTexts(r.AttributionsByName(tt.about, start.Add(-time.Second))); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestClaimsOfNameOfAnotherIncarnationCountFromTheDeclarationOn(t *testing.T) {
	r := NewRegistry()
	declared := workload("shop", 1, web)
	declared.Declared = start
	r.Track(declared)
	r.Track(workload("unknown", 2, web))
	r.Upsert(owned(ident(deploymentKind, "web", "uid-web-2")))
	for at, want := range map[time.Time]int{start.Add(-time.Second): 0, start: 1, start.Add(time.Second): 1} {
		if got := claimTexts(r.AttributionsByName(web, at)); len(got) != want {
			t.Errorf("of an Event %s after the declaration the claims are %q, want %d", at.Sub(start), got, want)
		}
	}
}

func TestMissingNamesTheUnknownOwnersThatHideAClaim(t *testing.T) {
	tests := []struct {
		reason  string
		listed  []Identity
		objects []Object
		about   Identity
		want    []types.UID
	}{
		{"the object itself is listed", []Identity{webPod}, []Object{owned(webPod, webRS)}, webPod, nil},
		{"the owner is unknown and not listed", []Identity{web}, []Object{owned(webPod, webRS)}, webPod, []types.UID{webRS.UID}},
		{"the owner's owner is", []Identity{}, []Object{owned(webRS, web), owned(webPod, webRS)}, webPod, []types.UID{web.UID}},
		{"the owner is unknown and listed", []Identity{webRS}, []Object{owned(webPod, webRS)}, webPod, nil},
		{"the chain ends, and nobody claims it", []Identity{web}, []Object{owned(webRS), owned(webPod, webRS)}, webPod, nil},
		{"the object is unknown", []Identity{web}, nil, webPod, nil},
		{"a circle of owners ends", []Identity{web}, []Object{owned(webRS, webPod), owned(webPod, webRS)}, webPod, nil},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			r := NewRegistry()
			r.Track(workload("shop", 1, tt.listed...))
			for _, o := range tt.objects {
				r.Upsert(o)
			}
			var got []types.UID
			for _, id := range r.UnresolvedOwners(tt.about) {
				got = append(got, id.UID)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
