package target

import (
	"maps"
	"slices"
)

// SharedResource is a listed resource that workloads of other instances list too.
type SharedResource struct {
	Ref
	// Workloads are the names of those workloads, in order.
	Workloads []string
	// First is the name of the workload that was declared first, of all that list the resource.
	First string
}

// SharedResources returns the resources of a workload that workloads of other instances list too, in the order of the list.
func (r *Registry) SharedResources(workload string) []SharedResource {
	r.mu.RLock()
	defer r.mu.RUnlock()
	w := r.workloads[workload]
	if w == nil {
		return nil
	}
	var out []SharedResource
	for _, ref := range w.resolved {
		others := map[string]struct{}{}
		for _, l := range r.listed[ref] {
			if l.workload.Instance != w.Instance {
				others[l.workload.Name] = struct{}{}
			}
		}
		if len(others) > 0 {
			first := r.sorted(r.attributionsByListing(ref, true))[0].Workload
			out = append(out, SharedResource{Ref: ref, Workloads: slices.Sorted(maps.Keys(others)), First: first})
		}
	}
	return out
}

// WorkloadsBeside returns the names of the workloads that have the instance of a workload, or list one of its resources.
func (r *Registry) WorkloadsBeside(workload string) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	w := r.workloads[workload]
	if w == nil {
		return nil
	}
	beside := maps.Clone(r.instances[w.Instance])
	for _, ref := range w.resolved {
		for _, l := range r.listed[ref] {
			beside[l.workload.Name] = struct{}{}
		}
	}
	delete(beside, workload)
	return slices.Sorted(maps.Keys(beside))
}

// sharedInstances returns the number of instances of several workloads.
func (r *Registry) sharedInstances() (n int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, workloads := range r.instances {
		if len(workloads) > 1 {
			n++
		}
	}
	return n
}

// sharedResources returns the number of objects that workloads of several instances list.
func (r *Registry) sharedResources() (n int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, listings := range r.listed {
		first := listings[0].workload.Instance
		if slices.ContainsFunc(listings, func(l listing) bool { return l.workload.Instance != first }) {
			n++
		}
	}
	return n
}
