package health

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
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
	const via = " → ReplicaSet web-1 → "
	tests := []struct {
		reason  string
		kind    schema.GroupKind
		own     Verdict
		derived []Assessment
		want    Verdict
	}{
		{reason: "nothing descends from it", kind: deploymentKind, own: onItsWay, want: onItsWay},
		{reason: "nothing fails", kind: deploymentKind, own: works, derived: []Assessment{serves, serves}, want: works},
		{
			reason: "all pods fail, so it is not Reconciling", kind: deploymentKind, own: onItsWay,
			derived: []Assessment{crash, crash},
			want:    Verdict{Down, "CrashLoopBackOff", "2 pods CrashLoopBackOff: container web crashes" + via + "0 of 2"},
		},
		{
			reason: "some pods fail", kind: deploymentKind, own: onItsWay,
			derived: []Assessment{serves, crash},
			want:    Verdict{Unhealthy, "CrashLoopBackOff", "Pod pod-1 CrashLoopBackOff: container web crashes" + via + "0 of 2"},
		},
		{
			reason: "pods run, and none is ready", kind: deploymentKind, own: onItsWay,
			derived: []Assessment{unready, unready},
			want:    Verdict{Down, "NotReady", "2 pods NotReady: container web is not ready" + via + "0 of 2"},
		},
		{
			reason: "a pod that crashed serves again", kind: deploymentKind, own: works,
			derived: []Assessment{restarts},
			want:    Verdict{Unhealthy, "Restarting", "Pod pod-0 Restarting: container web runs again" + via + "Deployment web"},
		},
		{
			reason: "its deadline is over and nothing works", kind: deploymentKind, own: timedOut,
			derived: []Assessment{crash},
			want:    Verdict{Down, "CrashLoopBackOff", "Pod pod-0 CrashLoopBackOff: container web crashes" + via + "it timed out"},
		},
		{
			reason: "its deadline is over, and its pods only start", kind: deploymentKind,
			own:     Verdict{Down, "ProgressDeadlineExceeded", "it timed out"},
			derived: []Assessment{starts},
			want:    Verdict{Down, "ProgressDeadlineExceeded", "Pod pod-0 Starting: the pod is starting" + via + "it timed out"},
		},
		{
			reason: "its status lags behind a pod that fails", kind: deploymentKind, own: works,
			derived: []Assessment{serves, crash},
			want:    Verdict{Unhealthy, "CrashLoopBackOff", "Pod pod-1 CrashLoopBackOff: container web crashes" + via + "Deployment web"},
		},
		{
			reason: "its status lags behind a pod that starts", kind: deploymentKind, own: works,
			derived: []Assessment{serves, starts},
			want:    Verdict{Reconciling, "Starting", "Pod pod-1 Starting: the pod is starting" + via + "Deployment web"},
		},
		{
			reason: "it and its pods are Reconciling", kind: deploymentKind, own: onItsWay,
			derived: []Assessment{starts},
			want:    Verdict{Reconciling, "ReplicasNotReady", "Pod pod-0 Starting: the pod is starting" + via + "0 of 2"},
		},
		{reason: "pods leave as they should", kind: deploymentKind, own: works, derived: []Assessment{serves, leaves, leaves}, want: works},
		{
			reason: "it is Reconciling, and its old pods are Terminating", kind: deploymentKind,
			own: onItsWay, derived: []Assessment{leaves, leaves}, want: onItsWay,
		},
		{
			reason: "a pod does not leave", kind: deploymentKind, own: works,
			derived: []Assessment{serves, stays},
			want:    Verdict{Unhealthy, terminatingTooLong, "Pod pod-1 TerminatingTooLong: the pod is kept" + via + "Deployment web"},
		},
		{
			reason: "a pod was evicted, and another made in its place", kind: deploymentKind,
			own: works, derived: []Assessment{serves, evicted}, want: works,
		},
		{
			reason: "a pod was evicted, and the other starts", kind: deploymentKind, own: onItsWay,
			derived: []Assessment{starts, evicted},
			want:    Verdict{Reconciling, "ReplicasNotReady", "Pod pod-0 Starting: the pod is starting" + via + "0 of 2"},
		},
		{
			reason: "a pod was evicted, and none made in its place", kind: deploymentKind, own: onItsWay,
			derived: []Assessment{evicted},
			want:    Verdict{Down, "Evicted", "Pod pod-0 Evicted: the pod was evicted" + via + "0 of 2"},
		},
		{
			reason: "a pod takes long, and the Deployment's own deadline is not over", kind: deploymentKind, own: onItsWay,
			derived: []Assessment{late},
			want:    Verdict{Reconciling, "ReplicasNotReady", "Pod pod-0 StartingTooLong: the pod is starting for long" + via + "0 of 2"},
		},
		{
			reason: "a pod takes long, and no rollout goes on", kind: deploymentKind,
			own:     Verdict{Reconciling, replicasMissing, "1 of 2"},
			derived: []Assessment{serves, late},
			want:    Verdict{Unhealthy, "StartingTooLong", "Pod pod-1 StartingTooLong: the pod is starting for long" + via + "1 of 2"},
		},
		{
			reason:  "a pod takes long, and its StatefulSet has no deadline",
			kind:    schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
			own:     onItsWay,
			derived: []Assessment{late},
			want:    Verdict{Down, "StartingTooLong", "Pod pod-0 StartingTooLong: the pod is starting for long" + via + "0 of 2"},
		},
		{
			reason: "it is being deleted, and so will be its pods", kind: deploymentKind,
			own: Verdict{Reconciling, "Terminating", "it goes"}, derived: []Assessment{crash, leaves},
			want: Verdict{Reconciling, "Terminating", "it goes"},
		},
		{
			reason: "the most frequent cause is named", kind: deploymentKind, own: onItsWay,
			derived: []Assessment{crash, pull, pull},
			want:    Verdict{Down, "ImagePullBackOff", "2 pods ImagePullBackOff: image web cannot be pulled; and 1 other cause" + via + "0 of 2"},
		},
		{
			reason: "of equals the same one each time", kind: deploymentKind, own: onItsWay,
			derived: []Assessment{pull, pull, crash, crash, unready},
			want:    Verdict{Down, "CrashLoopBackOff", "2 pods CrashLoopBackOff: container web crashes; and 2 other causes" + via + "0 of 2"},
		},

		{
			reason: "an object without a status is judged by its pods", kind: customKind, own: silent,
			derived: []Assessment{crash},
			want:    Verdict{Down, "CrashLoopBackOff", "Pod pod-0 CrashLoopBackOff: container web crashes" + via + "no status"},
		},
		{
			reason: "some of its pods work", kind: customKind, own: silent,
			derived: []Assessment{crash, serves},
			want:    Verdict{Unhealthy, "CrashLoopBackOff", "Pod pod-0 CrashLoopBackOff: container web crashes" + via + "no status"},
		},
		{
			reason: "pods do not make the unknown healthy", kind: customKind, own: silent,
			derived: []Assessment{serves, serves}, want: Verdict{Unknown, "NoSignal", "no status; 2 of 2 pods ready"},
		},
		{
			reason: "pods that leave or have ended are not counted", kind: customKind,
			own: silent, derived: []Assessment{serves, leaves, did}, want: Verdict{Unknown, "NoSignal", "no status; 1 of 1 pod ready"},
		},
		{
			reason: "pods of the unknown start", kind: customKind, own: silent,
			derived: []Assessment{starts, serves},
			want:    Verdict{Reconciling, "Starting", "Pod pod-0 Starting: the pod is starting" + via + "no status"},
		},
		{
			reason: "the object is ready, but no pod is", kind: customKind, own: works,
			derived: []Assessment{crash},
			want:    Verdict{Unhealthy, "CrashLoopBackOff", "Pod pod-0 CrashLoopBackOff: container web crashes" + via + "Deployment web"},
		},
		{
			reason: "it is down anyway", kind: customKind, own: Verdict{Down, "Broken", "failed"},
			derived: []Assessment{crash},
			want:    Verdict{Down, "Broken", "Pod pod-0 CrashLoopBackOff: container web crashes" + via + "failed"},
		},

		{
			reason: "a Job that completed after a failed try", kind: jobKind, own: Verdict{Healthy, Completed, ""},
			derived: []Assessment{did, failed}, want: Verdict{Healthy, Completed, ""},
		},
		{
			reason: "a Job that has failed says why", kind: jobKind,
			own:     Verdict{Down, "BackoffLimitExceeded", "it failed"},
			derived: []Assessment{failed, failed},
			want:    Verdict{Down, "BackoffLimitExceeded", "2 pods Error: container web ended" + via + "it failed"},
		},
		{
			reason: "a Job has more tries", kind: jobKind,
			own:     Verdict{Unhealthy, "Retrying", "it has failed once"},
			derived: []Assessment{failed},
			want:    Verdict{Unhealthy, "Retrying", "Pod pod-0 Error: container web ended" + via + "it has failed once"},
		},
		{
			reason: "a Job's program crashes, and is restarted in its pod", kind: jobKind, own: runs,
			derived: []Assessment{crash},
			want:    Verdict{Unhealthy, "CrashLoopBackOff", "Pod pod-0 CrashLoopBackOff: container web crashes" + via + "it runs"},
		},
		{
			reason: "a Job's pod cannot start, which is no try", kind: jobKind, own: runs,
			derived: []Assessment{pull},
			want:    Verdict{Down, "ImagePullBackOff", "Pod pod-0 ImagePullBackOff: image web cannot be pulled" + via + "it runs"},
		},
		{
			reason: "one of a Job's pods cannot start", kind: jobKind, own: runs,
			derived: []Assessment{pull, serves},
			want:    Verdict{Unhealthy, "ImagePullBackOff", "Pod pod-0 ImagePullBackOff: image web cannot be pulled" + via + "it runs"},
		},
		{
			reason: "a suspended Job, whose pods have gone or failed", kind: jobKind,
			own: Verdict{Reconciling, "Suspended", "it is suspended"}, derived: []Assessment{leaves, failed},
			want: Verdict{Reconciling, "Suspended", "it is suspended"},
		},

		{reason: "a CronJob whose run starts", kind: cronJobKind, own: works, derived: []Assessment{starts}, want: works},
		{reason: "an earlier run of a CronJob failed", kind: cronJobKind, own: works, derived: []Assessment{failed, did}, want: works},
		{
			reason: "a CronJob whose run cannot start", kind: cronJobKind, own: works,
			derived: []Assessment{pull},
			want:    Verdict{Unhealthy, "ImagePullBackOff", "Pod pod-0 ImagePullBackOff: image web cannot be pulled" + via + "Deployment web"},
		},
		{
			reason: "a CronJob whose last run failed", kind: cronJobKind,
			own:     Verdict{Unhealthy, "LastRunFailed", "it has not succeeded"},
			derived: []Assessment{failed},
			want:    Verdict{Unhealthy, "LastRunFailed", "Pod pod-0 Error: container web ended" + via + "it has not succeeded"},
		},

		{reason: "it has only a label, and works", kind: noKind, own: works, derived: []Assessment{serves, did}, want: works},
		{
			reason: "it has only a label, and starts", kind: noKind, own: works, derived: []Assessment{starts},
			want: Verdict{Reconciling, "Starting", "Pod pod-0 Starting: the pod is starting" + via + "Deployment web"},
		},
		{
			reason: "it has only a label, and works in part", kind: noKind, own: works,
			derived: []Assessment{serves, crash},
			want:    Verdict{Unhealthy, "CrashLoopBackOff", "Pod pod-1 CrashLoopBackOff: container web crashes" + via + "Deployment web"},
		},
		{
			reason: "it has only a label, and nothing works", kind: noKind, own: works,
			derived: []Assessment{crash},
			want:    Verdict{Down, "CrashLoopBackOff", "Pod pod-0 CrashLoopBackOff: container web crashes" + via + "Deployment web"},
		},
		{
			reason: "it has only a label, and is not ready", kind: noKind, own: works,
			derived: []Assessment{unready},
			want:    Verdict{Unhealthy, "NotReady", "Pod pod-0 NotReady: container web is not ready" + via + "Deployment web"},
		},
		{reason: "it has only a label, and some of it leaves", kind: noKind, own: works, derived: []Assessment{serves, leaves}, want: works},
		{
			reason: "it has only a label, and all of it leaves", kind: noKind, own: works,
			derived: []Assessment{leaves},
			want:    Verdict{Reconciling, "Terminating", "Pod pod-0 Terminating: the pod is being deleted" + via + "Deployment web"},
		},
		{
			reason: "it has only a label, and another pod was made for one that failed",
			kind:   noKind, own: works, derived: []Assessment{failed, serves}, want: works,
		},
		{
			reason: "it has only a label, and failed", kind: noKind, own: works, derived: []Assessment{failed},
			want: Verdict{Down, "Error", "Pod pod-0 Error: container web ended" + via + "Deployment web"},
		},
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
	start := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
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
			a := states[state]
			a.Since, a.Revision = start.Add(time.Duration(seed>>50%4)*time.Minute), fmt.Sprint("web-", seed>>52%2)
			want := !known || old.Verdict != a.Verdict || old.Phase != a.Phase || old.Revision != a.Revision
			if got := f.Set(podDependent(i, a)); got != want {
				t.Fatalf("step %d: Set reports the change %v, want %v", step, got, want)
			}
			now[i] = a
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
				own := Assessment{Verdict: Verdict{own, "Own", "own"}, Revision: "web-1"}
				if got, want := f.Combine(kind, own), fresh.Combine(kind, own); got != want {
					t.Fatalf("step %d, %v: got %+v, want %+v", step, kind, got, want)
				}
			}
		}
		if f.Len() != len(now) || f.Count("Pod") != fresh.Count("Pod") || f.Pods() != fresh.Pods() {
			t.Fatalf("step %d: there are %d dependents, Pods %+v, without completed ones %+v; want %d, %+v, %+v",
				step, f.Len(), f.Count("Pod"), f.Pods(), len(now), fresh.Count("Pod"), fresh.Pods())
		}
	}
}

// In a rollout of another broken template, the fault of the new Pod is the cause, although more old Pods have another one.
func TestDependentsCombine_LatestRevisionIsTheCause(t *testing.T) {
	var f Dependents
	for i := range 3 {
		f.Set(podDependent(i, pull))
	}
	latest := podDependent(3, pull)
	latest.Message, latest.Via = "image later cannot be pulled", pathOf("ReplicaSet web-2")
	f.Set(latest)
	got := f.Combine(deploymentKind, Assessment{Verdict: Verdict{Down, "ReplicasNotReady", "Deployment web"}, Revision: "web-2"})
	if !strings.Contains(got.Message, "image later cannot be pulled") || !strings.Contains(got.Message, "ReplicaSet web-2") {
		t.Errorf("the cause is %q, want that of the new Pod", got.Message)
	}
}

func TestTruncateMiddle_KeepsBothEnds(t *testing.T) {
	for name, want := range map[string]string{
		"web:1":                             "web:1",
		"registry.example.com/shop/web:202": "registr…op/web:202",
		"ääääääääääää":                      "äää…äääää",
	} {
		if got := truncateMiddle(name, 20); got != want {
			t.Errorf("%q became %q of %d bytes, want %q", name, got, len(got), want)
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
	const want = "3 pods ImagePullBackOff: image web cannot be pulled → ReplicaSet web-1 → Deployment web has 0 of 3 replicas ready"
	if got.Message != want || !got.Since.Equal(at(2)) {
		t.Errorf("got %q since %s, want %q", got.Message, got.Since, want)
	}
}

func TestDependentsPods_LeaveOutCompleted(t *testing.T) {
	var f Dependents
	for i, a := range []Assessment{serves, did, crash, failed, did} {
		f.Set(podDependent(i, a))
	}
	if got, want := f.Pods(), (Count{Total: 3, Healthy: 1}); got != want {
		t.Errorf("the Pods are %+v, want %+v", got, want)
	}
	f.Set(podDependent(1, serves))
	f.Remove(podDependent(4, did).UID)
	if got, want := f.Pods(), (Count{Total: 4, Healthy: 2}); got != want {
		t.Errorf("after two changes the Pods are %+v, want %+v", got, want)
	}
}

// objectOf returns an object with its UID as its name, below an owner.
func objectOf(t *testing.T, kind, name, owner, rest string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	text := fmt.Sprintf("kind: %s\nmetadata: {name: %s, uid: %s, generation: 2, ownerReferences: [{uid: %q, controller: true}]}\n%s", kind, name, name, owner, rest)
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// assessFirst returns the health of the first object together with the others.
func assessFirst(objects ...*unstructured.Unstructured) Aggregate {
	return Forest(objects, func(*unstructured.Unstructured) Context { return Context{Now: caseTime} })[0].Aggregate
}

const (
	readyPod   = "apiVersion: v1\nstatus: {phase: Running, conditions: [{type: Ready, status: \"True\"}], containerStatuses: [{name: web, ready: true, state: {running: {}}}]}"
	failingPod = "apiVersion: v1\nstatus: {phase: Pending, containerStatuses: [{name: web, image: a, state: {waiting: {reason: ImagePullBackOff}}}]}"
)

// The name of the new ReplicaSet is in the Deployment's condition.
func TestForest_FailedDeploymentRollout_SaysWhichPodsServe(t *testing.T) {
	deployment := func(progressing string) *unstructured.Unstructured {
		return objectOf(t, "Deployment", "web", "", "apiVersion: apps/v1\nspec: {replicas: 2}\nstatus: {observedGeneration: 2, replicas: 3, updatedReplicas: 1, readyReplicas: 2, "+
			"availableReplicas: 2, conditions: [{type: Progressing, status: \"False\", reason: ProgressDeadlineExceeded, message: '"+progressing+"'}]}")
	}
	sets := []*unstructured.Unstructured{
		objectOf(t, "ReplicaSet", "web-1", "web", "apiVersion: apps/v1\nspec: {replicas: 2}\nstatus: {replicas: 2, readyReplicas: 2, observedGeneration: 2}"),
		objectOf(t, "ReplicaSet", "web-2", "web", "apiVersion: apps/v1\nspec: {replicas: 1}\nstatus: {replicas: 1, observedGeneration: 2}"),
		objectOf(t, "Pod", "web-1-a", "web-1", readyPod), objectOf(t, "Pod", "web-1-b", "web-1", readyPod),
	}
	failing := objectOf(t, "Pod", "web-2-a", "web-2", failingPod)
	const (
		fault    = "Pod web-2-a ImagePullBackOff: image a cannot be pulled"
		oldServe = "; 2 of 2 old pods serve, 0 of 1 new ready"

		effect = "Deployment web has 2 of 2 replicas ready, and its rollout does not progress within its deadline"
	)
	for message, serving := range map[string]string{
		`ReplicaSet "web-2" has timed out progressing.`: oldServe,
		`ReplicaSet "web-2" is progressing.`:            oldServe,
		`Created new replica set "web-2"`:               "; 2 of 2 old pods serve, 0 of 1 new ready",
		`Deployment "web" has timed out progressing.`:   "",
	} {
		got := assessFirst(slices.Concat([]*unstructured.Unstructured{deployment(message)}, sets, []*unstructured.Unstructured{failing})...)
		want := Verdict{Unhealthy, "ImagePullBackOff", fault + serving + " → ReplicaSet web-2 → " + effect}
		if got.Verdict != want {
			t.Errorf("%s: the verdict is %+v, want %+v", message, got.Verdict, want)
		}
	}
	got := assessFirst(slices.Concat([]*unstructured.Unstructured{deployment(`ReplicaSet "web-2" is progressing.`)}, sets)...)
	if want := effect + "; 2 of 2 old pods serve, 0 of 0 new ready"; got.Message != want {
		t.Errorf("without a new pod: the message is %q, want %q", got.Message, want)
	}
}

// The revision of a Pod of a StatefulSet is in its label.
func TestForest_FailedStatefulSetRollout_SaysWhichPodsServe(t *testing.T) {
	pod := func(name, revision, state string) *unstructured.Unstructured {
		u := objectOf(t, "Pod", name, "db", state)
		u.SetLabels(map[string]string{"controller-revision-hash": revision})
		return u
	}
	pods := []*unstructured.Unstructured{pod("db-0", "db-1a", readyPod), pod("db-1", "db-1a", readyPod), pod("db-2", "db-2b", failingPod)}
	const fault, effect = "Pod db-2 ImagePullBackOff: image a cannot be pulled", " → StatefulSet db has 1 of 3 replicas updated"
	for _, tt := range []struct{ reason, strategy, serving string }{
		{"a rolling update", "RollingUpdate", "; 2 of 2 old pods serve, 0 of 1 new ready"},
		{"without a rollout", "OnDelete", ""},
	} {
		set := objectOf(t, "StatefulSet", "db", "", "apiVersion: apps/v1\nspec: {replicas: 3, updateStrategy: {type: "+tt.strategy+"}}\n"+
			"status: {observedGeneration: 2, replicas: 3, updatedReplicas: 1, readyReplicas: 2, currentRevision: db-1a, updateRevision: db-2b}")
		got := assessFirst(append([]*unstructured.Unstructured{set}, pods...)...)
		if want := fault + tt.serving; !strings.HasPrefix(got.Message, want+" → ") || tt.serving != "" && got.Message != want+effect {
			t.Errorf("%s: the message is %q, want %q", tt.reason, got.Message, want+effect)
		}
	}
}

// The chain leads to the custom resource also if its own status has no message.
func TestForest_CustomResourceAboveADeployment_CauseHasAllOwners(t *testing.T) {
	for status, effect := range map[string]string{
		"status: {conditions: [{type: Ready, status: 'True'}]}": "Rollout web",
		"status: {phase: Running}":                              "Rollout web",
		"status: {phase: Degraded, message: it waits}":          "Rollout web has the phase Degraded: it waits",
		"": "Rollout web has no status that shows its health",
	} {
		got := assessFirst(
			objectOf(t, "Rollout", "web", "", "apiVersion: example.com/v1\n"+status),
			objectOf(t, "Deployment", "web-d", "web", "apiVersion: apps/v1\nspec: {replicas: 1}\nstatus: {observedGeneration: 2, replicas: 1, updatedReplicas: 1}"),
			objectOf(t, "ReplicaSet", "web-r", "web-d", "apiVersion: apps/v1\nspec: {replicas: 1}\nstatus: {replicas: 1, observedGeneration: 2}"),
			objectOf(t, "Pod", "web-p", "web-r", failingPod),
		)
		want := "Pod web-p ImagePullBackOff: image a cannot be pulled → ReplicaSet web-r → Deployment web-d → " + effect
		if got.Reason != "ImagePullBackOff" || got.Message != want {
			t.Errorf("%q: the verdict is %s: %q, want %q", status, got.Reason, got.Message, want)
		}
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
	if len(got.Message) > 1500 || !strings.Contains(got.Message, "…; and 99 other causes → ") || !strings.HasPrefix(got.Message, "Pod pod-") {
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
