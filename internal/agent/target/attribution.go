package target

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Attributions returns the workloads that an object belongs to. The one that was declared first comes first; instance ID and name
// decide between equal times. The same rules hold for Events about an object that the registry knows. The first match wins:
//
//  1. A workload lists the object by name. The object itself need not be known.
//  2. A workload lists one of the object's owners. The nearest level of owners with a match decides. All matches of that
//     level count.
//  3. The object has a workload label. A workload matches if the label names its instance and counts in the object's
//     namespace; see [Registry.LabelUse]. All matches count.
//  4. An owner has a workload label, under the same condition; the nearest label decides.
//  5. Otherwise the object belongs to no workload.
//
// A reference with the UID of a known object counts only if it has the kind and the name of that object. The object is in the
// same namespace or cluster-scoped. The garbage collector of Kubernetes has the same rule.
//
// At most maxAncestors owners and their owners count, the nearest. An unknown owner ends its chain; [Registry.UnresolvedOwners] returns these owners so that the caller can look them up.
// An Event about an object that the registry does not know is attributed by [Registry.AttributionsByName], and if that
// finds nothing, by [Registry.InferOwner].
func (r *Registry) Attributions(id Identity) []Attribution {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.attributions(id)
}

// attributions implements Attributions; with mu held.
func (r *Registry) attributions(id Identity) []Attribution {
	seen := map[types.UID]struct{}{id.UID: {}}
	var labels []Instance
	level := []Identity{id}
	for depth := 0; len(level) > 0; depth++ {
		var found []Attribution
		var next []Identity
		for _, at := range level {
			if depth == 0 {
				found = append(found, r.attributionsByListing(at.Ref, true)...)
			} else {
				found = append(found, r.attributionsByOwner(at)...)
			}
			n := r.graph.nodes[at.UID]
			if n == nil {
				continue
			}
			if labels == nil {
				labels = n.Instances
			}
			for _, owner := range n.Owners {
				if _, ok := seen[owner.UID]; !ok && len(seen) <= maxAncestors && r.graph.isValid(owner) {
					seen[owner.UID] = struct{}{}
					next = append(next, owner)
				}
			}
		}
		if len(found) > 0 {
			return r.sorted(found)
		}
		level = next
	}
	return r.attributionsByLabel(labels, id.Namespace)
}

// AttributionsByName returns the workloads that list an unknown object by its name, in the same order as
// [Registry.Attributions]. It is for Events about unknown objects; at is the creation time of the Event.
//
// If another incarnation has the name, the object may have belonged to somebody else. Then only workloads count that were
// declared when the Event was created. Both times have a resolution of one second.
func (r *Registry) AttributionsByName(id Identity, at time.Time) []Attribution {
	r.mu.RLock()
	defer r.mu.RUnlock()
	found := r.attributionsByListing(id.Ref, true)
	if existing, ok := r.graph.existing(id.Ref); ok && id.UID != "" && existing.UID != id.UID {
		found = slices.DeleteFunc(found, func(a Attribution) bool {
			declared := r.workloads[a.Workload].Declared
			return declared.IsZero() || at.Before(declared)
		})
	}
	return r.sorted(found)
}

// attributionsByListing returns an attribution for each listing of a name.
func (r *Registry) attributionsByListing(ref Ref, itself bool) []Attribution {
	var found []Attribution
	for _, l := range r.listed[ref] {
		found = append(found, Attribution{
			Workload: l.workload.Name, Instance: l.workload.Instance, Resource: l.workload.resource(l.index), Listed: itself,
		})
	}
	return found
}

// attributionsByOwner returns an attribution for each listing of an owner.
func (r *Registry) attributionsByOwner(owner Identity) []Attribution {
	if n := r.graph.nodes[owner.UID]; n != nil {
		return r.attributionsByListing(n.Ref, false)
	}
	var found []Attribution
	for _, ref := range ownerRefs(owner) {
		found = append(found, r.attributionsByListing(ref, false)...)
	}
	return found
}

// attributionsByLabel returns an attribution for each workload whose label counts in the namespace of an object. The label may
// be that of an owner.
func (r *Registry) attributionsByLabel(instances []Instance, namespace string) []Attribution {
	var found []Attribution
	for _, instance := range instances {
		for name := range r.instances[instance] {
			if r.workloads[name].labelCounts(namespace) {
				found = append(found, Attribution{Workload: name, Instance: instance})
			}
		}
	}
	return r.sorted(found)
}

func (r *Registry) sorted(attributions []Attribution) []Attribution {
	slices.SortStableFunc(attributions, func(a, b Attribution) int {
		return r.workloads[a.Workload].compare(r.workloads[b.Workload])
	})
	return attributions
}

// compare orders workloads by the time of their declaration, then by instance and name.
func (w *tracked) compare(other *tracked) int {
	return cmp.Or(w.Declared.Compare(other.Declared), cmp.Compare(w.Instance.ID, other.Instance.ID), cmp.Compare(w.Name, other.Name))
}
