package target

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Generation counts the changes of the declarations, so that a reader of [Registry.Kinds] and [Registry.Namespaces]
// knows when to read again.
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

// Workload returns a tracked workload, its resources with the namespaces of their objects.
func (r *Registry) Workload(name string) (Workload, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	w := r.workloads[name]
	if w == nil {
		return Workload{}, false
	}
	return w.resolvedWorkload(), true
}

// WorkloadNames returns the names of the tracked workloads.
func (r *Registry) WorkloadNames() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.workloads))
}

// WorkloadsListing returns the names of the workloads that list a kind, in any version.
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

// WorkloadsOf returns the workloads of an instance, as [Registry.Workload] does.
func (r *Registry) WorkloadsOf(instance Instance) []Workload {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []Workload
	for _, name := range slices.Sorted(maps.Keys(r.instances[instance])) {
		out = append(out, r.workloads[name].resolvedWorkload())
	}
	return out
}

// WorkloadNamesOf returns the names of the workloads of an instance.
func (r *Registry) WorkloadNamesOf(instance Instance) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.instances[instance]))
}

// Instances returns the instances of the tracked workloads.
func (r *Registry) Instances() []Instance {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.SortedFunc(maps.Keys(r.instances), func(a, b Instance) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID))
	})
}

// Kinds returns the listed kinds, in the listed versions.
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

// Namespaces returns the namespaces of the listed resources.
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

// IsListed reports whether a workload lists an object.
func (r *Registry) IsListed(ref Ref) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.listed[ref] != nil
}

// ListedCount returns the number of listed objects.
func (r *Registry) ListedCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.listed)
}

// ListedObjects returns the listed objects of a kind, without UIDs.
func (r *Registry) ListedObjects(kind schema.GroupKind) []Identity {
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
