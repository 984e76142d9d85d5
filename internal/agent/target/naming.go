package target

import (
	"regexp"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// InferOwner returns the claim on an object that came and went while nobody watched: the Events about it
// are there, and nothing tells of its owners but its name. It asks whoever may have made an object of that
// name: one that is listed answers with its listing, one that is known, or remembered, with the claims on it,
// and for one that was never seen either whoever may have made it answers.
//
// All who answer must agree on one workload and one resource, else there is no claim: a wrong row is worse than
// none. One that is known and belongs to nobody disagrees too. Of several workloads that list or own a maker,
// the first counts, as it does for objects that are known.
//
// It is for objects that were never seen: whoever knows the object asks for [Registry.Attributions]. What is listed
// by its own name is answered by [Registry.AttributionsByName], and has no claim here.
func (r *Registry) InferOwner(ref Ref) (Attribution, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	v := r.votes(ref)
	if !v.some || v.split {
		return Attribution{}, false
	}
	return v.claim, true
}

// votes asks whoever may have made an object; with mu held.
func (r *Registry) votes(ref Ref) votes {
	var v votes
	if ref.Namespace != "" && r.listed[ref] == nil {
		r.askMakers(ref, &v)
	}
	return v
}

// votes are the answers of those who may have made an object.
type votes struct {
	claim Attribution // the last answer; zero for one that belongs to nobody
	cast  bool        // there was an answer
	split bool        // there were several
	some  bool        // one of them was a claim
}

func (v *votes) add(claims []Attribution) {
	var first Attribution
	if len(claims) > 0 {
		first = claims[0]
	}
	v.split = v.split || v.cast && first != v.claim
	v.claim, v.cast, v.some = first, true, v.some || len(claims) > 0
}

// askMakers asks whoever may have made an object of a name. It ends, because nothing that is made, at whatever
// remove, is of a kind that made it.
func (r *Registry) askMakers(made Ref, v *votes) {
	for _, n := range namings[made.GroupKind()] {
		if m := n.name.FindStringSubmatch(made.Name); m != nil {
			r.askMaker(Ref{n.maker.Group, n.maker.Kind, made.Namespace, m[1]}, v)
		}
	}
}

// askMaker asks an object, or, if it is neither listed nor known, whoever may have made it.
func (r *Registry) askMaker(ref Ref, v *votes) {
	if !r.ask(ref, v) {
		r.askMakers(ref, v)
	}
}

// ask asks an object whose its objects are. It reports whether the object is listed or known.
func (r *Registry) ask(ref Ref, v *votes) bool {
	if r.listed[ref] != nil {
		v.add(sorted(r.listings(ref, false)))
		return true
	}
	known := false
	for uid := range r.graph.names[ref] {
		if n := r.graph.nodes[uid]; n != nil {
			v.add(r.attributions(n.Identity))
			known = true
		}
	}
	return known
}

// naming is how a controller names what it makes. The group of the expression is the maker's name.
type naming struct {
	maker schema.GroupKind
	name  *regexp.Regexp
}

// How the controllers of Kubernetes 1.36 name what they make:
//
//   - the Pods of a ReplicaSet, DaemonSet, ReplicationController or Job have its name and a dash as their
//     generateName (k8s.io/kubernetes/pkg/controller/controller_utils.go, GetPodFromTemplate and
//     getPodsPrefix), of which the API server takes up to 58 characters and adds five
//     (k8s.io/apiserver/pkg/storage/names, of the alphabet of k8s.io/apimachinery/pkg/util/rand);
//   - the Pods of an indexed Job have the index between two dashes in it, and it is the Job's name that is cut
//     (pkg/controller/job/indexed_job_utils.go, podGenerateNameWithIndex);
//   - the Pods of a StatefulSet have its name and an ordinal
//     (pkg/controller/statefulset/stateful_set_utils.go, getPodName);
//   - the ReplicaSets of a Deployment have its name and a hash (pkg/controller/deployment/sync.go,
//     generateReplicaSetName), a decimal number of 32 bits of which each digit is encoded with a character of
//     that alphabet (controller_utils.go, ComputeHash; rand.SafeEncodeString), so with one of ten;
//   - the Jobs of a CronJob have its name and the time in minutes (pkg/controller/cronjob/cronjob_controllerv2.go,
//     getJobName), which has eight digits until the year 2160.
//
// Names of makers that are so long that they are cut are left out.
var namings = map[schema.GroupKind][]naming{
	{Kind: "Pod"}: {
		{maker: schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, name: generated},
		{maker: schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, name: generated},
		{maker: schema.GroupKind{Kind: "ReplicationController"}, name: generated},
		{maker: schema.GroupKind{Group: "batch", Kind: "Job"}, name: generated},
		{maker: schema.GroupKind{Group: "batch", Kind: "Job"}, name: indexed},
		{maker: schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, name: regexp.MustCompile(`^(.+)-(?:0|[1-9][0-9]*)$`)},
	},
	{Group: "apps", Kind: "ReplicaSet"}: {{
		maker: schema.GroupKind{Group: "apps", Kind: "Deployment"},
		name:  regexp.MustCompile(`^(.+)-[bcdf456789]{1,10}$`),
	}},
	{Group: "batch", Kind: "Job"}: {{
		maker: schema.GroupKind{Group: "batch", Kind: "CronJob"},
		name:  regexp.MustCompile(`^(.+)-[1-9][0-9]{7}$`),
	}},
}

const random = `[bcdfghjklmnpqrstvwxz2456789]{5}`

var (
	generated = regexp.MustCompile(`^(.+)-` + random + `$`)
	indexed   = regexp.MustCompile(`^(.+)-(?:0|[1-9][0-9]*)-` + random + `$`)
)
