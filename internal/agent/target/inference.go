package target

import (
	"regexp"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

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
	c := r.candidates(ref)
	if !c.attributed || c.conflict {
		return Attribution{}, false
	}
	return c.latest, true
}

// candidates is the combined answer of the possible owners of an object.
type candidates struct {
	latest     Attribution // of the latest candidate; zero if it belongs to no workload
	any        bool        // there is a candidate
	attributed bool        // one of them belongs to a workload
	conflict   bool        // two of them differ
}

func (c *candidates) add(attributions []Attribution) {
	var first Attribution
	if len(attributions) > 0 {
		first = attributions[0]
	}
	c.conflict = c.conflict || c.any && first != c.latest
	c.latest, c.any, c.attributed = first, true, c.attributed || len(attributions) > 0
}

// candidates collects the possible owners of an object; with mu held.
func (r *Registry) candidates(ref Ref) candidates {
	var c candidates
	if ref.Namespace != "" && r.listed[ref] == nil {
		r.inferFromOwners(ref, &c)
	}
	return c
}

// inferFromOwners adds the possible owners of an object. The recursion ends, because no kind in namings owns its own kind,
// directly or indirectly.
func (r *Registry) inferFromOwners(object Ref, c *candidates) {
	for _, n := range namings[object.GroupKind()] {
		if match := n.name.FindStringSubmatch(object.Name); match != nil {
			owner := Ref{Group: n.owner.Group, Kind: n.owner.Kind, Namespace: object.Namespace, Name: match[1]}
			if !r.inferFrom(owner, c) {
				r.inferFromOwners(owner, c)
			}
		}
	}
}

// inferFrom adds an owner if it is listed or known, and reports whether it is.
func (r *Registry) inferFrom(owner Ref, c *candidates) bool {
	if r.listed[owner] != nil {
		c.add(r.sorted(r.attributionsByListing(owner, false)))
		return true
	}
	known := false
	for _, uid := range r.graph.uidsOf(owner) {
		if n := r.graph.nodes[uid]; n != nil {
			c.add(r.attributions(n.Identity))
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

// namings are the forms of names that the controllers of Kubernetes 1.36 use:
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
