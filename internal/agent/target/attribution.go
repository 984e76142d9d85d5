package target

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Attributions returns the workloads that an object belongs to. The same rules hold for Events about an object that the registry knows.
// The first rule that matches decides:
//
//  1. A workload lists the object by name. The object itself need not be known.
//  2. A workload lists one of the object's owners. The nearest level of owners with a match decides. All matches of that
//     level count.
//  3. The object has a workload label. A workload matches if the label names its instance and counts in the object's
//     namespace; see [Registry.LabelUse]. All matches count. An object without a label has that of the nearest owner that
//     has one. No label replaces another one that does not count.
//  4. Otherwise the object belongs to no workload.
//
// The workload that was declared first comes first. Instance ID and name decide between equal times.
//
// A reference with the UID of a known object counts only if it has the kind and the name of that object. The object is in the
// same namespace or cluster-scoped. The garbage collector of Kubernetes has the same rule.
//
// The search follows the nearest MaxAncestors owners of all levels. An unknown owner ends its chain; [Registry.UnresolvedOwners]
// returns these owners so that the caller can look them up.
//
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
	var levels [2][2]Identity // not on the heap: few objects have more owners at one level
	level, next := append(levels[0][:0], id), levels[1][:0]
	for depth := 0; len(level) > 0; depth++ {
		var found []Attribution
		for _, at := range level {
			if depth == 0 {
				found = r.appendByListing(found, at.Ref, true)
			} else {
				found = r.appendByOwner(found, at)
			}
			if n := r.graph.nodes[at.UID]; n != nil && labels == nil {
				labels = n.instances
			}
			for owner := range r.graph.newOwners(at.UID, seen) {
				next = append(next, owner)
			}
		}
		if len(found) > 0 {
			return r.sorted(found)
		}
		level, next = next, level[:0]
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
	found := r.appendByListing(nil, id.Ref, true)
	if existing, ok := r.graph.existing(id.Ref); ok && id.UID != "" && existing.UID != id.UID {
		found = slices.DeleteFunc(found, func(a Attribution) bool {
			declared := r.workloads[a.Workload].Declared
			return declared.IsZero() || at.Before(declared)
		})
	}
	return r.sorted(found)
}

// appendByListing appends an attribution for each listing of a name. listed is true for an object of that name, and false for its
// descendants.
func (r *Registry) appendByListing(found []Attribution, ref Ref, listed bool) []Attribution {
	for _, l := range r.listed[ref] {
		found = append(found, Attribution{
			Workload: l.workload.Name, Instance: l.workload.Instance, Resource: l.workload.resource(l.index), Listed: listed,
		})
	}
	return found
}

// appendByOwner appends an attribution for each listing of an owner.
func (r *Registry) appendByOwner(found []Attribution, owner Identity) []Attribution {
	if n := r.graph.nodes[owner.UID]; n != nil {
		return r.appendByListing(found, n.Ref(), false)
	}
	for _, ref := range ownerRefs(owner) {
		found = r.appendByListing(found, ref, false)
	}
	return found
}

// attributionsByLabel returns an attribution for each workload whose label counts in the namespace of an object. The label may
// be that of an owner.
func (r *Registry) attributionsByLabel(instances []Instance, namespace string) []Attribution {
	var found []Attribution
	for _, instance := range instances {
		for name := range r.instances[instance] {
			if r.workloads[name].labels.Contains(namespace) {
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

// InferOwner attributes an object that was created and deleted while nothing watched. Only Events about it are left, so
// its name is the only evidence: controllers derive the names of their objects from their own. Each possible owner is a
// candidate. The rules:
//
//  1. A listed candidate is attributed by its listing.
//  2. A known candidate, deleted or not, has its own attributions ([Registry.Attributions]).
//  3. An unknown candidate is replaced by its possible owners.
//  4. The result is the first attribution of each candidate, if all candidates agree on it. A candidate that belongs to
//     no workload disagrees with the others.
//
// A wrong row is worse than a missing one, so in all other cases there is no attribution. An object that is listed by
// name itself is left to [Registry.AttributionsByName]; a known object to [Registry.Attributions].
func (r *Registry) InferOwner(ref Ref) (Attribution, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	i := r.infer(ref)
	if !i.attributed || i.conflict {
		return Attribution{}, false
	}
	return i.attribution, true
}

// inference combines the attributions of the candidates for the owner of an object.
type inference struct {
	attribution Attribution // of the last candidate; zero if it belongs to no workload
	any         bool        // there is a candidate
	attributed  bool        // one of them belongs to a workload
	conflict    bool        // two of them differ
}

// add adds a candidate with its attributions.
func (i *inference) add(attributions []Attribution) {
	var first Attribution
	if len(attributions) > 0 {
		first = attributions[0]
	}
	i.conflict = i.conflict || i.any && first != i.attribution
	i.attribution, i.any, i.attributed = first, true, i.attributed || len(attributions) > 0
}

// infer implements InferOwner; with mu held.
func (r *Registry) infer(ref Ref) inference {
	var i inference
	if ref.Namespace != "" && r.listed[ref] == nil {
		r.inferFromOwners(ref, &i)
	}
	return i
}

// inferFromOwners adds the possible owners of an object. The recursion ends, because no kind in namings owns its own kind,
// directly or indirectly.
func (r *Registry) inferFromOwners(object Ref, i *inference) {
	for _, n := range namings[object.GroupKind()] {
		if match := n.name.FindStringSubmatch(object.Name); match != nil {
			owner := Ref{Group: n.owner.Group, Kind: n.owner.Kind, Namespace: object.Namespace, Name: match[1]}
			if !r.inferFrom(owner, i) {
				r.inferFromOwners(owner, i)
			}
		}
	}
}

// inferFrom adds an owner if it is listed or known, and reports whether it is.
func (r *Registry) inferFrom(owner Ref, i *inference) bool {
	if r.listed[owner] != nil {
		i.add(r.sorted(r.appendByListing(nil, owner, false)))
		return true
	}
	known := false
	for _, uid := range r.graph.uidsOf(owner) {
		if n := r.graph.nodes[uid]; n != nil {
			i.add(r.attributions(n.identity()))
			known = true
		}
	}
	return known
}

// naming is the form of the names that a controller gives its objects. The group of the expression is the owner's name.
type naming struct {
	owner schema.GroupKind
	name  *regexp.Regexp
}

// namings are the forms of names that the controllers of Kubernetes use, as of 1.36:
//
//   - Pods of a ReplicaSet, DaemonSet, ReplicationController or Job: the generateName is the owner's name and a dash
//     (k8s.io/kubernetes/pkg/controller/controller_utils.go, GetPodFromTemplate and getPodsPrefix). The API server cuts it
//     to 58 characters and appends five (k8s.io/apiserver/pkg/storage/names) of the alphabet of
//     k8s.io/apimachinery/pkg/util/rand.
//   - Pods of an indexed Job: the Job's name, cut if necessary, the index between two dashes, and the five characters
//     (pkg/controller/job/indexed_job_utils.go, podGenerateNameWithIndex).
//   - Pods of a StatefulSet: its name and an ordinal (pkg/controller/statefulset/stateful_set_utils.go, getPodName).
//   - ReplicaSets of a Deployment: its name and a hash (pkg/controller/deployment/sync.go, generateReplicaSetName). The
//     hash is a decimal number of 32 bits; each digit is encoded as one of ten characters of that alphabet
//     (controller_utils.go, ComputeHash; rand.SafeEncodeString).
//   - Jobs of a CronJob: its name and the time in minutes, which has eight digits until the year 2160
//     (pkg/controller/cronjob/cronjob_controllerv2.go, getJobName).
//
// The forms do not cover names that were cut: they do not contain the whole name of the owner.
var namings = map[schema.GroupKind][]naming{
	{Kind: "Pod"}: {
		{owner: schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, name: generated},
		{owner: schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, name: generated},
		{owner: schema.GroupKind{Kind: "ReplicationController"}, name: generated},
		{owner: schema.GroupKind{Group: "batch", Kind: "Job"}, name: generated},
		{owner: schema.GroupKind{Group: "batch", Kind: "Job"}, name: indexed},
		{owner: schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, name: regexp.MustCompile(`^(.+)-(?:0|[1-9][0-9]*)$`)},
	},
	{Group: "apps", Kind: "ReplicaSet"}: {{
		owner: schema.GroupKind{Group: "apps", Kind: "Deployment"},
		name:  regexp.MustCompile(`^(.+)-[bcdf456789]{1,10}$`),
	}},
	{Group: "batch", Kind: "Job"}: {{
		owner: schema.GroupKind{Group: "batch", Kind: "CronJob"},
		name:  regexp.MustCompile(`^(.+)-[1-9][0-9]{7}$`),
	}},
}

const random = `[bcdfghjklmnpqrstvwxz2456789]{5}`

var (
	generated = regexp.MustCompile(`^(.+)-` + random + `$`)
	indexed   = regexp.MustCompile(`^(.+)-(?:0|[1-9][0-9]*)-` + random + `$`)
)
