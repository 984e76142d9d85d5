package target

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Attributions returns the workloads that an incarnation of an object belongs to, in a stable order.
//
// The nearest object up its chain of owners that some workload lists decides; if there is none, the
// nearest label does. An object need not be known: its name alone may be listed.
func (r *Registry) Attributions(id Identity) []Attribution {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.attributions(id)
}

// AttributionsByName returns the claims on an object that is known by name only: by an Event, made at a time, that came
// before the object, or about one that was never seen. If another incarnation bears the name, only those count whose
// workload was declared by then (times are whole seconds): what bore the name then may have been somebody else's otherwise.
func (r *Registry) AttributionsByName(id Identity, at time.Time) []Attribution {
	r.mu.RLock()
	defer r.mu.RUnlock()
	claims := r.listings(id.Ref, true)
	if current, ok := r.graph.current(id.Ref); ok && id.UID != "" && current.UID != id.UID {
		claims = slices.DeleteFunc(claims, func(c Attribution) bool {
			declared := r.workloads[c.Workload].Declared
			return declared.IsZero() || at.Before(declared)
		})
	}
	return claims
}

// attributions walks up the owners, level by level; with mu held.
func (r *Registry) attributions(id Identity) []Attribution {
	seen := map[types.UID]struct{}{id.UID: {}}
	var labels []Instance
	level := []Identity{id}
	for depth := 0; len(level) > 0; depth++ {
		var claims []Attribution
		var next []Identity
		for _, at := range level {
			claims = append(claims, r.listingsOf(at, depth == 0)...)
			n := r.graph.nodes[at.UID]
			if n == nil {
				continue
			}
			if labels == nil {
				labels = n.Instances
			}
			for _, owner := range n.Owners {
				if _, ok := seen[owner.UID]; !ok {
					seen[owner.UID] = struct{}{}
					next = append(next, owner)
				}
			}
		}
		if len(claims) > 0 {
			return sorted(claims)
		}
		level = next
	}
	return r.attributionsByLabel(labels)
}

// listingsOf returns the listings of an object, or of an owner whose reference has no namespace.
func (r *Registry) listingsOf(at Identity, itself bool) []Attribution {
	if itself {
		return r.listings(at.Ref, true)
	}
	if n := r.graph.nodes[at.UID]; n != nil {
		return r.listings(n.Ref, false)
	}
	var claims []Attribution
	for _, ref := range ownerRefs(at) {
		claims = append(claims, r.listings(ref, false)...)
	}
	return claims
}

func (r *Registry) listings(ref Ref, itself bool) []Attribution {
	var claims []Attribution
	for _, l := range r.listed[ref] {
		res := l.workload.Resources[l.index]
		res.Ref = l.workload.effective[l.index]
		claims = append(claims, Attribution{l.workload.Name, l.workload.Instance, res, itself})
	}
	return claims
}

func (r *Registry) attributionsByLabel(instances []Instance) []Attribution {
	var claims []Attribution
	for _, instance := range instances {
		for name := range r.instances[instance] {
			claims = append(claims, Attribution{Workload: name, Instance: instance})
		}
	}
	return sorted(claims)
}

// OwnerPath returns what stands between an object and an owner that bears a name, the owner's own child first: of several
// chains the shortest, of equals that of controllers. With the zero name it is the whole chain of controllers.
func (r *Registry) OwnerPath(uid types.UID, owner Ref) []Identity {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if owner == (Ref{}) {
		return r.graph.controllers(uid)
	}
	below := map[types.UID]Identity{uid: {}} // by the UID of an owner: what it owns
	for queue := []types.UID{uid}; len(queue) > 0; queue = queue[1:] {
		n := r.graph.nodes[queue[0]]
		if n == nil {
			continue
		}
		for _, up := range n.Owners {
			if _, ok := below[up.UID]; ok {
				continue
			}
			if r.matches(up, owner) {
				var out []Identity
				for at := n.Identity; at.UID != uid; at = below[at.UID] {
					out = append(out, at)
				}
				return out
			}
			below[up.UID] = n.Identity
			queue = append(queue, up.UID)
		}
	}
	return nil
}

// matches reports whether an owner bears a name, as far as that is known.
func (r *Registry) matches(owner Identity, ref Ref) bool {
	if n := r.graph.nodes[owner.UID]; n != nil {
		return n.Ref == ref
	}
	return slices.Contains(ownerRefs(owner), ref)
}

// UnresolvedOwners returns the owners, up the chains of an object, that are not known, are not listed, and so hide
// whether the object belongs to a workload.
func (r *Registry) UnresolvedOwners(id Identity) []Identity {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.listed[id.Ref] != nil {
		return nil
	}
	var missing []Identity
	for _, at := range r.graph.ancestors(id.UID) {
		if len(r.listingsOf(at, false)) > 0 {
			return nil
		}
		if _, ok := r.graph.nodes[at.UID]; !ok {
			missing = append(missing, at)
		}
	}
	return missing
}

// controllers returns the first owner of an object, and that one's, as far as they are known, the furthest first.
func (g *graph) controllers(uid types.UID) []Identity {
	var out []Identity
	seen := map[types.UID]struct{}{uid: {}}
	for n := g.nodes[uid]; n != nil && len(n.Owners) > 0; {
		up := n.Owners[0]
		if _, again := seen[up.UID]; again {
			break
		}
		seen[up.UID] = struct{}{}
		out = append(out, up)
		n = g.nodes[up.UID]
	}
	slices.Reverse(out)
	return out
}

// ancestors returns the owners of an object and theirs, nearest first, as far as they are known, and the
// unknown ones that the known ones name.
func (g *graph) ancestors(uid types.UID) []Identity {
	var out []Identity
	seen := map[types.UID]struct{}{uid: {}}
	for queue := []types.UID{uid}; len(queue) > 0; queue = queue[1:] {
		n := g.nodes[queue[0]]
		if n == nil {
			continue
		}
		for _, owner := range n.Owners {
			if _, ok := seen[owner.UID]; !ok {
				seen[owner.UID] = struct{}{}
				out = append(out, owner)
				queue = append(queue, owner.UID)
			}
		}
	}
	return out
}

func sorted(claims []Attribution) []Attribution {
	slices.SortStableFunc(claims, func(a, b Attribution) int {
		return cmp.Or(cmp.Compare(a.Instance.ID, b.Instance.ID), cmp.Compare(a.Workload, b.Workload))
	})
	return claims
}
