package target

import (
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// graph indexes the known objects and their owners. The registry's mutex guards it.
type graph struct {
	nodes    map[types.UID]*node
	children map[types.UID]map[types.UID]struct{} // by the owner's UID, whether the owner is known or not
	names    map[Ref]*name
	labelled map[Instance]map[types.UID]struct{}
}

// name counts, for each UID, the known objects and owner references that carry it under a name. An owner reference has no namespace,
// so it counts for two names; see ownerRefs. Most names have one UID, so the first one needs no map.
type name struct {
	current types.UID // the existing object; empty if there is none
	first   types.UID
	firstN  int
	others  map[types.UID]int
}

type node struct {
	Object
	deletedAt time.Time // zero while the object exists
}

func newGraph() graph {
	return graph{
		nodes:    map[types.UID]*node{},
		children: map[types.UID]map[types.UID]struct{}{},
		names:    map[Ref]*name{},
		labelled: map[Instance]map[types.UID]struct{}{},
	}
}

// upsert adds or replaces an object. It reports whether the attributions of the object or of its descendants may have
// changed.
func (g *graph) upsert(o Object) bool {
	old := g.nodes[o.UID]
	if old != nil {
		if old.LookedUp.IsZero() && old.deletedAt.IsZero() {
			o.LookedUp = time.Time{} // A watch covers the object, so a late answer to a look-up must not make it expire.
		}
		if slices.Equal(old.Owners, o.Owners) && slices.Equal(old.Instances, o.Instances) {
			// The object exists, even if it was marked as deleted or another object had taken its name.
			old.LookedUp, old.deletedAt, old.DropsEvents = o.LookedUp, time.Time{}, o.DropsEvents
			g.nameOf(o.Ref).current = o.UID
			return false
		}
		g.unlink(old)
	}
	o.Owners = g.ownersOfSibling(o.Owners)
	g.nodes[o.UID] = &node{Object: o}
	g.countUID(o.Ref, o.UID, 1)
	g.nameOf(o.Ref).current = o.UID
	for _, instance := range o.Instances {
		add(g.labelled, instance, o.UID)
	}
	for _, owner := range o.Owners {
		add(g.children, owner.UID, o.UID)
		for _, ref := range ownerRefs(owner) {
			g.countUID(ref, owner.UID, 1)
		}
	}
	return true
}

// unlink removes an object from the indexes: the reverse of upsert.
func (g *graph) unlink(n *node) {
	g.clearCurrent(n)
	g.countUID(n.Ref, n.UID, -1)
	for _, instance := range n.Instances {
		remove(g.labelled, instance, n.UID)
	}
	for _, owner := range n.Owners {
		remove(g.children, owner.UID, n.UID)
		for _, ref := range ownerRefs(owner) {
			g.countUID(ref, owner.UID, -1)
		}
	}
}

// ownersOfSibling returns equal owners of another object, so that the Pods of a ReplicaSet share them.
func (g *graph) ownersOfSibling(owners []Identity) []Identity {
	if len(owners) == 0 {
		return nil
	}
	for sibling := range g.children[owners[0].UID] {
		if n := g.nodes[sibling]; n != nil && slices.Equal(n.Owners, owners) {
			return n.Owners
		}
		break
	}
	return owners
}

// clearCurrent records that an object no longer exists under its name.
func (g *graph) clearCurrent(n *node) {
	if known := g.names[n.Ref]; known != nil && known.current == n.UID {
		known.current = ""
	}
}

// nameOf returns what is known of a name, a new entry if nothing is.
func (g *graph) nameOf(ref Ref) *name {
	known := g.names[ref]
	if known == nil {
		known = &name{}
		g.names[ref] = known
	}
	return known
}

// countUID adds n to the count of a UID under a name.
func (g *graph) countUID(ref Ref, uid types.UID, n int) {
	known := g.nameOf(ref)
	known.count(uid, n)
	if known.firstN == 0 && len(known.others) == 0 {
		delete(g.names, ref)
	}
}

func (k *name) count(uid types.UID, n int) {
	_, isOther := k.others[uid]
	switch {
	case isOther:
		if k.others[uid] += n; k.others[uid] == 0 {
			delete(k.others, uid)
		}
	case k.firstN == 0 || k.first == uid:
		k.first, k.firstN = uid, k.firstN+n
	default:
		if k.others == nil {
			k.others = map[types.UID]int{}
		}
		k.others[uid] = n
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
	g.clearCurrent(n)
}

// existing returns the existing object of a name.
func (g *graph) existing(ref Ref) (Identity, bool) {
	known := g.names[ref]
	if known == nil || known.current == "" {
		return Identity{Ref: ref}, false
	}
	return Identity{Ref: ref, UID: known.current}, true
}

// uidsOf returns all known UIDs of a name.
func (g *graph) uidsOf(ref Ref) []types.UID {
	known := g.names[ref]
	if known == nil {
		return nil
	}
	out := slices.Collect(maps.Keys(known.others))
	if known.firstN > 0 {
		out = append(out, known.first)
	}
	return out
}

// visitDescendants visits an object, if it is known, and its known descendants. It leaves out those below an object for which visit
// returns false.
func (g *graph) visitDescendants(uid types.UID, visit func(Identity) (below bool)) {
	seen := map[types.UID]struct{}{uid: {}}
	for queue := []types.UID{uid}; len(queue) > 0; queue = queue[1:] {
		if n := g.nodes[queue[0]]; n != nil && !visit(n.Identity) {
			continue
		}
		for child := range g.children[queue[0]] {
			if _, ok := seen[child]; !ok {
				seen[child] = struct{}{}
				queue = append(queue, child)
			}
		}
	}
}

// MaxAncestors bounds the owners of an object and their owners that are followed, the nearest. Known chains of controllers have fewer
// than ten. Anybody may write objects that all own each other, and each walk would visit all of them.
const MaxAncestors = 32

// ancestors returns the owners of an object and their owners, nearest first, at most MaxAncestors. A known object may name owners that
// are unknown; these are included, and end their chain.
func (g *graph) ancestors(uid types.UID) []Identity {
	var out []Identity
	seen := map[types.UID]struct{}{uid: {}}
	for queue := []types.UID{uid}; len(queue) > 0; queue = queue[1:] {
		for owner := range g.newOwners(queue[0], seen) {
			out = append(out, owner)
			queue = append(queue, owner.UID)
		}
	}
	return out
}

// controllers returns the chain of first owners of an object, as far as it is known, the furthest first, at most MaxAncestors.
func (g *graph) controllers(uid types.UID) []Identity {
	var out []Identity
	seen := map[types.UID]struct{}{uid: {}}
	for grows := true; grows; {
		grows = false
		for owner := range g.newOwners(uid, seen) {
			out, uid, grows = append(out, owner), owner.UID, true
			break
		}
	}
	slices.Reverse(out)
	return out
}

// newOwners iterates over the owners of an object that were not seen in a walk, and adds them to the seen ones. It leaves out references
// that are not valid, and ends when MaxAncestors were seen besides the first object. An unknown object has no owners.
func (g *graph) newOwners(uid types.UID, seen map[types.UID]struct{}) iter.Seq[Identity] {
	return func(yield func(Identity) bool) {
		n := g.nodes[uid]
		if n == nil {
			return
		}
		for _, owner := range n.Owners {
			if _, ok := seen[owner.UID]; ok || len(seen) > MaxAncestors || !g.isValid(owner) {
				continue
			}
			seen[owner.UID] = struct{}{}
			if !yield(owner) {
				return
			}
		}
	}
}

// isValid reports whether an owner reference names the object of its UID. The author of an object chooses the UID, so a reference
// must not reach into another namespace. A reference to an unknown object is valid.
func (g *graph) isValid(owner Identity) bool {
	n := g.nodes[owner.UID]
	return n == nil || slices.Contains(ownerRefs(owner), n.Ref)
}

// matches reports whether an owner may have a name. For an unknown owner the reference to it decides.
func (g *graph) matches(owner Identity, ref Ref) bool {
	if n := g.nodes[owner.UID]; n != nil {
		return n.Ref == ref
	}
	return slices.Contains(ownerRefs(owner), ref)
}

// ownerRefs returns the possible names of an owner. An owner is in the namespace of its object or cluster-scoped, and
// the owner reference does not say which.
func ownerRefs(owner Identity) []Ref {
	if owner.Namespace == "" {
		return []Ref{owner.Ref}
	}
	clusterScoped := owner.Ref
	clusterScoped.Namespace = ""
	return []Ref{owner.Ref, clusterScoped}
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
