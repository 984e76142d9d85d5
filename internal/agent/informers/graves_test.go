package informers

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Two informers of one kind tell of the same objects, and either may be behind the other.
func TestObjectsAreBuriedOnce(t *testing.T) {
	const (
		seen    = "seen"    // an informer has the object
		deleted = "deleted" // the API server said that it was deleted
		missing = "missing" // a list does not have it
	)
	type step struct {
		what string
		uid  types.UID
	}
	ref := target.Ref{Kind: "ConfigMap", Namespace: "ns", Name: "conf"}
	for _, c := range []struct {
		reason  string
		steps   []step
		buried  string
		current types.UID
	}{
		{"one informer", []step{{seen, "a"}, {deleted, "a"}}, "[a]", ""},
		{"both tell of the deletion", []step{{seen, "a"}, {seen, "a"}, {deleted, "a"}, {deleted, "a"}}, "[a]", ""},
		{
			"the slower tells of the last change of what the faster saw deleted",
			[]step{{seen, "a"}, {deleted, "a"}, {seen, "a"}, {deleted, "a"}},
			"[a]", "",
		},
		{
			"the slower tells of the first incarnation when the faster has seen the second",
			[]step{{seen, "a"}, {deleted, "a"}, {seen, "b"}, {seen, "a"}, {deleted, "a"}, {seen, "b"}},
			"[a]", "b",
		},
		{"recreated while nothing watched", []step{{seen, "a"}, {seen, "b"}, {missing, "a"}}, "[a]", "b"},
		{"deleted while nothing watched, and told by both", []step{{seen, "a"}, {missing, "a"}, {deleted, "a"}}, "[a]", ""},
		{"missing from an old list, and back", []step{{seen, "a"}, {missing, "a"}, {seen, "a"}}, "[a]", "a"},
		{"missing, back, and deleted", []step{{seen, "a"}, {missing, "a"}, {seen, "a"}, {deleted, "a"}}, "[a a]", ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			targets := target.NewRegistry()
			g := newGraves(targets)
			for _, s := range c.steps {
				id := target.Identity{Ref: ref, UID: s.uid}
				switch s.what {
				case seen:
					g.file(target.Object{Identity: id})
				default:
					g.bury(id, s.what == deleted)
				}
			}
			var buried []types.UID
			for _, id := range g.of(ref) {
				buried = append(buried, id.UID)
			}
			if got := fmt.Sprint(buried); got != c.buried {
				t.Errorf("buried were %s, expected %s", got, c.buried)
			}
			if current, _ := targets.Current(ref); current.UID != c.current {
				t.Errorf("current is %q, expected %q", current.UID, c.current)
			}
			for _, id := range g.of(ref) {
				g.reported(id)
			}
			if left := g.of(ref); len(left) > 0 {
				t.Errorf("%d tombstones are left after they were reported", len(left))
			}
			targets.DropKind(ref.GroupKind())
			g.prune()
			if len(g.dead) > 0 || len(g.pending) > 0 {
				t.Errorf("%d dead and %d pending are left of what the registry has forgotten", len(g.dead), len(g.pending))
			}
		})
	}
}
