package target

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Registry knows the workloads and the objects, and which belongs to which.
type Registry struct {
	mu        sync.RWMutex
	workloads map[string]*entry                // by the ThreeportWorkload's name
	listed    map[Ref][]listing                // who lists an object
	instances map[Instance]map[string]struct{} // names of the workloads of an instance
	scopes    map[schema.GroupKind]bool        // whether a kind is namespaced, once known
	graph     graph

	affected   map[Identity]struct{}
	changed    chan struct{}
	generation uint64
}

// entry is a workload with its resources' references as they are looked for.
type entry struct {
	Workload
	effective []Ref
}

// declared returns the workload, its resources with the namespaces in which they are looked for.
func (w *entry) declared() Workload {
	out := w.Workload
	out.Resources = slices.Clone(w.Resources)
	for i := range out.Resources {
		out.Resources[i].Ref = w.effective[i]
	}
	return out
}

type listing struct {
	workload *entry
	index    int
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	return &Registry{
		workloads: map[string]*entry{},
		listed:    map[Ref][]listing{},
		instances: map[Instance]map[string]struct{}{},
		scopes:    map[schema.GroupKind]bool{},
		graph:     newGraph(),
		affected:  map[Identity]struct{}{},
		changed:   make(chan struct{}, 1),
	}
}

// Track declares a workload, in place of what was declared under its name before. It reports whether
// anything changed: declaring the same again does nothing.
func (r *Registry) Track(w Workload) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.workloads[w.Name]
	if old != nil && old.equal(w) {
		return false
	}
	w.Resources = slices.Clone(w.Resources)
	fresh := &entry{Workload: w, effective: make([]Ref, len(w.Resources))}
	for i := range w.Resources {
		fresh.effective[i] = r.effective(w, w.Resources[i].Ref)
	}
	if old != nil {
		r.unlist(old)
	}
	r.list(fresh)
	r.declared()
	return true
}

// Forget removes a workload. It reports whether there was one.
func (r *Registry) Forget(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.workloads[name]
	if old == nil {
		return false
	}
	r.unlist(old)
	r.declared()
	return true
}

// SetScope tells whether a kind is namespaced, which decides where resources that are listed without a
// namespace, or with one that does not apply, are looked for.
func (r *Registry) SetScope(kind schema.GroupKind, namespaced bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.scopes[kind]; ok && known == namespaced {
		return
	}
	r.scopes[kind] = namespaced
	for _, w := range r.workloads {
		moved := false
		for i, res := range w.Resources {
			moved = moved || res.GroupKind() == kind && r.effective(w.Workload, res.Ref) != w.effective[i]
		}
		if !moved {
			continue
		}
		r.unlist(w)
		for i, res := range w.Resources {
			w.effective[i] = r.effective(w.Workload, res.Ref)
		}
		r.list(w)
	}
	r.declared()
}

// Kinds returns the kinds that workloads list, in the versions that they list.
func (r *Registry) Kinds() map[schema.GroupVersionKind]struct{} {
	r.mu.RLock()
	defer r.mu.RUnlock()
	kinds := map[schema.GroupVersionKind]struct{}{}
	for _, w := range r.workloads {
		for _, res := range w.Resources {
			kinds[res.GroupVersionKind()] = struct{}{}
		}
	}
	return kinds
}

// Namespaces returns the namespaces in which resources are listed.
func (r *Registry) Namespaces() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	names := map[string]struct{}{}
	for ref := range r.listed {
		if ref.Namespace != "" {
			names[ref.Namespace] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Generation counts the changes of what is declared, so that a reader of [Registry.Kinds] and
// [Registry.Namespaces] knows when to read again.
func (r *Registry) Generation() uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.generation
}

// Empty reports whether no workload is tracked.
func (r *Registry) Empty() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.workloads) == 0
}

// Workload returns a tracked workload, its resources with the namespaces in which they are looked for.
func (r *Registry) Workload(name string) (Workload, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	w := r.workloads[name]
	if w == nil {
		return Workload{}, false
	}
	return w.declared(), true
}

// Workloads returns the names of the tracked workloads.
func (r *Registry) Workloads() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.workloads))
}

// WorkloadsListing returns the names of the workloads that list a kind, in whatever version.
func (r *Registry) WorkloadsListing(kind schema.GroupKind) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var names []string
	for name, w := range r.workloads {
		if slices.ContainsFunc(w.Resources, func(res Resource) bool { return res.GroupKind() == kind }) {
			names = append(names, name)
		}
	}
	return names
}

// Instances returns the instances that workloads declare parts of.
func (r *Registry) Instances() []Instance {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.SortedFunc(maps.Keys(r.instances), func(a, b Instance) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID))
	})
}

// WorkloadsOf returns the workloads that declare parts of an instance, as [Registry.Workload] does.
func (r *Registry) WorkloadsOf(instance Instance) []Workload {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []Workload
	for _, name := range slices.Sorted(maps.Keys(r.instances[instance])) {
		out = append(out, r.workloads[name].declared())
	}
	return out
}

// ObjectsOf returns all that may belong to an instance, once each: what its workloads list, what bears its label, and
// what descends from either, as far as it is known. An identity without a UID stands for whatever bears the name.
// Whether something does belong to it, [Registry.Attributions] tells.
func (r *Registry) ObjectsOf(instance Instance) []Identity {
	r.mu.RLock()
	defer r.mu.RUnlock()
	seen := map[Identity]struct{}{}
	for name := range r.instances[instance] {
		r.concerned(r.workloads[name], func(id Identity) { seen[id] = struct{}{} })
	}
	return slices.Collect(maps.Keys(seen))
}

// Changed signals that a workload was declared or removed, or that [Registry.Drain] has something to hand
// out.
func (r *Registry) Changed() <-chan struct{} { return r.changed }

// Drain hands out, once, the objects whose claims may have changed since the last call. An identity
// without a UID stands for whatever bears the name.
func (r *Registry) Drain() []Identity {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.affected) == 0 {
		return nil
	}
	out := slices.Collect(maps.Keys(r.affected))
	r.affected = map[Identity]struct{}{}
	return out
}

// Upsert tells of an object that exists.
func (r *Registry) Upsert(o Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.graph.upsert(o) {
		r.touch(o.UID)
		r.signal()
	}
}

// Delete tells that an object is gone. What it belonged to stays known until [Registry.Prune].
func (r *Registry) Delete(uid types.UID, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.graph.markDeleted(uid, now)
}

// DropKind forgets every object of a kind that is not watched any more. What descends from them is handed
// out: its owners are to be found in another way.
func (r *Registry) DropKind(kind schema.GroupKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.graph.nodes {
		if n.GroupKind() == kind {
			r.touch(n.UID)
			r.graph.remove(n.UID)
		}
	}
	r.signal()
}

// Lookup returns the object of a UID, if it was told of and is remembered.
func (r *Registry) Lookup(uid types.UID) (Identity, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if n := r.graph.nodes[uid]; n != nil {
		return n.Identity, true
	}
	return Identity{}, false
}

// Known returns what is known of an object, and of its owners as far as they are known.
func (r *Registry) Known(uid types.UID) []Object {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []Object
	if n := r.graph.nodes[uid]; n != nil {
		out = append(out, n.Object)
	}
	for _, owner := range r.graph.ancestors(uid) {
		if n := r.graph.nodes[owner.UID]; n != nil {
			out = append(out, n.Object)
		}
	}
	return out
}

// Lists reports whether some workload lists an object.
func (r *Registry) Lists(ref Ref) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.listed[ref] != nil
}

// Listed returns the listed objects of a kind.
func (r *Registry) Listed(kind schema.GroupKind) []Identity {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []Identity
	for ref := range r.listed {
		if ref.GroupKind() == kind {
			out = append(out, Identity{Ref: ref})
		}
	}
	return out
}

// Live returns the existing objects of a kind, in one namespace or (namespace "") in all.
func (r *Registry) Live(kind schema.GroupKind, namespace string) []Identity {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []Identity
	for _, n := range r.graph.nodes {
		if n.GroupKind() == kind && n.deletedAt.IsZero() && (namespace == "" || n.Namespace == namespace) {
			out = append(out, n.Identity)
		}
	}
	return out
}

// Current returns the existing object of a name.
func (r *Registry) Current(ref Ref) (Identity, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.graph.current(ref)
}

// Retention of what deleted objects belonged to. Events about an object may come as long as the API
// server keeps them, one hour by default (kube-apiserver --event-ttl).
const (
	retainClaimed   = 70 * time.Minute
	retainUnclaimed = 10 * time.Minute
)

// Prune forgets the objects that were deleted so long ago that no more Events about them can come. What
// descends from them and is still there is handed out.
func (r *Registry) Prune(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid, n := range r.graph.nodes {
		since := n.deletedAt
		if since.IsZero() && len(r.graph.children[uid]) == 0 {
			since = n.LookedUp // nobody tells when it is gone
		}
		if since.IsZero() {
			continue
		}
		age := now.Sub(since)
		// What belongs to nobody, and has a name as if it did, must not be taken for an object that was never seen.
		if age > retainClaimed || age > retainUnclaimed && len(r.attributions(n.Identity)) == 0 && !r.votes(n.Ref).some {
			for child := range r.graph.children[uid] {
				r.touch(child)
			}
			r.graph.remove(uid)
		}
	}
	r.signal()
}

// effective returns where a resource is looked for; with mu held.
func (r *Registry) effective(w Workload, ref Ref) Ref {
	namespaced, known := r.scopes[ref.GroupKind()]
	switch {
	case known && !namespaced:
		ref.Namespace = ""
	case known && ref.Namespace == "":
		ref.Namespace = w.defaultNamespace()
	}
	return ref
}

func (r *Registry) list(w *entry) {
	r.workloads[w.Name] = w
	names := r.instances[w.Instance]
	if names == nil {
		names = map[string]struct{}{}
		r.instances[w.Instance] = names
	}
	names[w.Name] = struct{}{}
	for i, ref := range w.effective {
		r.listed[ref] = append(r.listed[ref], listing{w, i})
	}
	r.touchWorkload(w)
}

func (r *Registry) unlist(w *entry) {
	r.touchWorkload(w)
	delete(r.workloads, w.Name)
	delete(r.instances[w.Instance], w.Name)
	if len(r.instances[w.Instance]) == 0 {
		delete(r.instances, w.Instance)
	}
	for _, ref := range w.effective {
		left := slices.DeleteFunc(slices.Clone(r.listed[ref]), func(l listing) bool { return l.workload == w })
		if len(left) == 0 {
			delete(r.listed, ref)
		} else {
			r.listed[ref] = left
		}
	}
}

// touchWorkload marks all that the workload's list and label may concern.
func (r *Registry) touchWorkload(w *entry) {
	r.concerned(w, func(id Identity) { r.affected[id] = struct{}{} })
}

// concerned visits all that the workload's list and label may concern: the listed names, which have no UID, what
// bore them or the label, and what descends from that. It may visit an object more than once.
func (r *Registry) concerned(w *entry, visit func(Identity)) {
	family := func(uid types.UID) {
		for _, id := range r.graph.family(uid) {
			visit(id)
		}
	}
	for _, ref := range w.effective {
		visit(Identity{Ref: ref})
		for _, uid := range r.graph.named(ref) {
			family(uid)
		}
	}
	for uid := range r.graph.labelled[w.Instance] {
		family(uid)
	}
}

// touch marks an object and all that descend from it, known objects or not.
func (r *Registry) touch(uid types.UID) {
	for _, id := range r.graph.family(uid) {
		r.affected[id] = struct{}{}
	}
}

func (r *Registry) signal() {
	if len(r.affected) > 0 {
		r.wake()
	}
}

// declared counts a change of what is declared, and signals it.
func (r *Registry) declared() {
	r.generation++
	r.wake()
}

func (r *Registry) wake() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}
