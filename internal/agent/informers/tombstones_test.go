package informers

import (
	"fmt"
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
			for _, id := range ts.of(ref) {
				tombstones = append(tombstones, id.UID)
			}
			if got := fmt.Sprint(tombstones); got != c.tombstones {
				t.Errorf("tombstones are %s, want %s", got, c.tombstones)
			}
			if current, _ := targets.ExistingObject(ref); current.UID != c.current {
				t.Errorf("current is %q, want %q", current.UID, c.current)
			}
			for _, id := range ts.of(ref) {
				ts.remove(id.Identity)
			}
			if left := ts.of(ref); len(left) > 0 {
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
