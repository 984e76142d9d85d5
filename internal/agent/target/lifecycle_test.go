package target

import (
	"slices"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// shop tracks one Deployment, whose objects exist.
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

func TestAnObjectThatIsSeenAgainUnchangedIsNoNews(t *testing.T) {
	r := shop(t)
	r.Upsert(owned(webRS, web))
	if signalled(r) || r.Drain() != nil {
		t.Error("nothing changed")
	}
	r.Upsert(labelled(owned(webRS, web), 5))
	expectDrained(t, r, webRS, webPod)
	r.Upsert(owned(webRS))
	expectDrained(t, r, webRS, webPod)
	expectClaims(t, r, webPod)
}

func TestADeletedObjectKeepsItsClaims(t *testing.T) {
	r := shop(t)
	again := web
	again.UID = "uid-web-2"
	r.Delete(web.UID, start)
	if _, ok := r.Current(web.Ref); ok {
		t.Error("it exists no more")
	}
	r.Upsert(owned(again))
	if current, ok := r.Current(web.Ref); !ok || current != again {
		t.Errorf("%v bears the name", current)
	}
	for _, id := range []Identity{web, again} {
		expectClaims(t, r, id, "shop: Deployment app/web itself")
	}
	expectClaims(t, r, webPod, "shop: Deployment app/web")
	r.Delete(web.UID, start.Add(time.Hour)) // told twice, and of the old one: the new one stays
	if current, ok := r.Current(web.Ref); !ok || current != again {
		t.Errorf("%v bears the name", current)
	}
	if live := r.Live(deploymentKind, "app"); !slices.Equal(live, []Identity{again}) {
		t.Errorf("live are %v", live)
	}
	if live := r.Live(deploymentKind, "elsewhere"); live != nil {
		t.Errorf("live elsewhere are %v", live)
	}
}

func TestTheLateDeletionOfAnIncarnationLeavesTheNextOne(t *testing.T) {
	r := shop(t)
	again := web
	again.UID = "uid-web-2"
	r.Upsert(owned(again))
	r.Delete(web.UID, start)
	if current, ok := r.Current(web.Ref); !ok || current != again {
		t.Errorf("%v bears the name", current)
	}
}

func TestAnObjectThatWasMistakenForDeletedIsBack(t *testing.T) {
	r := shop(t)
	r.Delete(webRS.UID, start)
	r.Upsert(owned(webRS, web))
	if current, ok := r.Current(webRS.Ref); !ok || current != webRS {
		t.Errorf("%v bears the name", current)
	}
	r.Prune(start.Add(24 * time.Hour))
	if _, ok := r.Lookup(webRS.UID); !ok {
		t.Error("an object that exists was pruned")
	}
}

func TestPruneForgetsWhatIsGoneForLong(t *testing.T) {
	tests := []struct {
		reason string
		claims bool
		object Object
		gone   bool // deleted at start
		after  time.Duration
		want   bool
	}{
		{"it exists", true, owned(webPod, web), false, 100 * time.Hour, true},
		{"claimed, and Events may come", true, owned(webPod, web), true, retainClaimed, true},
		{"claimed, for long", true, owned(webPod, web), true, retainClaimed + 1, false},
		{"not claimed, and its owner may come", false, owned(webPod), true, retainUnclaimed, true},
		{"not claimed, for long", false, owned(webPod), true, retainUnclaimed + 1, false},
		{"looked up, claimed", true, Object{Identity: webPod, Owners: []Identity{web}, LookedUp: start}, false, retainClaimed, true},
		{"looked up, and nobody tells when it is gone", true, Object{Identity: webPod, Owners: []Identity{web}, LookedUp: start}, false, retainClaimed + 1, false},
		{"looked up, not claimed", false, Object{Identity: webPod, LookedUp: start}, false, retainUnclaimed + 1, false},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			r := NewRegistry()
			r.Track(workload("shop", 1, web))
			r.Upsert(tt.object)
			if claimed := len(r.Attributions(webPod)) > 0; claimed != tt.claims {
				t.Fatalf("claimed is %v", claimed)
			}
			if tt.gone {
				r.Delete(webPod.UID, start)
			}
			r.Prune(start.Add(tt.after))
			if _, known := r.Lookup(webPod.UID); known != tt.want {
				t.Errorf("known is %v", known)
			}
		})
	}
}

func TestAnOwnerThatWasLookedUpStaysForItsChildren(t *testing.T) {
	r := NewRegistry()
	r.Track(workload("shop", 1, web))
	r.Upsert(Object{Identity: webRS, Owners: []Identity{web}, LookedUp: start})
	r.Upsert(owned(webPod, webRS))
	r.Prune(start.Add(100 * time.Hour))
	expectClaims(t, r, webPod, "shop: Deployment app/web")
}

// A kind may become listed, and so be watched, after one of its objects was looked up.
func TestAnObjectThatAWatchTellsOfIsNotPruned(t *testing.T) {
	asked := Object{Identity: webRS, Owners: []Identity{web}, LookedUp: start}
	tests := []struct {
		reason string
		seen   []Object
	}{
		{"looked up first", []Object{asked, owned(webRS, web)}},
		{"the answer came late", []Object{owned(webRS, web), asked}},
		{"the answer came late, and differs", []Object{owned(webRS, web), {Identity: webRS, LookedUp: start}}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			r := NewRegistry()
			for _, o := range tt.seen {
				r.Upsert(o)
			}
			r.Prune(start.Add(100 * time.Hour))
			if _, ok := r.Current(webRS.Ref); !ok {
				t.Error("an object that exists was pruned")
			}
		})
	}
}

// What could not be read is filed as gone. When that is pruned its children look for it again.
func TestPruneHandsOutTheChildrenThatAreLeft(t *testing.T) {
	r := NewRegistry()
	r.Upsert(Object{Identity: webRS, LookedUp: start})
	r.Delete(webRS.UID, start)
	r.Upsert(owned(webPod, webRS))
	r.Drain()
	r.Prune(start.Add(time.Hour))
	expectDrained(t, r, webPod)
	if missing := r.UnresolvedOwners(webPod); len(missing) != 1 {
		t.Errorf("missing are %v", missing)
	}
	r.Prune(start.Add(2 * time.Hour))
	expectDrained(t, r)
}

func TestDropKindHandsOutDescendants(t *testing.T) {
	r := shop(t)
	other := ident(replicaSetKind, "other", "uid-other")
	r.Upsert(owned(other, web))
	r.Drain()
	r.DropKind(replicaSetKind)
	if !signalled(r) {
		t.Error("nothing is signalled")
	}
	expectDrained(t, r, webRS, other, webPod)
	if _, known := r.Lookup(webRS.UID); known || len(r.Live(replicaSetKind, "")) > 0 {
		t.Error("a ReplicaSet is still known")
	}
	if missing := r.UnresolvedOwners(webPod); !slices.Equal(missing, []Identity{webRS}) {
		t.Errorf("missing are %v", missing)
	}
	expectClaims(t, r, webPod)
	r.DropKind(replicaSetKind)
	expectDrained(t, r)
	r.Upsert(owned(webRS, web))
	expectDrained(t, r, webRS, webPod)
	expectClaims(t, r, webPod, "shop: Deployment app/web")
}
