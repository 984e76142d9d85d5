package target

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestOwnerPath(t *testing.T) {
	var (
		cron          = ident(deploymentKind, "cron", "uid-cron")
		job           = ident(replicaSetKind, "cron-1", "uid-cron-1")
		parent        = ident(nodeKind, "parent", "uid-parent")
		clusterParent = clusterScoped(parent)

		foreign          = Identity{Ref: Ref{Group: "apps", Kind: "Deployment", Namespace: "evil", Name: "d"}, UID: "uid-evil"}
		foreignReference = ident(deploymentKind, "d", foreign.UID)
	)
	for _, c := range []struct {
		reason  string
		objects []Object
		owner   Ref
		want    string
	}{
		{
			reason:  "the object is a child of the owner",
			objects: []Object{owned(web), owned(webPod, web)},
			owner:   web.Ref,
		},
		{
			reason:  "one object is in between",
			objects: []Object{owned(web), owned(webRS, web), owned(webPod, webRS)},
			owner:   web.Ref,
			want:    "web-1",
		},
		{
			reason:  "the owner is known only by the reference to it",
			objects: []Object{owned(webRS, web), owned(webPod, webRS)},
			owner:   web.Ref,
			want:    "web-1",
		},
		{
			reason:  "the owner is cluster-scoped and known only by the reference to it",
			objects: []Object{owned(webRS, parent), owned(webPod, webRS)},
			owner:   clusterParent.Ref,
			want:    "web-1",
		},
		{
			reason:  "several objects are in between, the owner's child first",
			objects: []Object{owned(job, cron), owned(webRS, job), owned(webPod, webRS)},
			owner:   cron.Ref,
			want:    "cron-1 web-1",
		},
		{
			reason:  "the shorter one of two paths",
			objects: []Object{owned(webPod, webRS, job), owned(webRS, cron), owned(cron, web), owned(job, web)},
			owner:   web.Ref,
			want:    "cron-1",
		},
		{
			reason:  "no path",
			objects: []Object{owned(webPod, webRS)},
			owner:   cron.Ref,
		},
		{
			reason:  "the search ends in an owner cycle",
			objects: []Object{owned(webPod, webRS), owned(webRS, webPod)},
			owner:   cron.Ref,
		},
		{
			reason: "the object is unknown",
			owner:  web.Ref,
		},
		{
			reason:  "a reference with the UID of an object in another namespace is no path",
			objects: []Object{owned(foreign), owned(webRS, foreignReference), owned(webPod, webRS)},
			owner:   foreign.Ref,
		},
		{
			reason:  "zero Ref: a reference into another namespace does not count",
			objects: []Object{owned(foreign), owned(webRS, foreignReference), owned(webPod, webRS)},
			want:    "web-1",
		},
		{
			reason:  "zero Ref: the whole chain of controllers",
			objects: []Object{owned(web), owned(webRS, web), owned(webPod, webRS, job)},
			want:    "web web-1",
		},
		{
			reason:  "zero Ref: no owners",
			objects: []Object{owned(webPod)},
		},
		{
			reason:  "zero Ref: the chain ends in an owner cycle",
			objects: []Object{owned(webPod, webRS), owned(webRS, webPod)},
			want:    "web-1",
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			r := NewRegistry()
			for _, o := range c.objects {
				r.Upsert(o)
			}
			var names []string
			for _, id := range r.OwnerPath(webPod.UID, c.owner) {
				names = append(names, id.Name)
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("path is %q, want %q", got, c.want)
			}
		})
	}
}

func TestUnresolvedOwners(t *testing.T) {
	foreign := Identity{Ref: Ref{Group: "apps", Kind: "Deployment", Namespace: "evil", Name: "d"}, UID: "uid-evil"}
	tests := []struct {
		reason  string
		listed  []Identity
		objects []Object
		want    []types.UID
	}{
		{
			reason:  "the object itself is listed",
			listed:  []Identity{webPod},
			objects: []Object{owned(webPod, webRS)},
		},
		{
			reason:  "the owner is unknown and not listed",
			listed:  []Identity{web},
			objects: []Object{owned(webPod, webRS)},
			want:    []types.UID{webRS.UID},
		},
		{
			reason:  "the owner's owner is unknown and not listed",
			objects: []Object{owned(webRS, web), owned(webPod, webRS)},
			want:    []types.UID{web.UID},
		},
		{
			reason:  "the owner is unknown and listed",
			listed:  []Identity{webRS},
			objects: []Object{owned(webPod, webRS)},
		},
		{
			reason:  "all owners are known, and none is listed",
			listed:  []Identity{web},
			objects: []Object{owned(webRS), owned(webPod, webRS)},
		},
		{
			reason: "the object is unknown",
			listed: []Identity{web},
		},
		{
			reason:  "a reference with the UID of a listed object in another namespace is no answer",
			listed:  []Identity{foreign},
			objects: []Object{owned(foreign), owned(webPod, ident(deploymentKind, "d", foreign.UID), webRS)},
			want:    []types.UID{webRS.UID},
		},
		{
			reason:  "the search ends in an owner cycle",
			listed:  []Identity{web},
			objects: []Object{owned(webRS, webPod), owned(webPod, webRS)},
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			r := NewRegistry()
			r.Track(workload("shop", 1, tt.listed...))
			for _, o := range tt.objects {
				r.Upsert(o)
			}
			var got []types.UID
			for _, id := range r.UnresolvedOwners(webPod) {
				got = append(got, id.UID)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// The author of an object chooses the UIDs of its owner references. An object in another namespace has no influence on its Events.
func TestObjectWithOwners_ReferenceIntoAnotherNamespace_IsLeftOut(t *testing.T) {
	r := NewRegistry()
	foreign := Identity{Ref: Ref{Group: "apps", Kind: "Deployment", Namespace: "evil", Name: "d"}, UID: "uid-evil"}
	dropping := owned(foreign)
	dropping.DropsEvents = true
	for _, o := range []Object{dropping, owned(webPod, ident(deploymentKind, "d", foreign.UID))} {
		r.Upsert(o)
	}
	if got := r.ObjectWithOwners(webPod.UID); len(got) != 1 || got[0].Identity != webPod {
		t.Errorf("the object and its owners are %v, want only %s", got, webPod.Ref)
	}
}

// Anybody may write objects that all own each other. The nearest owners count.
func TestOwners_ManyAncestors_AreBounded(t *testing.T) {
	r := NewRegistry()
	const objects, owners = 1000, 16
	chain := make([]Identity, objects)
	for i := range chain {
		chain[i] = ident(podKind, fmt.Sprint("p", i), types.UID(fmt.Sprint("uid-", i)))
		r.Upsert(owned(chain[i], chain[max(i-owners, 0):i]...))
	}
	last := chain[objects-1]
	if got := len(r.ObjectWithOwners(last.UID)); got != MaxAncestors+1 {
		t.Errorf("%d objects are found, want %d", got, MaxAncestors+1)
	}
	near, far := chain[objects-1-MaxAncestors], chain[objects-2-MaxAncestors]
	for _, c := range []struct {
		owner Identity
		want  int
	}{{near, 1}, {far, 0}} {
		r.Track(Workload{Name: "w", Instance: instanceOf(1), Resources: []Resource{{Ref: c.owner.Ref}}})
		path := r.OwnerPath(last.UID, c.owner.Ref)
		if got := len(r.Attributions(last)); got != c.want || (path != nil) != (c.want > 0) {
			t.Errorf("with %s listed, there are %d attributions and the path %v, want %d", c.owner.Name, got, path, c.want)
		}
	}
}

// A marked object's descendants are not visited again, until they are drained. New ones are marked.
func TestRegistry_Drain_HasDescendantsThatComeLater(t *testing.T) {
	r := NewRegistry()
	for _, o := range []Object{owned(webRS, web), owned(webPod, webRS), owned(web)} {
		r.Upsert(o)
	}
	if got := r.Drain(); len(got) != 3 {
		t.Errorf("affected are %v, want all three", got)
	}
	r.Upsert(labelled(owned(web), 1))
	later := ident(podKind, "web-1-y", "uid-web-1-y")
	r.Upsert(owned(later, webRS))
	r.Upsert(owned(web))
	if got := r.Drain(); len(got) != 4 || !slices.Contains(got, later) {
		t.Errorf("affected are %v, want all four", got)
	}
}
