package target

import (
	"maps"
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/types"
)

// CompactRef is a [Ref] in 24 bytes instead of 64. Equal Refs have equal forms.
type CompactRef struct {
	collection unique.Handle[collection]
	name       string
}

// collection has the fields of a [Ref] that the objects of a kind in a namespace share.
type collection struct{ group, kind, namespace string }

// Compact returns the compact form of a Ref.
func Compact(ref Ref) CompactRef {
	return CompactRef{unique.Make(collection{ref.Group, ref.Kind, ref.Namespace}), ref.Name}
}

// Ref returns the Ref whose form this is.
func (c CompactRef) Ref() Ref {
	in := c.collection.Value()
	return Ref{Group: in.group, Kind: in.kind, Namespace: in.namespace, Name: c.name}
}

// setCurrent records that an object exists under its name.
func (g *graph) setCurrent(n *node) {
	if latest := g.latest[n.CompactRef]; latest != nil && latest != n {
		latest.current = false
		add(g.earlier, n.CompactRef, latest)
		remove(g.earlier, n.CompactRef, n)
	}
	g.latest[n.CompactRef] = n
	n.current = true
	delete(g.aliases, n.Ref())
}

// unlinkName is the reverse of setCurrent. One of the earlier objects, if there is any, becomes the latest, but not the current one.
func (g *graph) unlinkName(n *node) {
	if g.latest[n.CompactRef] != n {
		remove(g.earlier, n.CompactRef, n)
		return
	}
	delete(g.latest, n.CompactRef)
	for other := range g.earlier[n.CompactRef] {
		g.latest[n.CompactRef] = other
		remove(g.earlier, n.CompactRef, other)
		break
	}
}

// countReference adds n to the count of an owner's UID under the names of the owner reference. It has no namespace, so these are two;
// see ownerRefs.
func (g *graph) countReference(owner Identity, n int) {
	for _, ref := range ownerRefs(owner) {
		key := Compact(ref)
		counts := g.referenced[key]
		if counts == nil {
			counts = &uidCounts{}
			g.referenced[key] = counts
		}
		counts.add(owner.UID, n)
		if counts.empty() {
			delete(g.referenced, key)
		}
	}
}

// pruneAliases removes the aliases of objects that are no longer known.
func (g *graph) pruneAliases() {
	maps.DeleteFunc(g.aliases, func(_ Ref, uid types.UID) bool { return g.nodes[uid] == nil })
}

// existing returns the existing object of a name.
func (g *graph) existing(ref Ref) (Identity, bool) {
	if n := g.latest[Compact(ref)]; n != nil && n.current {
		return Identity{Ref: ref, UID: n.uid}, true
	}
	if n := g.nodes[g.aliases[ref]]; n != nil && n.exists() {
		return Identity{Ref: ref, UID: n.uid}, true
	}
	return Identity{Ref: ref}, false
}

// uidsOf returns all known UIDs of a name: those of objects, and those of owner references.
func (g *graph) uidsOf(ref Ref) []types.UID {
	key := Compact(ref)
	out := slices.DeleteFunc(g.referenced[key].uids(), func(uid types.UID) bool {
		n := g.nodes[uid]
		return n != nil && n.CompactRef == key // added below
	})
	if n := g.latest[key]; n != nil {
		out = append(out, n.uid)
	}
	for n := range g.earlier[key] {
		out = append(out, n.uid)
	}
	return out
}

// uidCounts counts each UID. Most names have one, so the first one needs no map.
type uidCounts struct {
	first  types.UID
	firstN int
	others map[types.UID]int
}

func (c *uidCounts) empty() bool { return c.firstN == 0 && len(c.others) == 0 }

// add adds n to the count of a UID.
func (c *uidCounts) add(uid types.UID, n int) {
	_, isOther := c.others[uid]
	switch {
	case isOther:
		if c.others[uid] += n; c.others[uid] == 0 {
			delete(c.others, uid)
		}
	case c.firstN == 0 || c.first == uid:
		c.first, c.firstN = uid, c.firstN+n
	default:
		if c.others == nil {
			c.others = map[types.UID]int{}
		}
		c.others[uid] = n
	}
}

// uids returns the UIDs with a count; none for nil.
func (c *uidCounts) uids() []types.UID {
	if c == nil {
		return nil
	}
	out := slices.Collect(maps.Keys(c.others))
	if c.firstN > 0 {
		out = append(out, c.first)
	}
	return out
}
