package target

import (
	"slices"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// shop returns a registry with one workload, whose Deployment, ReplicaSet and Pod exist.
func shop(t *testing.T) *Registry {
	t.Helper()
	r := NewRegistry()
	r.Track(workload("shop", 1, web))
	for _, o := range []Object{owned(web), owned(webRS, web), owned(webPod, webRS)} {
		r.Upsert(o)
	}
	r.Drain()
	signalled(r)
	return r
}

func TestUpsert_UnchangedObject_AffectsNothing(t *testing.T) {
	r := shop(t)
	r.Upsert(owned(webRS, web))
	if signalled(r) || r.Drain() != nil {
		t.Error("an unchanged object was signalled or returned by Drain")
	}
	r.Upsert(labelled(owned(webRS, web), 5))
	expectDrained(t, r, webRS, webPod)
	r.Upsert(owned(webRS))
	expectDrained(t, r, webRS, webPod)
	expectAttributions(t, r, webPod)
}

func TestDelete_KeepsAttributions(t *testing.T) {
	r := shop(t)
	again := web
	again.UID = "uid-web-2"
	r.Delete(web.UID, start)
	if _, ok := r.ExistingObject(web.Ref); ok {
		t.Error("Current returned a deleted object")
	}
	r.Upsert(owned(again))
	if current, ok := r.ExistingObject(web.Ref); !ok || current != again {
		t.Errorf("Current returned %v (%t), want the existing object", current, ok)
	}
	for _, id := range []Identity{web, again} {
		expectAttributions(t, r, id, "shop: Deployment app/web itself")
	}
	expectAttributions(t, r, webPod, "shop: Deployment app/web")
	r.Delete(web.UID, start.Add(time.Hour)) // The deletion of the old incarnation is repeated.
	if current, ok := r.ExistingObject(web.Ref); !ok || current != again {
		t.Errorf("Current returned %v (%t), want the existing object", current, ok)
	}
	if live := r.ExistingObjects(deploymentKind, "app"); !slices.Equal(live, []Identity{again}) {
		t.Errorf("Live returned %v, want only %v", live, again)
	}
	if live := r.ExistingObjects(deploymentKind, "elsewhere"); live != nil {
		t.Errorf("Live returned %v for another namespace", live)
	}
}

func TestDelete_LateDeletionOfOldIncarnation_KeepsNewOne(t *testing.T) {
	r := shop(t)
	again := web
	again.UID = "uid-web-2"
	r.Upsert(owned(again))
	r.Delete(web.UID, start)
	if current, ok := r.ExistingObject(web.Ref); !ok || current != again {
		t.Errorf("Current returned %v (%t), want the existing object", current, ok)
	}
}

func TestUpsert_DeletedObject_ExistsAgain(t *testing.T) {
	r := shop(t)
	r.Delete(webRS.UID, start)
	r.Upsert(owned(webRS, web))
	if current, ok := r.ExistingObject(webRS.Ref); !ok || current != webRS {
		t.Errorf("Current returned %v (%t), want the existing object", current, ok)
	}
	r.Prune(start.Add(24 * time.Hour))
	if _, ok := r.Object(webRS.UID); !ok {
		t.Error("an existing object was pruned")
	}
}

// An owner reference may have the name of an existing object and another UID. Its look-up finds nothing.
func TestUpsertDeleted_KeepsNameOfExistingObject(t *testing.T) {
	r := shop(t)
	former := web
	former.UID = "uid-web-0"
	for range 2 { // the second time it is known
		r.UpsertDeleted(Object{Identity: former, LookedUp: start}, start)
		if current, ok := r.ExistingObject(web.Ref); !ok || current != web {
			t.Errorf("the existing object is %v (%t), want %v", current, ok, web)
		}
	}
	if _, known := r.Object(former.UID); !known {
		t.Error("the deleted object is not known")
	}
	r.Delete(web.UID, start)
	if current, ok := r.ExistingObject(web.Ref); ok {
		t.Errorf("%v exists after its deletion", current)
	}
}

func TestUpsertDeleted_WatchedObject_Stays(t *testing.T) {
	r := shop(t)
	r.UpsertDeleted(Object{Identity: webRS, LookedUp: start}, start)
	if current, ok := r.ExistingObject(webRS.Ref); !ok || current != webRS {
		t.Errorf("the existing object is %v (%t), want %v", current, ok, webRS)
	}
	expectAttributions(t, r, webPod, "shop: Deployment app/web")
}

func TestPrune_Retention(t *testing.T) {
	tests := []struct {
		reason     string
		attributed bool
		object     Object
		deleted    bool // at start
		after      time.Duration
		want       bool
	}{
		{reason: "the object exists", attributed: true, object: owned(webPod, web), after: 100 * time.Hour, want: true},
		{
			reason:     "attributed, within its retention",
			attributed: true,
			object:     owned(webPod, web),
			deleted:    true,
			after:      retainAttributed,
			want:       true,
		},
		{
			reason:     "attributed, after its retention",
			attributed: true,
			object:     owned(webPod, web),
			deleted:    true,
			after:      retainAttributed + 1,
		},
		{
			reason:  "not attributed, within its retention",
			object:  owned(webPod),
			deleted: true,
			after:   retainUnattributed,
			want:    true,
		},
		{reason: "not attributed, after its retention", object: owned(webPod), deleted: true, after: retainUnattributed + 1},
		{
			reason:     "looked up, attributed, within its retention",
			attributed: true,
			object:     Object{Identity: webPod, Owners: []Identity{web}, LookedUp: start},
			after:      retainAttributed,
			want:       true,
		},
		{
			reason:     "looked up, attributed, after its retention",
			attributed: true,
			object:     Object{Identity: webPod, Owners: []Identity{web}, LookedUp: start},
			after:      retainAttributed + 1,
		},
		{
			reason: "looked up, not attributed, after its retention",
			object: Object{Identity: webPod, LookedUp: start},
			after:  retainUnattributed + 1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			r := NewRegistry()
			r.Track(workload("shop", 1, web))
			r.Upsert(tt.object)
			if attributed := len(r.Attributions(webPod)) > 0; attributed != tt.attributed {
				t.Fatalf("attributed is %t, want %t", attributed, tt.attributed)
			}
			if tt.deleted {
				r.Delete(webPod.UID, start)
			}
			r.Prune(start.Add(tt.after))
			if _, known := r.Object(webPod.UID); known != tt.want {
				t.Errorf("known is %t, want %t", known, tt.want)
			}
		})
	}
}

func TestPrune_LookedUpOwnerOfKnownObject_IsKept(t *testing.T) {
	r := NewRegistry()
	r.Track(workload("shop", 1, web))
	r.Upsert(Object{Identity: webRS, Owners: []Identity{web}, LookedUp: start})
	r.Upsert(owned(webPod, webRS))
	r.Prune(start.Add(100 * time.Hour))
	expectAttributions(t, r, webPod, "shop: Deployment app/web")
}

// The watch of a kind may start after one of its objects was looked up.
func TestPrune_LookedUpObjectWithWatch_IsKept(t *testing.T) {
	lookedUp := Object{Identity: webRS, Owners: []Identity{web}, LookedUp: start}
	tests := []struct {
		reason string
		order  []Object
	}{
		{reason: "the look-up answers before the watch", order: []Object{lookedUp, owned(webRS, web)}},
		{reason: "the look-up answers after the watch", order: []Object{owned(webRS, web), lookedUp}},
		{
			reason: "the look-up answers after the watch, and differs",
			order:  []Object{owned(webRS, web), {Identity: webRS, LookedUp: start}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			r := NewRegistry()
			for _, o := range tt.order {
				r.Upsert(o)
			}
			r.Prune(start.Add(100 * time.Hour))
			if _, ok := r.ExistingObject(webRS.Ref); !ok {
				t.Error("an existing object was pruned")
			}
		})
	}
}

// An owner that cannot be looked up is recorded as deleted. After Prune has removed it, its children look it up again.
func TestPrune_RemovedOwner_AffectsChildren(t *testing.T) {
	r := NewRegistry()
	r.Upsert(Object{Identity: webRS, LookedUp: start})
	r.Delete(webRS.UID, start)
	r.Upsert(owned(webPod, webRS))
	r.Drain()
	r.Prune(start.Add(time.Hour))
	expectDrained(t, r, webPod)
	if unresolved := r.UnresolvedOwners(webPod); len(unresolved) != 1 {
		t.Errorf("unresolved owners are %v, want one", unresolved)
	}
	r.Prune(start.Add(2 * time.Hour))
	expectDrained(t, r)
}

func TestDropKind_AffectsDescendants(t *testing.T) {
	r := shop(t)
	other := ident(replicaSetKind, "other", "uid-other")
	r.Upsert(owned(other, web))
	r.Drain()
	r.DropKind(replicaSetKind)
	if !signalled(r) {
		t.Error("DropKind did not signal")
	}
	expectDrained(t, r, webRS, other, webPod)
	if _, known := r.Object(webRS.UID); known || len(r.ExistingObjects(replicaSetKind, "")) > 0 {
		t.Error("a ReplicaSet is still known after DropKind")
	}
	if unresolved := r.UnresolvedOwners(webPod); !slices.Equal(unresolved, []Identity{webRS}) {
		t.Errorf("unresolved owners are %v, want %v", unresolved, webRS)
	}
	expectAttributions(t, r, webPod)
	r.DropKind(replicaSetKind)
	expectDrained(t, r)
	r.Upsert(owned(webRS, web))
	expectDrained(t, r, webRS, webPod)
	expectAttributions(t, r, webPod, "shop: Deployment app/web")
}
