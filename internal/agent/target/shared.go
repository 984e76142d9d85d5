package target

import (
	"maps"
	"slices"
)

// SharedResource is a listed resource that workloads of other instances list too. The first maxSharedDetails of a workload have all
// fields, the others only the Ref.
type SharedResource struct {
	Ref
	// Workloads are the names of the first maxSharedDetails of those workloads, in order. More is the number of the others.
	Workloads []string
	More      int
	// First is the name of the workload that was declared first, of all that list the resource.
	First string
}

// MaxEventInstances bounds the instances that an Event about a shared object is reported to. Their reports are kept in memory until they
// are delivered.
const MaxEventInstances = 16

// maxSharedDetails bounds what is said about shared resources: a thousand workloads may share hundreds of resources.
const maxSharedDetails = 5

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
		listings := r.listed[ref]
		if !slices.ContainsFunc(listings, func(l listing) bool { return l.workload.Instance != w.Instance }) {
			continue
		}
		shared := SharedResource{Ref: ref}
		if len(out) < maxSharedDetails {
			others := map[string]struct{}{}
			for _, l := range listings {
				if l.workload.Instance != w.Instance {
					others[l.workload.Name] = struct{}{}
				}
			}
			names := slices.Sorted(maps.Keys(others))
			shared.Workloads = names[:min(len(names), maxSharedDetails)]
			shared.More = len(names) - len(shared.Workloads)
			shared.First = listings[0].workload.Name
		}
		out = append(out, shared)
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
