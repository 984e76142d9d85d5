package target

import (
	"fmt"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
)

var (
	daemonSetKind   = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	statefulSetKind = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	rcKind          = schema.GroupKind{Kind: "ReplicationController"}
	jobKind         = schema.GroupKind{Group: "batch", Kind: "Job"}
	cronJobKind     = schema.GroupKind{Group: "batch", Kind: "CronJob"}
)

func TestAnUnseenObjectIsClaimedByHowItIsNamed(t *testing.T) {
	var (
		other   = ident(deploymentKind, "other", "uid-other")
		parent  = ident(schema.GroupKind{Group: "example.com", Kind: "Parent"}, "parent", "uid-parent")
		set     = ident(replicaSetKind, "web-66c6ccd947", "uid-set")
		elder   = ident(replicaSetKind, "web-66c6ccd947", "uid-elder")
		job     = ident(jobKind, "tick-29500000", "uid-job")
		sibling = ident(podKind, "web-66c6ccd947-x2zzz", "uid-sibling")
		agent   = ident(daemonSetKind, "agent", "uid-agent")
		foreign = web
		bare    = web
	)
	foreign.Namespace, bare.Namespace = "elsewhere", ""
	lists := func(listed ...Identity) []Workload { return []Workload{workload("shop", 1, listed...)} }
	listsOne := func(kind schema.GroupKind, name string) []Workload { return lists(ident(kind, name, "")) }
	tests := []struct {
		reason    string
		workloads []Workload
		objects   []Object
		kind      schema.GroupKind
		name      string
		want      string
	}{
		{"a ReplicaSet's Pod", listsOne(replicaSetKind, "web"), nil, podKind, "web-bh2rs", "shop: ReplicaSet app/web"},
		{"a DaemonSet's Pod", listsOne(daemonSetKind, "web"), nil, podKind, "web-bh2rs", "shop: DaemonSet app/web"},
		{"a ReplicationController's Pod", listsOne(rcKind, "web"), nil, podKind, "web-bh2rs", "shop: ReplicationController app/web"},
		{"a Job's Pod", listsOne(jobKind, "web"), nil, podKind, "web-bh2rs", "shop: Job app/web"},
		{"an indexed Job's Pod", listsOne(jobKind, "web"), nil, podKind, "web-10-bh2rs", "shop: Job app/web"},
		{"a StatefulSet's Pod", listsOne(statefulSetKind, "web"), nil, podKind, "web-10", "shop: StatefulSet app/web"},
		{"a StatefulSet's first Pod", listsOne(statefulSetKind, "web"), nil, podKind, "web-0", "shop: StatefulSet app/web"},
		{"a Deployment's ReplicaSet", lists(web), nil, replicaSetKind, "web-66c6ccd947", "shop: Deployment app/web"},
		{"a CronJob's Job", listsOne(cronJobKind, "tick"), nil, jobKind, "tick-29500000", "shop: CronJob app/tick"},

		{"a Deployment's Pod, whose ReplicaSet is gone as well", lists(web), nil, podKind, "web-66c6ccd947-bh2rs", "shop: Deployment app/web"},
		{"a CronJob's Pod, whose Job is gone as well", listsOne(cronJobKind, "tick"), nil, podKind, "tick-29500000-bh2rs", "shop: CronJob app/tick"},
		{"the Pod of a CronJob's indexed Job", listsOne(cronJobKind, "tick"), nil, podKind, "tick-29500000-3-bh2rs", "shop: CronJob app/tick"},
		{"a listed ReplicaSet outweighs its Deployment", lists(web, set), nil, podKind, "web-66c6ccd947-bh2rs", "shop: ReplicaSet app/web-66c6ccd947"},

		{"a surviving ReplicaSet tells by its owners", lists(parent), []Object{owned(set, other), owned(other, parent)}, podKind, "web-66c6ccd947-bh2rs", "shop: Parent app/parent"},
		{"a surviving Job tells by its owners", lists(parent), []Object{owned(job, parent)}, podKind, "tick-29500000-bh2rs", "shop: Parent app/parent"},
		{"a surviving owner tells by its label", lists(), []Object{labelled(owned(set), 1)}, podKind, "web-66c6ccd947-bh2rs", "shop"},
		{"an owner of an unlisted kind that was looked up tells", lists(parent), []Object{owned(agent, parent)}, podKind, "agent-bh2rs", "shop: Parent app/parent"},
		{"two incarnations of an owner agree", lists(web), []Object{owned(set, web), owned(elder, web)}, podKind, "web-66c6ccd947-bh2rs", "shop: Deployment app/web"},
		{"an owner that only a sibling names was not seen either", lists(web), []Object{owned(sibling, set)}, podKind, "web-66c6ccd947-bh2rs", "shop: Deployment app/web"},
		{"several workloads list one owner: the first counts", []Workload{workload("b", 2, web), workload("a", 1, web)}, nil, podKind, "web-66c6ccd947-bh2rs", "a: Deployment app/web"},

		{"a ReplicaSet that is somebody else's ends the search", lists(web), []Object{owned(set, other)}, podKind, "web-66c6ccd947-bh2rs", ""},
		{"a ReplicaSet that is nobody's ends the search", lists(web), []Object{owned(set)}, podKind, "web-66c6ccd947-bh2rs", ""},
		{"two incarnations of an owner, one of them nobody's", lists(web), []Object{owned(set, web), owned(elder)}, podKind, "web-66c6ccd947-bh2rs", ""},
		{"two listed owners", lists(ident(daemonSetKind, "web", ""), ident(jobKind, "web", "")), nil, podKind, "web-bh2rs", ""},
		{"two listed owners of two workloads", []Workload{workload("a", 1, ident(daemonSetKind, "web", "")), workload("b", 2, ident(jobKind, "web", ""))}, nil, podKind, "web-bh2rs", ""},
		{"a listed owner, and one that is nobody's", listsOne(jobKind, "agent"), []Object{owned(agent)}, podKind, "agent-bh2rs", ""},
		{"an indexed Job, and a Deployment with a short hash", lists(web, ident(jobKind, "web", "")), nil, podKind, "web-5-bh2rs", ""},

		{"a suffix of another alphabet", lists(web, agent), nil, podKind, "agent-aeiou", ""},
		{"a suffix that is too short", lists(agent), nil, podKind, "agent-bh2r", ""},
		{"a suffix that is too long", lists(agent), nil, podKind, "agent-bh2rsx", ""},
		{"no suffix", lists(agent), nil, podKind, "agent", ""},
		{"nothing but a suffix", lists(agent), nil, podKind, "-bh2rs", ""},
		{"a hash of another alphabet", lists(web), nil, podKind, "web-xyz-bh2rs", ""},
		{"a hash that is too long", lists(web), nil, replicaSetKind, "web-66c6ccd9475", ""},
		{"an ordinal that begins with a zero", listsOne(statefulSetKind, "web"), nil, podKind, "web-01", ""},
		{"no time in minutes", listsOne(cronJobKind, "tick"), nil, jobKind, "tick-1", ""},
		{"a Deployment makes no Pods", lists(web), nil, podKind, "web-bh2rs", ""},
		{"a kind that controllers do not make", lists(web), nil, deploymentKind, "web-66c6ccd947", ""},
		{"a Pod of another group", lists(agent), nil, schema.GroupKind{Group: "example.com", Kind: "Pod"}, "agent-bh2rs", ""},
		{"the owner is in another namespace", lists(foreign), nil, podKind, "web-66c6ccd947-bh2rs", ""},
		{"it is not known yet in which namespace the owner is", lists(bare), nil, podKind, "web-66c6ccd947-bh2rs", ""},
		{"an object that is listed itself", lists(agent, ident(podKind, "agent-bh2rs", "")), nil, podKind, "agent-bh2rs", ""},
		{"nobody lists anything", nil, nil, podKind, "web-66c6ccd947-bh2rs", ""},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			r := NewRegistry()
			for _, w := range tt.workloads {
				r.Track(w)
			}
			for _, o := range tt.objects {
				r.Upsert(o)
			}
			expectUnseen(t, r, ident(tt.kind, tt.name, "").Ref, tt.want)
			for _, o := range tt.objects { // what is remembered tells as much as what exists
				r.Delete(o.UID, start)
			}
			expectUnseen(t, r, ident(tt.kind, tt.name, "").Ref, tt.want)
		})
	}
}

func expectUnseen(t *testing.T, r *Registry, ref Ref, want string) {
	t.Helper()
	claim, ok := r.InferOwner(ref)
	if got := claimText(claim); ok != (want != "") || got != want {
		t.Errorf("the claim on the unseen %s is %q, want %q", ref, got, want)
	}
}

func TestAnUnseenClusterScopedObjectHasNoClaim(t *testing.T) {
	r := NewRegistry()
	r.Track(workload("shop", 1, clusterWide(ident(daemonSetKind, "agent", ""))))
	expectUnseen(t, r, clusterWide(ident(podKind, "agent-bh2rs", "")).Ref, "")
}

func TestNamesAreOfTheAlphabetsThatControllersUse(t *testing.T) {
	r := NewRegistry()
	r.Track(workload("shop", 1, ident(deploymentKind, "web", "")))
	for range 1000 {
		hash := rand.SafeEncodeString(fmt.Sprint(mathrand.Uint32()))
		expectUnseen(t, r, ident(podKind, "web-"+hash+"-"+rand.String(5), "").Ref, "shop: Deployment app/web")
	}
	if minutes := fmt.Sprint(time.Now().Unix() / 60); !namings[jobKind][0].name.MatchString("tick-" + minutes) {
		t.Errorf("%s is no time in minutes", minutes)
	}
}

// An object that was told of and belongs to nobody does not become one that was never seen, as long as Events
// about it may come.
func TestAStrangerOfAFittingNameIsRemembered(t *testing.T) {
	tests := []struct {
		reason  string
		listed  []Identity
		objects []Object
		after   time.Duration
		want    bool
	}{
		{"it has a name as if it was a DaemonSet's", []Identity{ident(daemonSetKind, "web", "")}, nil, retainClaimed, true},
		{"for long", []Identity{ident(daemonSetKind, "web", "")}, nil, retainClaimed + 1, false},
		{
			"another that may have made it is nobody's, and may be forgotten first",
			[]Identity{ident(daemonSetKind, "web", "")},
			[]Object{owned(ident(replicaSetKind, "web", "uid-set"))},
			retainClaimed, true,
		},
		{"nobody may have made it", []Identity{ident(daemonSetKind, "api", "")}, nil, retainUnclaimed + 1, false},
	}
	stranger := ident(podKind, "web-bh2rs", "uid-stranger")
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			r := NewRegistry()
			r.Track(workload("shop", 1, tt.listed...))
			for _, o := range append(tt.objects, owned(stranger)) {
				r.Upsert(o)
			}
			r.Delete(stranger.UID, start)
			r.Prune(start.Add(tt.after))
			if _, known := r.Lookup(stranger.UID); known != tt.want {
				t.Errorf("known is %v", known)
			}
		})
	}
}
