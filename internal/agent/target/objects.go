package target

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Retention of deleted objects. Events about an object may arrive until the API server deletes them, by default after one
// hour (kube-apiserver --event-ttl).
const (
	retainAttributed   = 70 * time.Minute
	retainUnattributed = 10 * time.Minute
)

// Upsert records an existing object.
func (r *Registry) Upsert(o Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.graph.upsert(o) {
		r.markAffected(o.UID)
		r.signalAffected()
	}
}

// UpsertDeleted records an object that does not exist. Its name stays that of an existing object. An object that a watch covers stays as it
// is: it was created meanwhile.
func (r *Registry) UpsertDeleted(o Object, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.graph.upsertDeleted(o, at) {
		r.markAffected(o.UID)
		r.signalAffected()
	}
}

// Delete marks an object as deleted. The registry keeps it for attribution until [Registry.Prune] removes it.
func (r *Registry) Delete(uid types.UID, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.graph.markDeleted(uid, now)
}

// DropKind removes all objects of a kind that is no longer watched. Their descendants count as affected, because their
// owners have to be looked up now.
func (r *Registry) DropKind(kind schema.GroupKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.graph.nodes {
		if n.Ref().GroupKind() == kind {
			r.markAffected(n.uid)
			r.graph.remove(n.uid)
		}
	}
	r.signalAffected()
}

// Prune removes deleted objects after their retention, when no more Events about them can arrive. Their children count as
// affected. An object that was looked up has no watch to report its deletion; it expires after the look-up, unless it
// owns a known object.
func (r *Registry) Prune(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid, n := range r.graph.nodes {
		since := n.deletedAt
		if since == 0 && len(r.graph.children[uid]) == 0 {
			since = n.lookedUp
		}
		age := now.Sub(since.time())
		if since == 0 || age <= retainUnattributed || age <= r.retention(n) {
			continue
		}
		for child := range r.graph.children[uid] {
			r.markAffected(child.uid)
		}
		r.graph.remove(uid)
	}
	r.graph.pruneAliases()
	r.signalAffected()
}

// retention returns how long a deleted object is kept. An object whose name suggests an owner is kept as long as one that
// belongs to a workload. If it were dropped earlier, InferOwner would treat the object as unknown and attribute it.
func (r *Registry) retention(n *node) time.Duration {
	if len(r.attributions(n.identity())) > 0 || r.infer(n.Ref()).attributed {
		return retainAttributed
	}
	return retainUnattributed
}

// ObjectsOf returns all objects that may belong to an instance, each once. These are the listed names, without a UID, the
// known objects of these names, those with the instance's label, and their descendants. [Registry.Attributions] decides
// whether an object does belong to it.
func (r *Registry) ObjectsOf(instance Instance) []Identity {
	var out []Identity
	r.mu.RLock()
	for name := range r.instances[instance] {
		r.visitObjects(r.workloads[name], func(id Identity) { out = append(out, id) })
	}
	r.mu.RUnlock()
	slices.SortFunc(out, func(a, b Identity) int {
		return cmp.Or(cmp.Compare(a.UID, b.UID), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(out)
}

// Object returns a recorded object, whether it exists or is deleted.
func (r *Registry) Object(uid types.UID) (Object, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if n := r.graph.nodes[uid]; n != nil {
		return n.object(), true
	}
	return Object{}, false
}

// ObjectWithOwners returns an object, its owners and their owners, as far as they are known, deleted or not. The object
// itself comes first.
func (r *Registry) ObjectWithOwners(uid types.UID) []Object {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []Object
	if n := r.graph.nodes[uid]; n != nil {
		out = append(out, n.object())
	}
	for _, owner := range r.graph.ancestors(uid) {
		if n := r.graph.nodes[owner.UID]; n != nil {
			out = append(out, n.object())
		}
	}
	return out
}

// DropsEvents reports whether an object, or one of the owners in [Registry.ObjectWithOwners], drops Events.
func (r *Registry) DropsEvents(uid types.UID) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	drops := func(uid types.UID) bool {
		n := r.graph.nodes[uid]
		return n != nil && n.dropsEvents
	}
	return drops(uid) || slices.ContainsFunc(r.graph.ancestors(uid), func(owner Identity) bool { return drops(owner.UID) })
}

// ExistingObjects returns the existing objects of a kind in a namespace, or in all namespaces if it is empty.
func (r *Registry) ExistingObjects(kind schema.GroupKind, namespace string) []Identity {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []Identity
	for _, n := range r.graph.nodes {
		if id := n.identity(); id.GroupKind() == kind && n.exists() && (namespace == "" || id.Namespace == namespace) {
			out = append(out, id)
		}
	}
	return out
}

// ExistingObject returns the existing object of a name.
func (r *Registry) ExistingObject(ref Ref) (Identity, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.graph.existing(ref)
}
