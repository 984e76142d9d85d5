package target

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// graph is what is known of objects and their owners. The registry's mutex guards it.
type graph struct {
	nodes    map[types.UID]*node
	children map[types.UID]map[types.UID]struct{} // by the owner's UID, whether the owner is known or not
	// names holds the UIDs that a name was seen with, on an object or on a reference to an owner, and how
	// often. An owner reference has no namespace: it is filed under its object's and under none.
	names     map[Ref]map[types.UID]int
	labelled  map[Instance]map[types.UID]struct{}
	currently map[Ref]types.UID
}

type node struct {
	Object
	deletedAt time.Time // zero while the object exists
}

func newGraph() graph {
	return graph{
		nodes:     map[types.UID]*node{},
		children:  map[types.UID]map[types.UID]struct{}{},
		names:     map[Ref]map[types.UID]int{},
		labelled:  map[Instance]map[types.UID]struct{}{},
		currently: map[Ref]types.UID{},
	}
}

// upsert files an object and reports whether its claims, or its descendants', may have changed.
func (g *graph) upsert(o Object) bool {
	old := g.nodes[o.UID]
	if old != nil {
		if old.LookedUp.IsZero() && old.deletedAt.IsZero() {
			o.LookedUp = time.Time{} // a watch tells of it: that outweighs the answer to a question asked before
		}
		if slices.Equal(old.Owners, o.Owners) && slices.Equal(old.Instances, o.Instances) {
			// It exists, whatever was believed: that it was deleted, or that another had its name.
			old.LookedUp, old.deletedAt = o.LookedUp, time.Time{}
			g.currently[o.Ref] = o.UID
			return false
		}
		g.unlink(old)
	}
	g.nodes[o.UID] = &node{Object: o}
	g.currently[o.Ref] = o.UID
	g.name(o.Ref, o.UID, 1)
	for _, instance := range o.Instances {
		add(g.labelled, instance, o.UID)
	}
	for _, owner := range o.Owners {
		add(g.children, owner.UID, o.UID)
		for _, ref := range ownerRefs(owner) {
			g.name(ref, owner.UID, 1)
		}
	}
	return true
}

// unlink removes an object from the indexes: the reverse of what upsert adds.
func (g *graph) unlink(n *node) {
	if g.currently[n.Ref] == n.UID {
		delete(g.currently, n.Ref)
	}
	g.name(n.Ref, n.UID, -1)
	for _, instance := range n.Instances {
		remove(g.labelled, instance, n.UID)
	}
	for _, owner := range n.Owners {
		remove(g.children, owner.UID, n.UID)
		for _, ref := range ownerRefs(owner) {
			g.name(ref, owner.UID, -1)
		}
	}
}

// name counts, up or down, how often a UID was seen under a name.
func (g *graph) name(ref Ref, uid types.UID, n int) {
	uids := g.names[ref]
	if uids == nil {
		uids = map[types.UID]int{}
		g.names[ref] = uids
	}
	uids[uid] += n
	if uids[uid] == 0 {
		delete(uids, uid)
	}
	if len(uids) == 0 {
		delete(g.names, ref)
	}
}

func (g *graph) remove(uid types.UID) {
	if n := g.nodes[uid]; n != nil {
		g.unlink(n)
		delete(g.nodes, uid)
	}
}

func (g *graph) markDeleted(uid types.UID, now time.Time) {
	n := g.nodes[uid]
	if n == nil || !n.deletedAt.IsZero() {
		return
	}
	n.deletedAt = now
	if g.currently[n.Ref] == uid {
		delete(g.currently, n.Ref)
	}
}

func (g *graph) current(ref Ref) (Identity, bool) {
	uid, ok := g.currently[ref]
	return Identity{Ref: ref, UID: uid}, ok
}

// named returns the UIDs that a name was seen with.
func (g *graph) named(ref Ref) []types.UID { return slices.Collect(maps.Keys(g.names[ref])) }

// family returns an object, if it is known, and all that is known to descend from it.
func (g *graph) family(uid types.UID) []Identity {
	var out []Identity
	seen := map[types.UID]struct{}{uid: {}}
	for queue := []types.UID{uid}; len(queue) > 0; queue = queue[1:] {
		if n := g.nodes[queue[0]]; n != nil {
			out = append(out, n.Identity)
		}
		for child := range g.children[queue[0]] {
			if _, ok := seen[child]; !ok {
				seen[child] = struct{}{}
				queue = append(queue, child)
			}
		}
	}
	return out
}

// ownerRefs returns the names that a reference to an owner may stand for: the owner is in its object's
// namespace or cluster-scoped, and the reference does not say which.
func ownerRefs(owner Identity) []Ref {
	if owner.Namespace == "" {
		return []Ref{owner.Ref}
	}
	cluster := owner.Ref
	cluster.Namespace = ""
	return []Ref{owner.Ref, cluster}
}

func add[K, V comparable](m map[K]map[V]struct{}, key K, value V) {
	if m[key] == nil {
		m[key] = map[V]struct{}{}
	}
	m[key][value] = struct{}{}
}

func remove[K, V comparable](m map[K]map[V]struct{}, key K, value V) {
	delete(m[key], value)
	if len(m[key]) == 0 {
		delete(m, key)
	}
}
