package health

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	deploymentKind = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	customKind     = schema.GroupKind{Group: "example.com", Kind: "Thing"}
	noKind         = schema.GroupKind{}
)

// Assessments of pods.
var (
	serves   = Assessment{Verdict: Verdict{Status: Healthy}, Phase: Serving}
	did      = Assessment{Verdict: Verdict{Healthy, Completed, ""}, Phase: Ended}
	crash    = Assessment{Verdict: Verdict{Down, "CrashLoopBackOff", "container web crashes"}, Phase: Restarting}
	pull     = Assessment{Verdict: Verdict{Down, "ImagePullBackOff", "image web cannot be pulled"}}
	restarts = Assessment{Verdict: Verdict{Unhealthy, "Restarting", "container web runs again"}, Phase: Serving}
	unready  = Assessment{Verdict: Verdict{Unhealthy, "NotReady", "container web is not ready"}}
	starts   = Assessment{Verdict: Verdict{Reconciling, "Starting", "the pod is starting"}}
	late     = Assessment{Verdict: Verdict{Unhealthy, "StartingTooLong", "the pod is starting for long"}, Phase: Overdue}
	leaves   = Assessment{Verdict: Verdict{Reconciling, "Terminating", "the pod is being deleted"}, Phase: Terminating}
	stays    = Assessment{Verdict: Verdict{Unhealthy, terminatingTooLong, "the pod is kept"}}
	evicted  = Assessment{Verdict: Verdict{Down, "Evicted", "the pod was evicted"}, Phase: Ended}
	failed   = Assessment{Verdict: Verdict{Down, "Error", "container web ended"}, Phase: Ended}
)

func TestDependentsCombine(t *testing.T) {
	onItsWay := Verdict{Reconciling, "ReplicasNotReady", "0 of 2"}
	works := Verdict{Status: Healthy}
	silent := Verdict{Unknown, "NoSignal", "no status"}
	timedOut := Verdict{Unhealthy, "ProgressDeadlineExceeded", "it timed out"}
	runs := Verdict{Reconciling, "Running", "it runs"}
	const via = "ReplicaSet web-1 ← "
	tests := []struct {
		reason  string
		kind    schema.GroupKind
		own     Verdict
		derived []Assessment
		want    Verdict
	}{
		{"nothing descends from it", deploymentKind, onItsWay, nil, onItsWay},
		{"nothing fails", deploymentKind, works, []Assessment{serves, serves}, works},
		{
			"all pods fail, so it is not Reconciling", deploymentKind, onItsWay,
			[]Assessment{crash, crash},
			Verdict{Down, "CrashLoopBackOff", "0 of 2 ← " + via + "2 pods CrashLoopBackOff: container web crashes"},
		},
		{
			"some pods fail", deploymentKind, onItsWay,
			[]Assessment{serves, crash},
			Verdict{Unhealthy, "CrashLoopBackOff", "0 of 2 ← " + via + "Pod pod-1 CrashLoopBackOff: container web crashes"},
		},
		{
			"pods run, and none is ready", deploymentKind, onItsWay,
			[]Assessment{unready, unready},
			Verdict{Down, "NotReady", "0 of 2 ← " + via + "2 pods NotReady: container web is not ready"},
		},
		{
			"a pod that crashed serves again", deploymentKind, works,
			[]Assessment{restarts},
			Verdict{Unhealthy, "Restarting", "Deployment web ← " + via + "Pod pod-0 Restarting: container web runs again"},
		},
		{
			"its deadline is over and nothing works", deploymentKind, timedOut,
			[]Assessment{crash},
			Verdict{Down, "CrashLoopBackOff", "it timed out ← " + via + "Pod pod-0 CrashLoopBackOff: container web crashes"},
		},
		{
			"its deadline is over, and its pods only start", deploymentKind,
			Verdict{Down, "ProgressDeadlineExceeded", "it timed out"},
			[]Assessment{starts},
			Verdict{Down, "ProgressDeadlineExceeded", "it timed out ← " + via + "Pod pod-0 Starting: the pod is starting"},
		},
		{
			"its status lags behind a pod that fails", deploymentKind, works,
			[]Assessment{serves, crash},
			Verdict{Unhealthy, "CrashLoopBackOff", "Deployment web ← " + via + "Pod pod-1 CrashLoopBackOff: container web crashes"},
		},
		{
			"its status lags behind a pod that starts", deploymentKind, works,
			[]Assessment{serves, starts},
			Verdict{Reconciling, "Starting", "Deployment web ← " + via + "Pod pod-1 Starting: the pod is starting"},
		},
		{
			"it and its pods are Reconciling", deploymentKind, onItsWay,
			[]Assessment{starts},
			Verdict{Reconciling, "ReplicasNotReady", "0 of 2 ← " + via + "Pod pod-0 Starting: the pod is starting"},
		},
		{"pods leave as they should", deploymentKind, works, []Assessment{serves, leaves, leaves}, works},
		{"it is Reconciling, and its old pods are Terminating", deploymentKind, onItsWay, []Assessment{leaves, leaves}, onItsWay},
		{
			"a pod does not leave", deploymentKind, works,
			[]Assessment{serves, stays},
			Verdict{Unhealthy, terminatingTooLong, "Deployment web ← " + via + "Pod pod-1 TerminatingTooLong: the pod is kept"},
		},
		{"a pod was evicted, and another made in its place", deploymentKind, works, []Assessment{serves, evicted}, works},
		{
			"a pod was evicted, and the other starts", deploymentKind, onItsWay,
			[]Assessment{starts, evicted},
			Verdict{Reconciling, "ReplicasNotReady", "0 of 2 ← " + via + "Pod pod-0 Starting: the pod is starting"},
		},
		{
			"a pod was evicted, and none made in its place", deploymentKind, onItsWay,
			[]Assessment{evicted},
			Verdict{Down, "Evicted", "0 of 2 ← " + via + "Pod pod-0 Evicted: the pod was evicted"},
		},
		{
			"a pod takes long, and the Deployment's own deadline is not over", deploymentKind, onItsWay,
			[]Assessment{late},
			Verdict{Reconciling, "ReplicasNotReady", "0 of 2 ← " + via + "Pod pod-0 StartingTooLong: the pod is starting for long"},
		},
		{
			"a pod takes long, and no rollout goes on", deploymentKind,
			Verdict{Reconciling, replicasMissing, "1 of 2"},
			[]Assessment{serves, late},
			Verdict{Unhealthy, "StartingTooLong", "1 of 2 ← " + via + "Pod pod-1 StartingTooLong: the pod is starting for long"},
		},
		{
			"a pod takes long, and its StatefulSet has no deadline",
			schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
			onItsWay,
			[]Assessment{late},
			Verdict{Down, "StartingTooLong", "0 of 2 ← " + via + "Pod pod-0 StartingTooLong: the pod is starting for long"},
		},
		{"it is being deleted, and so will be its pods", deploymentKind, Verdict{Reconciling, "Terminating", "it goes"}, []Assessment{crash, leaves}, Verdict{Reconciling, "Terminating", "it goes"}},
		{
			"the most frequent cause is named", deploymentKind, onItsWay,
			[]Assessment{crash, pull, pull},
			Verdict{Down, "ImagePullBackOff", "0 of 2 ← " + via + "2 pods ImagePullBackOff: image web cannot be pulled; and 1 other cause"},
		},
		{
			"of equals the same one each time", deploymentKind, onItsWay,
			[]Assessment{pull, pull, crash, crash, unready},
			Verdict{Down, "CrashLoopBackOff", "0 of 2 ← " + via + "2 pods CrashLoopBackOff: container web crashes; and 2 other causes"},
		},

		{
			"an object without a status is judged by its pods", customKind, silent,
			[]Assessment{crash},
			Verdict{Down, "CrashLoopBackOff", "no status ← " + via + "Pod pod-0 CrashLoopBackOff: container web crashes"},
		},
		{
			"some of its pods work", customKind, silent,
			[]Assessment{crash, serves},
			Verdict{Unhealthy, "CrashLoopBackOff", "no status ← " + via + "Pod pod-0 CrashLoopBackOff: container web crashes"},
		},
		{"pods do not make the unknown healthy", customKind, silent, []Assessment{serves, serves}, Verdict{Unknown, "NoSignal", "no status; 2 of 2 pods ready"}},
		{"pods that leave or have ended are not counted", customKind, silent, []Assessment{serves, leaves, did}, Verdict{Unknown, "NoSignal", "no status; 1 of 1 pods ready"}},
		{
			"pods of the unknown start", customKind, silent,
			[]Assessment{starts, serves},
			Verdict{Reconciling, "Starting", "no status ← " + via + "Pod pod-0 Starting: the pod is starting"},
		},
		{
			"it says that it is ready, and no pod is", customKind, works,
			[]Assessment{crash},
			Verdict{Unhealthy, "CrashLoopBackOff", "Deployment web ← " + via + "Pod pod-0 CrashLoopBackOff: container web crashes"},
		},
		{"it is down anyway", customKind, Verdict{Down, "Broken", "failed"}, []Assessment{crash}, Verdict{Down, "Broken", "failed ← " + via + "Pod pod-0 CrashLoopBackOff: container web crashes"}},

		{"a Job that completed after a failed try", jobKind, Verdict{Healthy, Completed, ""}, []Assessment{did, failed}, Verdict{Healthy, Completed, ""}},
		{
			"a Job that has failed says why", jobKind,
			Verdict{Down, "BackoffLimitExceeded", "it failed"},
			[]Assessment{failed, failed},
			Verdict{Down, "BackoffLimitExceeded", "it failed ← " + via + "2 pods Error: container web ended"},
		},
		{
			"a Job has more tries", jobKind,
			Verdict{Unhealthy, "Retrying", "it has failed once"},
			[]Assessment{failed},
			Verdict{Unhealthy, "Retrying", "it has failed once ← " + via + "Pod pod-0 Error: container web ended"},
		},
		{
			"a Job's program crashes, and is restarted in its pod", jobKind, runs,
			[]Assessment{crash},
			Verdict{Unhealthy, "CrashLoopBackOff", "it runs ← " + via + "Pod pod-0 CrashLoopBackOff: container web crashes"},
		},
		{
			"a Job's pod cannot start, which is no try", jobKind, runs,
			[]Assessment{pull},
			Verdict{Down, "ImagePullBackOff", "it runs ← " + via + "Pod pod-0 ImagePullBackOff: image web cannot be pulled"},
		},
		{
			"one of a Job's pods cannot start", jobKind, runs,
			[]Assessment{pull, serves},
			Verdict{Unhealthy, "ImagePullBackOff", "it runs ← " + via + "Pod pod-0 ImagePullBackOff: image web cannot be pulled"},
		},
		{"a suspended Job, whose pods have gone or failed", jobKind, Verdict{Reconciling, "Suspended", "it is suspended"}, []Assessment{leaves, failed}, Verdict{Reconciling, "Suspended", "it is suspended"}},

		{"a CronJob whose run starts", cronJobKind, works, []Assessment{starts}, works},
		{"an earlier run of a CronJob failed", cronJobKind, works, []Assessment{failed, did}, works},
		{
			"a CronJob whose run cannot start", cronJobKind, works,
			[]Assessment{pull},
			Verdict{Unhealthy, "ImagePullBackOff", "Deployment web ← " + via + "Pod pod-0 ImagePullBackOff: image web cannot be pulled"},
		},
		{
			"a CronJob whose last run failed", cronJobKind,
			Verdict{Unhealthy, "LastRunFailed", "it has not succeeded"},
			[]Assessment{failed},
			Verdict{Unhealthy, "LastRunFailed", "it has not succeeded ← " + via + "Pod pod-0 Error: container web ended"},
		},

		{"it has only a label, and works", noKind, works, []Assessment{serves, did}, works},
		{"it has only a label, and starts", noKind, works, []Assessment{starts}, Verdict{Reconciling, "Starting", "Deployment web ← " + via + "Pod pod-0 Starting: the pod is starting"}},
		{"it has only a label, and works in part", noKind, works, []Assessment{serves, crash}, Verdict{Unhealthy, "CrashLoopBackOff", "Deployment web ← " + via + "Pod pod-1 CrashLoopBackOff: container web crashes"}},
		{"it has only a label, and nothing works", noKind, works, []Assessment{crash}, Verdict{Down, "CrashLoopBackOff", "Deployment web ← " + via + "Pod pod-0 CrashLoopBackOff: container web crashes"}},
		{"it has only a label, and is not ready", noKind, works, []Assessment{unready}, Verdict{Unhealthy, "NotReady", "Deployment web ← " + via + "Pod pod-0 NotReady: container web is not ready"}},
		{"it has only a label, and some of it leaves", noKind, works, []Assessment{serves, leaves}, works},
		{"it has only a label, and all of it leaves", noKind, works, []Assessment{leaves}, Verdict{Reconciling, "Terminating", "Deployment web ← " + via + "Pod pod-0 Terminating: the pod is being deleted"}},
		{"it has only a label, and another pod was made for one that failed", noKind, works, []Assessment{failed, serves}, works},
		{"it has only a label, and failed", noKind, works, []Assessment{failed}, Verdict{Down, "Error", "Deployment web ← " + via + "Pod pod-0 Error: container web ended"}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			for range 10 { // maps have no order
				var f Dependents
				for i, a := range tt.derived {
					f.Set(podDependent(i, a))
				}
				if got := f.Combine(tt.kind, Assessment{Verdict: tt.own, Subject: "Deployment web"}); got.Verdict != tt.want {
					t.Fatalf("got  %+v\nwant %+v", got.Verdict, tt.want)
				}
			}
		})
	}
}

// pathOf returns the path of some owners, each given as "Kind name".
func pathOf(owners ...string) OwnerPath {
	var path OwnerPath
	for _, owner := range owners {
		kind, name, _ := strings.Cut(owner, " ")
		path = path.Append(ObjectRef{kind, name})
	}
	return path
}

// podDependent is a pod of ReplicaSet web-1.
func podDependent(i int, a Assessment) Dependent {
	name := "pod-" + strconv.Itoa(i)
	return Dependent{UID: types.UID("uid-" + name), Kind: "Pod", Name: name, Via: pathOf("ReplicaSet web-1"), Assessment: a}
}

func TestDependentsCombine_FailedJobPodBelowAnotherKind(t *testing.T) {
	var f Dependents
	try := podDependent(0, failed)
	try.Via = pathOf("Job backup-1")
	f.Set(try)
	if got := f.Combine(customKind, serves); got.Status != Unhealthy {
		t.Errorf("after a failed Job: got %+v, want Unhealthy", got)
	}
	again := podDependent(1, did)
	again.Via = pathOf("Job backup-1")
	f.Set(again)
	if got := f.Combine(customKind, serves); got.Status != Healthy {
		t.Errorf("after a successful retry: got %+v, want Healthy", got)
	}
	f.Remove(again.UID)
	other := podDependent(2, did)
	other.Via = pathOf("Job backup-2")
	f.Set(other)
	if got := f.Combine(customKind, serves); got.Status != Unhealthy {
		t.Errorf("after the success of another Job: got %+v, want Unhealthy", got)
	}
	starting := podDependent(3, starts)
	starting.Via = pathOf("CronJob backup", "Job backup-3")
	f.Remove(try.UID)
	f.Set(starting)
	if got := f.Combine(customKind, serves); got.Status != Healthy {
		t.Errorf("while a new Job runs: got %+v, want Healthy", got)
	}
}

// TestDependents_AnyOrderOfChanges_SameResult adds, changes and removes dependents in many orders. The result depends only
// on the dependents that are left.
func TestDependents_AnyOrderOfChanges_SameResult(t *testing.T) {
	states := []Assessment{serves, did, crash, pull, restarts, unready, starts, late, leaves, stays, evicted, failed}
	var f Dependents
	now := map[int]Assessment{}
	seed := uint64(7)
	for step := range 1500 {
		seed = seed*6364136223846793005 + 1442695040888963407
		i, state := int(seed>>33)%20, int(seed>>45)%(len(states)+1)
		old, known := now[i]
		if state == len(states) {
			if f.Remove(podDependent(i, Assessment{}).UID) != known {
				t.Fatalf("step %d: Remove does not report whether the dependent existed", step)
			}
			delete(now, i)
		} else {
			if news := f.Set(podDependent(i, states[state])); news != (!known || old != states[state]) {
				t.Fatalf("step %d: Set reports the change %v, want %v", step, news, !known || old != states[state])
			}
			now[i] = states[state]
		}
		var fresh Dependents
		for _, i := range slices.Sorted(func(yield func(int) bool) {
			for i := range now {
				if !yield(i) {
					return
				}
			}
		}) {
			fresh.Set(podDependent(i, now[i]))
		}
		for _, kind := range []schema.GroupKind{deploymentKind, jobKind, cronJobKind, customKind, noKind} {
			for _, own := range []Status{Healthy, Unknown, Reconciling, Unhealthy, Down} {
				own := Assessment{Verdict: Verdict{own, "Own", "own"}}
				if got, want := f.Combine(kind, own), fresh.Combine(kind, own); got != want {
					t.Fatalf("step %d, %v: got %+v, want %+v", step, kind, got, want)
				}
			}
		}
		if f.Len() != len(now) || f.Count("Pod") != fresh.Count("Pod") {
			t.Fatalf("step %d: there are %d dependents, Pods %+v; want %d and %+v", step, f.Len(), f.Count("Pod"), len(now), fresh.Count("Pod"))
		}
	}
}

func TestDependentsCombine_SinceIsTheEarliest(t *testing.T) {
	var f Dependents
	at := func(minute int) time.Time { return time.Date(2026, 1, 1, 10, minute, 59, 0, time.UTC) }
	for i, minute := range []int{5, 2, 9} {
		a := pull
		a.Since = at(minute)
		f.Set(podDependent(i, a))
	}
	got := f.Combine(deploymentKind, Assessment{Verdict: Verdict{Down, "ReplicasNotReady", "Deployment web has 0 of 3 replicas ready"}})
	const want = "Deployment web has 0 of 3 replicas ready ← ReplicaSet web-1 ← 3 pods ImagePullBackOff: image web cannot be pulled, " +
		"since 2026-01-01T10:02Z"
	if got.Message != want || !got.Since.Equal(at(2)) {
		t.Errorf("got %q since %s, want %q", got.Message, got.Since, want)
	}
}

func TestDependentsCombine_LongTexts_BoundedMessage(t *testing.T) {
	long := strings.Repeat("ü", 100_000)
	var f Dependents
	for i := range 100 {
		m := podDependent(i, Assessment{Verdict: Verdict{Down, "Reason", long + strconv.Itoa(i)}})
		m.Via = pathOf("Thing " + long)
		f.Set(m)
	}
	got := f.Combine(deploymentKind, Assessment{Verdict: Verdict{Reconciling, "Own", long}})
	if len(got.Message) > 1500 || !strings.Contains(got.Message, "… ← ") || !strings.HasSuffix(got.Message, "; and 99 other causes") {
		t.Errorf("the message has %d bytes: %s", len(got.Message), got.Message)
	}
}

// bigDeployment returns the dependents of a Deployment. Three of ten pods fail, for three causes.
func bigDeployment(pods int) *Dependents {
	var f Dependents
	for i := range pods {
		f.Set(podDependent(i, []Assessment{crash, pull, starts, serves, serves, serves, serves, serves, serves, serves}[i%10]))
	}
	return &f
}

var rollingOut = Assessment{Verdict: Verdict{Reconciling, "RollingOut", "Deployment web has 1 of 500 replicas updated"}, Subject: "Deployment web"}

// changeOne changes a pod and assesses the Deployment again.
func changeOne(f *Dependents, i int) Aggregate {
	f.Set(podDependent(0, []Assessment{unready, crash}[i%2]))
	return f.Combine(deploymentKind, rollingOut)
}

// TestDependentsSet_CostIsIndependentOfSize compares the cost of a change of one pod among 10 and among 5,000: equal
// allocations, and a similar time.
func TestDependentsSet_CostIsIndependentOfSize(t *testing.T) {
	cost := func(pods int) (allocs float64, fastest time.Duration) {
		f := bigDeployment(pods)
		changeOne(f, 0)
		i := 0
		allocs = testing.AllocsPerRun(100, func() { i++; changeOne(f, i) })
		fastest = time.Hour
		for range 200 { // the fastest of many, because other processes only add time
			start := time.Now()
			for range 20 {
				i++
				changeOne(f, i)
			}
			fastest = min(fastest, time.Since(start))
		}
		return allocs, fastest
	}
	fewAllocs, few := cost(10)
	manyAllocs, many := cost(5000)
	if manyAllocs > 1.5*fewAllocs {
		t.Errorf("Set allocates %.0f times with 5,000 pods, and %.0f times with 10", manyAllocs, fewAllocs)
	}
	if many > 20*few { // reading all would take some hundred times as long
		t.Errorf("Set takes %s with 5,000 pods, and %s with 10", many, few)
	}
}

func BenchmarkDependentsSet(b *testing.B) {
	for _, pods := range []int{5, 500, 50_000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			f := bigDeployment(pods)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				changeOne(f, i)
			}
		})
	}
}
