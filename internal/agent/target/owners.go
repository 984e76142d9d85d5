package target

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// OwnerPath returns the objects between an object and one of its owners, the owner's child first. Of several paths it
// returns the shortest, and prefers controllers among paths of one length. For the zero Ref it returns the whole chain of
// controllers.
func (r *Registry) OwnerPath(uid types.UID, owner Ref) []Identity {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if owner == (Ref{}) {
		return r.graph.controllers(uid)
	}
	seen := map[types.UID]struct{}{uid: {}}
	childOf := map[types.UID]Identity{} // by the owner's UID
	for queue := []types.UID{uid}; len(queue) > 0; queue = queue[1:] {
		for next := range r.graph.newOwners(queue[0], seen) {
			child := r.graph.nodes[queue[0]].identity()
			if r.graph.matches(next, owner) {
				var path []Identity
				for at := child; at.UID != uid; at = childOf[at.UID] {
					path = append(path, at)
				}
				return path
			}
			childOf[next.UID] = child
			queue = append(queue, next.UID)
		}
	}
	return nil
}

// UnresolvedOwners returns the ancestors of an object that are neither known nor listed. Looking them up may attribute
// the object to a workload. It returns nil if the object or an ancestor is listed, because the answer is known then.
func (r *Registry) UnresolvedOwners(id Identity) []Identity {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.unresolvedOwners(id)
}

// AllUnresolvedOwners returns the [Registry.UnresolvedOwners] of all existing objects. An owner of several is repeated.
func (r *Registry) AllUnresolvedOwners() []Identity {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var unresolved []Identity
	for _, n := range r.graph.nodes {
		if n.exists() {
			unresolved = append(unresolved, r.unresolvedOwners(n.identity())...)
		}
	}
	return unresolved
}

// listsOwner reports whether a workload lists an owner; with mu held. The owner may be unknown.
func (r *Registry) listsOwner(owner Identity) bool {
	if n := r.graph.nodes[owner.UID]; n != nil {
		return r.listed[n.Ref()] != nil
	}
	return slices.ContainsFunc(ownerRefs(owner), func(ref Ref) bool { return r.listed[ref] != nil })
}

// unresolvedOwners implements UnresolvedOwners; with mu held.
func (r *Registry) unresolvedOwners(id Identity) []Identity {
	if r.listed[id.Ref] != nil {
		return nil
	}
	var unresolved []Identity
	for _, owner := range r.graph.ancestors(id.UID) {
		if r.listsOwner(owner) {
			return nil
		}
		if _, known := r.graph.nodes[owner.UID]; !known {
			unresolved = append(unresolved, owner)
		}
	}
	return unresolved
}
