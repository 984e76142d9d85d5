package assess

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

func assessment(status health.Status) health.Assessment {
	v := health.Verdict{Status: status}
	if status != health.Healthy {
		v.Reason, v.Message = "Said", "somebody said so"
	}
	return health.Assessment{Verdict: v}
}

// The counts of a workload have the Pods that belong to it by its label only, and no completed Pods.
func TestAssessor_ResourceStatuses_CountsPods(t *testing.T) {
	a, _ := newAssessor()
	completed := health.Assessment{Verdict: health.Verdict{Status: health.Healthy, Reason: health.Completed}, Phase: health.Ended}
	web, migration := target.Ref{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "web"}, target.Ref{Kind: "Pod", Namespace: "ns", Name: "migration"}
	a.targets.Track(target.Workload{Name: "web", Resources: []target.Resource{{Ref: web}, {Ref: migration}}})
	set := func(resource target.Ref, kind, name string, verdict health.Assessment) {
		id := target.Identity{Ref: target.Ref{Kind: kind, Namespace: "ns", Name: name}, UID: types.UID(name)}
		attribution := target.Attribution{Workload: "web", Resource: target.Resource{Ref: resource}, Listed: resource.Name == name}
		a.assessments.set(attribution, id, health.OwnerPath{}, verdict)
	}
	set(web, "Deployment", "web", assessment(health.Healthy))
	set(web, "Pod", "web-1", assessment(health.Healthy))
	set(web, "Pod", "web-2", assessment(health.Down))
	set(migration, "Pod", "migration", completed)
	set(target.Ref{}, "Pod", "hook", completed)
	if _, got := a.ResourceStatuses("web"); got != (target.Count{Total: 2, Healthy: 1}) {
		t.Errorf("with completed Pods, the Pods are %+v, want 1 of 2", got)
	}
	set(target.Ref{}, "Pod", "hook", assessment(health.Healthy))
	statuses, got := a.ResourceStatuses("web")
	if want := (target.Count{Total: 3, Healthy: 2}); got != want {
		t.Errorf("with a labelled Pod that runs, the Pods are %+v, want %+v", got, want)
	}
	for _, s := range statuses {
		if want := map[string]target.Count{"web": {Total: 2, Healthy: 1}}[s.Name]; s.Pods != want {
			t.Errorf("%s has the Pods %+v, want %+v", s.Name, s.Pods, want)
		}
	}
}

// The status of a resource and the tree have the start that the cluster records, of a resource the start of its fault.
func TestAssessor_Since_IsThatOfTheCluster(t *testing.T) {
	a, _ := newAssessor()
	web := target.Identity{Ref: target.Ref{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "web"}, UID: "web"}
	pod := target.Identity{Ref: target.Ref{Kind: "Pod", Namespace: "ns", Name: "web-1"}, UID: "web-1"}
	wl := target.Workload{Name: "web", Instance: target.Instance{Type: "WorkloadInstance", ID: 1}, Resources: []target.Resource{{Ref: web.Ref}}}
	a.targets.Track(wl)
	a.targets.Upsert(target.Object{Identity: web})
	a.targets.Upsert(target.Object{Identity: pod, Owners: []target.Identity{web}})
	start := time.Unix(100, 0)
	down := assessment(health.Down)
	down.Since = start
	a.assessments.set(target.Attribution{Workload: "web", Resource: wl.Resources[0], Listed: true}, web, health.OwnerPath{}, assessment(health.Healthy))
	a.assessments.set(target.Attribution{Workload: "web", Resource: wl.Resources[0]}, pod, health.OwnerPath{}, down)
	statuses, _ := a.ResourceStatuses("web")
	if len(statuses) != 1 || !statuses[0].Since.Equal(start) {
		t.Errorf("the statuses are %+v, want the start %v", statuses, start)
	}
	tree := a.BuildTree(wl.Instance).Objects
	if len(tree) != 2 || !tree[0].Since.Equal(start) || !tree[1].Since.Equal(start) {
		t.Errorf("the tree is %+v, want the start %v of both objects", tree, start)
	}
}

// An object that does not exist has no record of its deletion. All readers get the time at which the agent saw it.
func TestHealthStarts(t *testing.T) {
	h := healthStarts{workloads: map[string]workloadStarts{}}
	ref := target.Ref{Kind: "ConfigMap", Name: "conf"}
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	for _, tc := range []struct {
		reason, health string
		recorded       time.Time
		now, want      int64
	}{
		{reason: "first", health: "Down", now: 10, want: 10},
		{reason: "unchanged", health: "Down", now: 20, want: 10},
		{reason: "unchanged with a record", health: "Down", recorded: at(15), now: 21, want: 10},
		{reason: "an earlier record comes later", health: "Down", recorded: at(5), now: 22, want: 5},
		{reason: "changed", health: "Healthy", now: 30, want: 30},
		{reason: "changed with a record", health: "Unhealthy", recorded: at(35), now: 40, want: 35},
		{reason: "unchanged without its record", health: "Unhealthy", now: 50, want: 35},
		{reason: "read before the last one", health: "Healthy", now: 45, want: 45},
		{reason: "unchanged for a later reader", health: "Unhealthy", now: 51, want: 35},
	} {
		statuses := []target.ResourceStatus{{Resource: target.Resource{Ref: ref}, Health: tc.health, Since: tc.recorded}}
		h.set("web", statuses, at(tc.now).Add(time.Millisecond))
		if !statuses[0].Since.Equal(at(tc.want)) {
			t.Errorf("%s: the start is %v, want %v", tc.reason, statuses[0].Since, at(tc.want))
		}
	}
	h.forget("web")
	if len(h.workloads) != 0 {
		t.Errorf("%d workloads are kept, want none", len(h.workloads))
	}
}

// The cost of a change of one pod does not grow with the number of pods.
func BenchmarkAssessments_ChangeOfOnePod(b *testing.B) {
	for _, pods := range []int{5, 500, 50_000} {
		b.Run(fmt.Sprint(pods), func(b *testing.B) {
			cache, change := deploymentOf(pods)
			b.ReportAllocs()
			for i := range b.N {
				change(i)
				if len(cache.verdicts("web")) != 1 {
					b.Fatal("there is no verdict")
				}
			}
		})
	}
}

func TestAssessments_ChangeOfOnePod_DoesNotReadTheOthers(t *testing.T) {
	cost := func(pods int) float64 {
		cache, change := deploymentOf(pods)
		i := 0
		return testing.AllocsPerRun(1000, func() {
			change(i)
			cache.verdicts("web")
			i++
		})
	}
	if few, many := cost(5), cost(5000); many > few+5 {
		t.Errorf("a change of one pod makes %v allocations with 5,000 pods, and %v with 5", many, few)
	}
}

// deploymentOf returns the assessments of a Deployment with many pods, some of which fail, and a function that changes a
// pod that does not.
func deploymentOf(pods int) (*assessments, func(i int)) {
	cache := newAssessments()
	web := target.Ref{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "web"}
	attribution := target.Attribution{Workload: "web", Resource: target.Resource{Ref: web}, Listed: true}
	cache.set(attribution, target.Identity{Ref: web, UID: "web"}, health.OwnerPath{}, assessment(health.Reconciling))
	attribution.Listed = false
	path := health.OwnerPath{}.Append(health.ObjectRef{Kind: "ReplicaSet", Name: "web-1"})
	id := func(i int) target.Identity {
		return target.Identity{Ref: target.Ref{Kind: "Pod", Namespace: "ns", Name: fmt.Sprint("web-", i)}, UID: types.UID(fmt.Sprint("pod-", i))}
	}
	for i := range pods {
		status := health.Healthy
		if i%3 == 0 {
			status = health.Down
		}
		cache.set(attribution, id(i), path, assessment(status))
	}
	turns := []health.Assessment{assessment(health.Unhealthy), assessment(health.Healthy)}
	one := id(1)
	return cache, func(i int) { cache.set(attribution, one, path, turns[i%2]) }
}
