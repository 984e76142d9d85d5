package informers

import (
	"fmt"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Two informers of one kind deliver the same objects, and either may be behind the other.
func TestTombstones_TwoInformers_OneTombstoneEach(t *testing.T) {
	const (
		seen    = "seen"    // an informer has the object
		deleted = "deleted" // the API server reported its deletion
		missing = "missing" // a list does not have it
	)
	type step struct {
		what string
		uid  types.UID
	}
	ref := target.Ref{Kind: "ConfigMap", Namespace: "ns", Name: "conf"}
	for _, c := range []struct {
		reason     string
		steps      []step
		tombstones string
		current    types.UID
	}{
		{"one informer", []step{{seen, "a"}, {deleted, "a"}}, "[a]", ""},
		{"both deliver the deletion", []step{{seen, "a"}, {seen, "a"}, {deleted, "a"}, {deleted, "a"}}, "[a]", ""},
		{
			"the slower delivers the last update of an object that the faster saw deleted",
			[]step{{seen, "a"}, {deleted, "a"}, {seen, "a"}, {deleted, "a"}},
			"[a]", "",
		},
		{
			"the slower delivers the first incarnation after the faster delivered the second",
			[]step{{seen, "a"}, {deleted, "a"}, {seen, "b"}, {seen, "a"}, {deleted, "a"}, {seen, "b"}},
			"[a]", "b",
		},
		{"recreated while no informer ran", []step{{seen, "a"}, {seen, "b"}, {missing, "a"}}, "[a]", "b"},
		{"deleted while no informer ran, and delivered by both", []step{{seen, "a"}, {missing, "a"}, {deleted, "a"}}, "[a]", ""},
		{"missing from a stale list, and back", []step{{seen, "a"}, {missing, "a"}, {seen, "a"}}, "[a]", "a"},
		{"missing, back, and deleted", []step{{seen, "a"}, {missing, "a"}, {seen, "a"}, {deleted, "a"}}, "[a a]", ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			targets := target.NewRegistry()
			ts := newTombstones(targets)
			for _, s := range c.steps {
				id := target.Identity{Ref: ref, UID: s.uid}
				switch s.what {
				case seen:
					ts.upsert(target.Object{Identity: id})
				default:
					ts.add(id, "", s.what == deleted)
				}
			}
			var tombstones []types.UID
			deleted, current, _ := ts.incarnations(ref)
			for _, id := range deleted {
				tombstones = append(tombstones, id.UID)
			}
			if got := fmt.Sprint(tombstones); got != c.tombstones {
				t.Errorf("tombstones are %s, want %s", got, c.tombstones)
			}
			if current.UID != c.current {
				t.Errorf("current is %q, want %q", current.UID, c.current)
			}
			for _, id := range deleted {
				ts.remove(id.Identity)
			}
			if left, _, _ := ts.incarnations(ref); len(left) > 0 {
				t.Errorf("%d tombstones are left after their removal", len(left))
			}
			targets.DropKind(ref.GroupKind())
			ts.prune()
			if len(ts.deleted) > 0 || len(ts.pending) > 0 {
				t.Errorf("%d deleted objects and %d tombstones are left of objects that the registry does not know", len(ts.deleted), len(ts.pending))
			}
		})
	}
}

// An object is deleted and created again while its incarnations are read. A reader that saw the next object before the
// tombstone of the last one would report them in the wrong order.
func TestTombstones_RecreatedWhileRead_TombstoneComesFirst(t *testing.T) {
	const incarnations = 20_000
	ref := target.Ref{Kind: "ConfigMap", Namespace: "ns", Name: "conf"}
	uid := func(n int) types.UID { return types.UID(strconv.Itoa(n)) }
	ts := newTombstones(target.NewRegistry())
	unread := make(chan struct{}, 2)
	go func() {
		for n := range incarnations {
			unread <- struct{}{}
			ts.upsert(target.Object{Identity: target.Identity{Ref: ref, UID: uid(n)}})
			if n < incarnations-1 {
				ts.add(target.Identity{Ref: ref, UID: uid(n)}, "", true)
			}
		}
	}()
	for next := 0; ; {
		deleted, current, exists := ts.incarnations(ref)
		for _, tombstone := range deleted {
			if tombstone.UID != uid(next) {
				t.Fatalf("the next tombstone is of %s, want %d", tombstone.UID, next)
			}
			next++
			<-unread
			ts.remove(tombstone.Identity)
		}
		if exists && current.UID != uid(next) {
			t.Fatalf("the existing object is %s before the tombstone of %d", current.UID, next)
		}
		if next == incarnations-1 {
			return
		}
	}
}
