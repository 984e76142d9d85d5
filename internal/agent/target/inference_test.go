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

func TestInferOwner_Rules(t *testing.T) {
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
		{
			reason:    "a ReplicaSet's Pod",
			workloads: listsOne(replicaSetKind, "web"),
			kind:      podKind,
			name:      "web-bh2rs",
			want:      "shop: ReplicaSet app/web",
		},
		{
			reason:    "a DaemonSet's Pod",
			workloads: listsOne(daemonSetKind, "web"),
			kind:      podKind,
			name:      "web-bh2rs",
			want:      "shop: DaemonSet app/web",
		},
		{
			reason:    "a ReplicationController's Pod",
			workloads: listsOne(rcKind, "web"),
			kind:      podKind,
			name:      "web-bh2rs",
			want:      "shop: ReplicationController app/web",
		},
		{
			reason:    "a Job's Pod",
			workloads: listsOne(jobKind, "web"),
			kind:      podKind,
			name:      "web-bh2rs",
			want:      "shop: Job app/web",
		},
		{
			reason:    "an indexed Job's Pod",
			workloads: listsOne(jobKind, "web"),
			kind:      podKind,
			name:      "web-10-bh2rs",
			want:      "shop: Job app/web",
		},
		{
			reason:    "a StatefulSet's Pod",
			workloads: listsOne(statefulSetKind, "web"),
			kind:      podKind,
			name:      "web-10",
			want:      "shop: StatefulSet app/web",
		},
		{
			reason:    "a StatefulSet's first Pod",
			workloads: listsOne(statefulSetKind, "web"),
			kind:      podKind,
			name:      "web-0",
			want:      "shop: StatefulSet app/web",
		},
		{
			reason:    "a Deployment's ReplicaSet",
			workloads: lists(web),
			kind:      replicaSetKind,
			name:      "web-66c6ccd947",
			want:      "shop: Deployment app/web",
		},
		{
			reason:    "a CronJob's Job",
			workloads: listsOne(cronJobKind, "tick"),
			kind:      jobKind,
			name:      "tick-29500000",
			want:      "shop: CronJob app/tick",
		},

		{
			reason:    "a Deployment's Pod, whose ReplicaSet is gone as well",
			workloads: lists(web),
			kind:      podKind,
			name:      "web-66c6ccd947-bh2rs",
			want:      "shop: Deployment app/web",
		},
		{
			reason:    "a CronJob's Pod, whose Job is gone as well",
			workloads: listsOne(cronJobKind, "tick"),
			kind:      podKind,
			name:      "tick-29500000-bh2rs",
			want:      "shop: CronJob app/tick",
		},
		{
			reason:    "the Pod of a CronJob's indexed Job",
			workloads: listsOne(cronJobKind, "tick"),
			kind:      podKind,
			name:      "tick-29500000-3-bh2rs",
			want:      "shop: CronJob app/tick",
		},
		{
			reason:    "a listed ReplicaSet, not its Deployment",
			workloads: lists(web, set),
			kind:      podKind,
			name:      "web-66c6ccd947-bh2rs",
			want:      "shop: ReplicaSet app/web-66c6ccd947",
		},

		{
			reason:    "a known ReplicaSet with owners",
			workloads: lists(parent),
			objects:   []Object{owned(set, other), owned(other, parent)},
			kind:      podKind,
			name:      "web-66c6ccd947-bh2rs",
			want:      "shop: Parent app/parent",
		},
		{
			reason:    "a known Job with an owner",
			workloads: lists(parent),
			objects:   []Object{owned(job, parent)},
			kind:      podKind,
			name:      "tick-29500000-bh2rs",
			want:      "shop: Parent app/parent",
		},
		{
			reason:    "a known owner with a label",
			workloads: []Workload{labelsIn(workload("shop", 1), "app")},
			objects:   []Object{labelled(owned(set), 1)},
			kind:      podKind,
			name:      "web-66c6ccd947-bh2rs",
			want:      "shop",
		},
		{
			reason:    "a known owner of an unlisted kind",
			workloads: lists(parent),
			objects:   []Object{owned(agent, parent)},
			kind:      podKind,
			name:      "agent-bh2rs",
			want:      "shop: Parent app/parent",
		},
		{
			reason:    "two incarnations of an owner that agree",
			workloads: lists(web),
			objects:   []Object{owned(set, web), owned(elder, web)},
			kind:      podKind,
			name:      "web-66c6ccd947-bh2rs",
			want:      "shop: Deployment app/web",
		},
		{
			reason:    "an owner that is known only by a reference counts as unknown",
			workloads: lists(web),
			objects:   []Object{owned(sibling, set)},
			kind:      podKind,
			name:      "web-66c6ccd947-bh2rs",
			want:      "shop: Deployment app/web",
		},
		{
			reason:    "several workloads list the owner: the first counts",
			workloads: []Workload{workload("b", 2, web), workload("a", 1, web)},
			kind:      podKind,
			name:      "web-66c6ccd947-bh2rs",
			want:      "a: Deployment app/web",
		},

		{
			reason:    "a known ReplicaSet with another owner ends the search",
			workloads: lists(web),
			objects:   []Object{owned(set, other)},
			kind:      podKind,
			name:      "web-66c6ccd947-bh2rs",
		},
		{
			reason:    "a known ReplicaSet without an owner ends the search",
			workloads: lists(web),
			objects:   []Object{owned(set)},
			kind:      podKind,
			name:      "web-66c6ccd947-bh2rs",
		},
		{
			reason:    "two incarnations of an owner, one of them without a workload",
			workloads: lists(web),
			objects:   []Object{owned(set, web), owned(elder)},
			kind:      podKind,
			name:      "web-66c6ccd947-bh2rs",
		},
		{
			reason:    "two listed owners",
			workloads: lists(ident(daemonSetKind, "web", ""), ident(jobKind, "web", "")),
			kind:      podKind,
			name:      "web-bh2rs",
		},
		{
			reason:    "two listed owners of two workloads",
			workloads: []Workload{workload("a", 1, ident(daemonSetKind, "web", "")), workload("b", 2, ident(jobKind, "web", ""))},
			kind:      podKind,
			name:      "web-bh2rs",
		},
		{
			reason:    "a listed owner, and a known one without a workload",
			workloads: listsOne(jobKind, "agent"),
			objects:   []Object{owned(agent)},
			kind:      podKind,
			name:      "agent-bh2rs",
		},
		{
			reason:    "an indexed Job, and a Deployment with a short hash",
			workloads: lists(web, ident(jobKind, "web", "")),
			kind:      podKind,
			name:      "web-5-bh2rs",
		},

		{reason: "a suffix with other characters", workloads: lists(web, agent), kind: podKind, name: "agent-aeiou"},
		{reason: "a suffix that is too short", workloads: lists(agent), kind: podKind, name: "agent-bh2r"},
		{reason: "a suffix that is too long", workloads: lists(agent), kind: podKind, name: "agent-bh2rsx"},
		{reason: "no suffix", workloads: lists(agent), kind: podKind, name: "agent"},
		{reason: "nothing but a suffix", workloads: lists(agent), kind: podKind, name: "-bh2rs"},
		{reason: "a hash with other characters", workloads: lists(web), kind: podKind, name: "web-xyz-bh2rs"},
		{reason: "a hash that is too long", workloads: lists(web), kind: replicaSetKind, name: "web-66c6ccd9475"},
		{reason: "an ordinal with a leading zero", workloads: listsOne(statefulSetKind, "web"), kind: podKind, name: "web-01"},
		{
			reason:    "a suffix that is not a time in minutes",
			workloads: listsOne(cronJobKind, "tick"),
			kind:      jobKind,
			name:      "tick-1",
		},
		{reason: "a Deployment does not create Pods", workloads: lists(web), kind: podKind, name: "web-bh2rs"},
		{reason: "a kind that controllers do not create", workloads: lists(web), kind: deploymentKind, name: "web-66c6ccd947"},
		{
			reason:    "a Pod of another group",
			workloads: lists(agent),
			kind:      schema.GroupKind{Group: "example.com", Kind: "Pod"},
			name:      "agent-bh2rs",
		},
		{reason: "the owner is in another namespace", workloads: lists(foreign), kind: podKind, name: "web-66c6ccd947-bh2rs"},
		{
			reason:    "the scope of the listed owner is unknown",
			workloads: lists(bare),
			kind:      podKind,
			name:      "web-66c6ccd947-bh2rs",
		},
		{
			reason:    "the object itself is listed",
			workloads: lists(agent, ident(podKind, "agent-bh2rs", "")),
			kind:      podKind,
			name:      "agent-bh2rs",
		},
		{reason: "no workload is tracked", kind: podKind, name: "web-66c6ccd947-bh2rs"},
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
			expectInferred(t, r, ident(tt.kind, tt.name, "").Ref, tt.want)
			for _, o := range tt.objects { // Deleted objects count as much as existing ones.
				r.Delete(o.UID, start)
			}
			expectInferred(t, r, ident(tt.kind, tt.name, "").Ref, tt.want)
		})
	}
}

func expectInferred(t *testing.T, r *Registry, ref Ref, want string) {
	t.Helper()
	inferred, ok := r.InferOwner(ref)
	if got := attributionText(inferred); ok != (want != "") || got != want {
		t.Errorf("the inferred attribution of %s is %q, want %q", ref, got, want)
	}
}

func TestInferOwner_ClusterScopedObject_FindsNothing(t *testing.T) {
	r := NewRegistry()
	r.Track(workload("shop", 1, clusterScoped(ident(daemonSetKind, "agent", ""))))
	expectInferred(t, r, clusterScoped(ident(podKind, "agent-bh2rs", "")).Ref, "")
}

func TestInferOwner_NamesAsControllersGenerateThem(t *testing.T) {
	r := NewRegistry()
	r.Track(workload("shop", 1, ident(deploymentKind, "web", "")))
	for range 1000 {
		hash := rand.SafeEncodeString(fmt.Sprint(mathrand.Uint32()))
		expectInferred(t, r, ident(podKind, "web-"+hash+"-"+rand.String(5), "").Ref, "shop: Deployment app/web")
	}
	if minutes := fmt.Sprint(time.Now().Unix() / 60); !namings[jobKind][0].name.MatchString("tick-" + minutes) {
		t.Errorf("%s is a suffix that is not a time in minutes", minutes)
	}
}

// InferOwner attributes only unknown objects. A known object that belongs to no workload must stay unattributed, so Prune
// keeps it while Events about it may arrive.
func TestPrune_DeletedObjectWithInferableOwner_IsKept(t *testing.T) {
	tests := []struct {
		reason  string
		listed  []Identity
		objects []Object
		after   time.Duration
		want    bool
	}{
		{
			reason: "the name suggests a listed DaemonSet",
			listed: []Identity{ident(daemonSetKind, "web", "")},
			after:  retainAttributed,
			want:   true,
		},
		{
			reason: "the name suggests a listed DaemonSet, after the retention",
			listed: []Identity{ident(daemonSetKind, "web", "")},
			after:  retainAttributed + 1,
		},
		{
			reason:  "the name also suggests a known ReplicaSet, which may be pruned first",
			listed:  []Identity{ident(daemonSetKind, "web", "")},
			objects: []Object{owned(ident(replicaSetKind, "web", "uid-set"))},
			after:   retainAttributed,
			want:    true,
		},
		{
			reason: "the name suggests no listed or known owner",
			listed: []Identity{ident(daemonSetKind, "api", "")},
			after:  retainUnattributed + 1,
		},
	}
	deleted := ident(podKind, "web-bh2rs", "uid-deleted")
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			r := NewRegistry()
			r.Track(workload("shop", 1, tt.listed...))
			for _, o := range append(tt.objects, owned(deleted)) {
				r.Upsert(o)
			}
			r.Delete(deleted.UID, start)
			r.Prune(start.Add(tt.after))
			if _, known := r.Object(deleted.UID); known != tt.want {
				t.Errorf("known is %t, want %t", known, tt.want)
			}
		})
	}
}
