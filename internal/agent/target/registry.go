package target

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/attribution"
)

// Registry holds the declared workloads and the known objects, and attributes the objects to the workloads.
type Registry struct {
	mu        sync.RWMutex
	workloads map[string]*tracked              // by the ThreeportWorkload's name
	listed    map[Ref][]listing                // the listings of an object, in the order of the workloads
	instances map[Instance]map[string]struct{} // names of the workloads of an instance
	scopes    map[schema.GroupKind]bool        // whether a kind is namespaced; absent while unknown
	graph     graph

	affected   map[Identity]struct{} // see Drain
	changed    chan struct{}
	generation uint64
}

// tracked is a declared workload. Each resource has a resolved reference: the namespace in it is that of the object, which
// may differ from the listed one.
type tracked struct {
	Workload
	resolved []Ref
	labels   attribution.LabelScope
}

// resource returns a resource with its resolved reference.
func (w *tracked) resource(i int) Resource {
	res := w.Resources[i]
	res.Ref = w.resolved[i]
	return res
}

// resolvedWorkload returns a copy of the workload with resolved references.
func (w *tracked) resolvedWorkload() Workload {
	out := w.Workload
	out.Resources = make([]Resource, len(w.Resources))
	for i := range out.Resources {
		out.Resources[i] = w.resource(i)
	}
	return out
}

// listing is one resource of a workload.
type listing struct {
	workload *tracked
	index    int
}

func (l listing) compare(other listing) int {
	return cmp.Or(l.workload.compare(other.workload), cmp.Compare(l.index, other.index))
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	return &Registry{
		workloads: map[string]*tracked{},
		listed:    map[Ref][]listing{},
		instances: map[Instance]map[string]struct{}{},
		scopes:    map[schema.GroupKind]bool{},
		graph:     newGraph(),
		affected:  map[Identity]struct{}{},
		changed:   make(chan struct{}, 1),
	}
}

// Track declares a workload and replaces the earlier declaration of the same name. It reports whether the declaration
// differs from the earlier one; if not, it has no effect.
func (r *Registry) Track(w Workload) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.workloads[w.Name]
	if old != nil && old.equal(w) {
		return false
	}
	w.Resources = slices.Clone(w.Resources)
	if old != nil {
		r.removeWorkload(old)
	}
	r.addWorkload(&tracked{Workload: w, resolved: r.resolve(w)})
	r.bumpGeneration()
	return true
}

// Forget removes a workload. It reports whether the workload was tracked.
func (r *Registry) Forget(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.workloads[name]
	if old == nil {
		return false
	}
	r.removeWorkload(old)
	r.bumpGeneration()
	return true
}

// SetScope records whether a kind is namespaced. It decides the namespace of resources that are listed without a
// namespace, and of cluster-scoped resources that are listed with one.
func (r *Registry) SetScope(kind schema.GroupKind, namespaced bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.scopes[kind]; ok && known == namespaced {
		return
	}
	r.scopes[kind] = namespaced
	for _, w := range r.workloads {
		if resolved := r.resolve(w.Workload); !slices.Equal(resolved, w.resolved) {
			r.removeWorkload(w)
			w.resolved = resolved
			r.addWorkload(w)
		}
	}
	r.bumpGeneration()
}

// resolve returns the references to a workload's objects, with namespaces as the scopes of their kinds require.
func (r *Registry) resolve(w Workload) []Ref {
	refs := make([]Ref, len(w.Resources))
	fallback := w.defaultNamespace()
	for i, res := range w.Resources {
		ref := res.Ref
		namespaced, known := r.scopes[ref.GroupKind()]
		switch {
		case known && !namespaced:
			ref.Namespace = ""
		case known && ref.Namespace == "":
			ref.Namespace = fallback
		}
		refs[i] = ref
	}
	return refs
}

func (r *Registry) addWorkload(w *tracked) {
	w.labels = w.labelScope()
	r.workloads[w.Name] = w
	add(r.instances, w.Instance, w.Name)
	for i, ref := range w.resolved {
		l := listing{workload: w, index: i}
		at, _ := slices.BinarySearchFunc(r.listed[ref], l, listing.compare)
		r.listed[ref] = slices.Insert(r.listed[ref], at, l)
	}
	r.markWorkloadAffected(w)
}

func (r *Registry) removeWorkload(w *tracked) {
	r.markWorkloadAffected(w)
	delete(r.workloads, w.Name)
	remove(r.instances, w.Instance, w.Name)
	for _, ref := range w.resolved {
		rest := slices.DeleteFunc(slices.Clone(r.listed[ref]), func(l listing) bool { return l.workload == w })
		if len(rest) == 0 {
			delete(r.listed, ref)
		} else {
			r.listed[ref] = rest
		}
	}
}

// Changed receives a signal when a workload was declared or removed, and when [Registry.Drain] has objects to return.
func (r *Registry) Changed() <-chan struct{} { return r.changed }

// Drain returns the objects whose attributions may have changed since the last call, each once. An identity without a UID
// stands for every object of that name.
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

// markWorkloadAffected marks all objects that may belong to a workload.
func (r *Registry) markWorkloadAffected(w *tracked) {
	r.visitObjects(w, func(id Identity) { r.affected[id] = struct{}{} })
}

// markAffected marks an object and its descendants, as far as they are known. Those of a marked object are marked already: a new one
// is marked when it is recorded.
func (r *Registry) markAffected(uid types.UID) {
	r.graph.visitDescendants(uid, map[types.UID]struct{}{}, func(id Identity) bool {
		_, marked := r.affected[id]
		r.affected[id] = struct{}{}
		return !marked || id.UID == uid
	})
}

// visitObjects visits all objects that may belong to a workload. These are the listed names, without a UID, the known
// objects of these names, those with the workload's label, and their descendants, each once.
func (r *Registry) visitObjects(w *tracked, visit func(Identity)) {
	seen := map[types.UID]struct{}{} // labelled objects may own each other
	visitAll := func(id Identity) bool {
		visit(id)
		return true
	}
	for _, ref := range w.resolved {
		visit(Identity{Ref: ref})
		for _, uid := range r.graph.uidsOf(ref) {
			r.graph.visitDescendants(uid, seen, visitAll)
		}
	}
	for n := range r.graph.labelled[w.Instance] {
		r.graph.visitDescendants(n.uid, seen, visitAll)
	}
}

// signalAffected signals if an object is affected.
func (r *Registry) signalAffected() {
	if len(r.affected) > 0 {
		r.signal()
	}
}

// bumpGeneration counts and signals a change of the declarations.
func (r *Registry) bumpGeneration() {
	r.generation++
	r.signal()
}

func (r *Registry) signal() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}
