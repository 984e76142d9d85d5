package target

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// graph indexes the known objects and their owners. The registry's mutex guards it.
type graph struct {
	nodes    map[types.UID]*node
	children map[types.UID]map[*node]struct{} // by the owner's UID, whether the owner is known or not
	labelled map[Instance]map[*node]struct{}

	// latest is the known object of a name that was recorded last or, after its removal, any other one. earlier has the others.
	latest  map[CompactRef]*node
	earlier map[CompactRef]map[*node]struct{}
	// referenced counts the owner references with a name; see countReference.
	referenced map[CompactRef]*uidCounts
	// aliases are further names of known objects. Two kinds may serve one object under one UID.
	aliases map[Ref]types.UID
}

func newGraph() graph {
	return graph{
		nodes:      map[types.UID]*node{},
		children:   map[types.UID]map[*node]struct{}{},
		labelled:   map[Instance]map[*node]struct{}{},
		latest:     map[CompactRef]*node{},
		earlier:    map[CompactRef]map[*node]struct{}{},
		referenced: map[CompactRef]*uidCounts{},
		aliases:    map[Ref]types.UID{},
	}
}

// upsert adds or replaces an object. It reports whether the attributions of the object or of its descendants may have
// changed.
func (g *graph) upsert(o Object) bool {
	old := g.nodes[o.UID]
	if old != nil {
		if old.isWatched() {
			o.LookedUp = time.Time{} // A watch covers the object, so a late answer to a look-up must not make it expire.
		}
		if old.hasRelationsOf(o) {
			g.refresh(old, o)
			return false
		}
		g.unlink(old)
	}
	n := &node{
		CompactRef: Compact(o.Ref), uid: o.UID, relations: g.relationsOf(o), lookedUp: instantOf(o.LookedUp), dropsEvents: o.DropsEvents,
	}
	g.nodes[o.UID] = n
	g.setCurrent(n)
	for _, instance := range n.instances {
		add(g.labelled, instance, n)
	}
	for _, owner := range n.owners {
		add(g.children, owner.UID, n)
		g.countReference(owner, 1)
	}
	return true
}

// upsertDeleted implements [Registry.UpsertDeleted], and returns what upsert returns.
func (g *graph) upsertDeleted(o Object, at time.Time) bool {
	if known := g.nodes[o.UID]; known != nil && known.isWatched() {
		return false
	}
	before := g.latest[Compact(o.Ref)]
	keepsName := before != nil && before.current && before.uid != o.UID
	changed := g.upsert(o)
	g.markDeleted(o.UID, at)
	if keepsName {
		g.setCurrent(before)
	}
	return changed
}

// refresh updates a node with a new version of its object. The object exists, even if it was marked as deleted or another object had
// taken its name. The node takes over the strings of the new version, because the cache no longer has those of the old one.
func (g *graph) refresh(n *node, o Object) {
	n.lookedUp, n.deletedAt, n.dropsEvents = instantOf(o.LookedUp), 0, o.DropsEvents
	if n.Ref() != o.Ref {
		g.aliases[o.Ref] = n.uid
		return
	}
	n.name, n.uid = o.Name, o.UID
	g.nodes[n.uid] = n // An assignment replaces the string of the key, too.
	g.setCurrent(n)
}

// unlink removes an object from the indexes: the reverse of upsert.
func (g *graph) unlink(n *node) {
	g.unlinkName(n)
	for _, instance := range n.instances {
		remove(g.labelled, instance, n)
	}
	for _, owner := range n.owners {
		remove(g.children, owner.UID, n)
		g.countReference(owner, -1)
	}
}

// relationsOf returns the relations of an object; if those of a sibling are equal, it returns these.
func (g *graph) relationsOf(o Object) *relations {
	if len(o.Owners) == 0 && len(o.Instances) == 0 {
		return noRelations
	}
	if len(o.Owners) > 0 {
		for sibling := range g.children[o.Owners[0].UID] {
			if sibling.hasRelationsOf(o) {
				return sibling.relations
			}
			break
		}
	}
	return &relations{o.Owners, o.Instances}
}

func (g *graph) remove(uid types.UID) {
	if n := g.nodes[uid]; n != nil {
		g.unlink(n)
		delete(g.nodes, uid)
	}
}

func (g *graph) markDeleted(uid types.UID, now time.Time) {
	if n := g.nodes[uid]; n != nil && n.exists() {
		n.deletedAt, n.current = instantOf(now), false
	}
}

// visitDescendants visits an object, if it is known, and its known descendants, and adds them to those seen. It leaves out objects that
// were seen already, and those below an object for which visit returns false.
func (g *graph) visitDescendants(uid types.UID, seen map[types.UID]struct{}, visit func(Identity) (below bool)) {
	if _, ok := seen[uid]; ok {
		return
	}
	seen[uid] = struct{}{}
	for queue := []types.UID{uid}; len(queue) > 0; queue = queue[1:] {
		if n := g.nodes[queue[0]]; n != nil && !visit(n.identity()) {
			continue
		}
		for child := range g.children[queue[0]] {
			if _, ok := seen[child.uid]; !ok {
				seen[child.uid] = struct{}{}
				queue = append(queue, child.uid)
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
	out := make([]Identity, 0, 2) // most objects have a ReplicaSet and a Deployment, or fewer
	seen := map[types.UID]struct{}{uid: {}}
	for visited := 0; ; visited++ {
		for owner := range g.newOwners(uid, seen) {
			out = append(out, owner)
		}
		if visited == len(out) {
			return out
		}
		uid = out[visited].UID
	}
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
		for _, owner := range n.owners {
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
	return n == nil || slices.Contains(ownerRefs(owner), n.Ref())
}

// matches reports whether an owner may have a name. For an unknown owner the reference to it decides.
func (g *graph) matches(owner Identity, ref Ref) bool {
	if n := g.nodes[owner.UID]; n != nil {
		return n.Ref() == ref
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
