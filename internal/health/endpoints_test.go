package health

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// endpointObjects returns a Service web with an empty EndpointSlice, and more objects.
func endpointObjects(t *testing.T, more string) []*unstructured.Unstructured {
	t.Helper()
	const service = `[
  {apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop, uid: service}, spec: {selector: {app: web}}},
  {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-x, namespace: shop, uid: slice,
    creationTimestamp: "2026-01-01T09:00:00Z", ownerReferences: [{uid: service, controller: true}]}},
]`
	var out []*unstructured.Unstructured
	for _, text := range []string{service, more} {
		var objects []map[string]any
		if err := yaml.Unmarshal([]byte(text), &objects); err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			out = append(out, &unstructured.Unstructured{Object: o})
		}
	}
	return out
}

const (
	idleWeb = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: d, generation: 1},
    spec: {replicas: 0, template: {metadata: {labels: {app: web, tier: front}}}}, status: {observedGeneration: 1}}`
	idleOther = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: other, namespace: shop, uid: o, generation: 1},
    spec: {replicas: 0, template: {metadata: {labels: {app: other}}}}, status: {observedGeneration: 1}}`
	wantedWeb = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: green, namespace: shop, uid: g, generation: 1},
    spec: {replicas: 1, template: {metadata: {labels: {app: web}}}}, status: {observedGeneration: 1}}`
	runningWeb = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: blue, namespace: shop, uid: b, generation: 1},
    spec: {replicas: 1, template: {metadata: {labels: {app: web}}}},
    status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}}`
	idleElsewhere = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: test, uid: e, generation: 1},
    spec: {replicas: 0, template: {metadata: {labels: {app: web}}}}, status: {observedGeneration: 1}}`
)

// idleReplicaSet is what remains of a rollout of idleWeb.
const idleReplicaSet = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, namespace: shop, uid: r, generation: 1,
    ownerReferences: [{uid: d, controller: true}]}, spec: {replicas: 0, template: {metadata: {labels: {app: web}}}}, status: {observedGeneration: 1}}`

func list(objects ...string) string { return "[" + strings.Join(objects, ",") + "]" }

func TestForest_EmptyEndpointSlice_OfIdleWorkload(t *testing.T) {
	idle, fault := Verdict{Healthy, ScaledToZero, "Deployment web is scaled to 0"}, Verdict{Down, "NoEndpoints", "no endpoints: no pod receives traffic, for more than 10m"}
	onItsWay := Verdict{Reconciling, "NoEndpoints", "no endpoints: no pod receives traffic"}
	for _, tt := range []struct {
		reason, more string
		want         Verdict // on the EndpointSlice
	}{
		{"the selected workload is scaled to 0", list(idleWeb), idle},
		{"the same, with its ReplicaSet", list(idleWeb, idleReplicaSet), idle},
		{"no object has the selected labels", list(), fault},

		{"only another workload is scaled to 0", list(idleOther), fault},
		{"one in another namespace is scaled to 0", list(idleElsewhere), fault},

		{"another selected workload wants a pod", list(idleWeb, wantedWeb), onItsWay},
		{"the same, in the other order", list(wantedWeb, idleWeb), onItsWay},
		{"a third one has its pod", list(wantedWeb, runningWeb, idleWeb), fault},
		{"an idle one beside it is not selected", list(idleOther, idleWeb), idle},
	} {
		roots := Forest(endpointObjects(t, tt.more), atTime(caseTime))
		service, slice := roots[0].Aggregate, roots[0].Children[0].Aggregate
		if slice.Verdict != tt.want {
			t.Errorf("%s: the EndpointSlice is %v, want %v", tt.reason, slice.Verdict, tt.want)
		}
		if service.Status != tt.want.Status || !slice.Recheck.IsZero() {
			t.Errorf("%s: the Service is %v, want %s; recheck %s", tt.reason, service.Verdict, tt.want.Status, slice.Recheck)
		}
	}
}

// Endpoints of terminating pods count as none. Others that are not ready are a fault, although the listed workload wants no Pods: another
// workload may have them.
func TestForest_EndpointsNotReady_OfIdleWorkload(t *testing.T) {
	for _, tt := range []struct {
		endpoints string
		want      Status
	}{
		{"[{conditions: {ready: false, terminating: true}}]", Healthy},
		{"[{conditions: {ready: false, terminating: true}}, {conditions: {ready: false}}]", Down},
		{"[{conditions: {ready: false, terminating: false}}]", Down},
	} {
		objects := endpointObjects(t, list(idleWeb))
		var endpoints []any
		if err := yaml.Unmarshal([]byte(tt.endpoints), &endpoints); err != nil {
			t.Fatal(err)
		}
		objects[1].Object["endpoints"] = endpoints
		if service := Forest(objects, atTime(caseTime))[0].Aggregate; service.Status != tt.want {
			t.Errorf("with the endpoints %s, the Service is %v, want %s", tt.endpoints, service.Verdict, tt.want)
		}
	}
}

// A StatefulSet that is older than the limit is Unhealthy by itself until it has its Pods. With one that starts, it is Reconciling.
func TestForest_EmptyEndpointSlice_OfStartingStatefulSet(t *testing.T) {
	const statefulSet = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web, namespace: shop, uid: d, generation: 2, creationTimestamp: "2026-01-01T09:00:00Z"},
    spec: {replicas: 1, template: {metadata: {labels: {app: web}}}}, status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1}}`
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: web-0, namespace: shop, uid: p, creationTimestamp: "2026-01-01T09:59:58Z",
    ownerReferences: [{uid: d, controller: true}]}, spec: {containers: [{name: app}]}, status: {phase: Pending}}`
	for _, root := range Forest(endpointObjects(t, list(statefulSet, pod)), atTime(caseTime)) {
		if root.Aggregate.Status != Reconciling {
			t.Errorf("%s is %v, want Reconciling", root.Object.GetKind(), root.Aggregate.Verdict)
		}
	}
}

// A Service without a selector has no Pods that an idle workload could explain.
func TestExpectedVerdict_NoSelector(t *testing.T) {
	objects := endpointObjects(t, list(idleWeb))
	unstructured.RemoveNestedField(objects[0].Object, "spec", "selector")
	if slice := Forest(objects, atTime(caseTime))[0].Children[0].Self; slice.Status != Down {
		t.Errorf("the EndpointSlice is %v, want Down", slice.Verdict)
	}
}

// The verdict on a Service follows the workload that it selects, without a change of the EndpointSlice.
func TestDependents_SetExpected(t *testing.T) {
	var f Dependents
	empty := verdict(Down, noEndpoints, "no endpoints")
	empty.Since = caseTime.Add(-time.Hour)
	f.Set(Dependent{UID: "1", Kind: "EndpointSlice", Name: "web-x", Assessment: empty})
	f.Set(Dependent{UID: "2", Kind: "EndpointSlice", Name: "web-y", Assessment: empty})
	expect := func(moment string, want Status) {
		t.Helper()
		if got := f.Combine(schema.GroupKind{Kind: "Service"}, healthy).Status; got != want {
			t.Errorf("%s: the Service is %s, want %s", moment, got, want)
		}
		f.Each(func(d Dependent) {
			if d.Status != want {
				t.Errorf("%s: %s is %s, want %s", moment, d.Name, d.Status, want)
			}
		})
	}
	expect("at first", Down)
	if !f.SetExpected(Verdict{Healthy, ScaledToZero, "scaled to 0"}) || f.SetExpected(Verdict{Healthy, ScaledToZero, "scaled to 0"}) {
		t.Error("SetExpected reports a change for the first call only")
	}
	expect("scaled to 0", Healthy)
	f.Remove("2")
	f.Set(Dependent{UID: "2", Kind: "EndpointSlice", Name: "web-y", Assessment: empty})
	expect("another EndpointSlice", Healthy)
	f.SetExpected(Verdict{Reconciling, noEndpoints, noEndpointsMessage})
	expect("scaled up", Reconciling)
	f.Set(Dependent{UID: "2", Kind: "EndpointSlice", Name: "web-y", Assessment: verdict(Down, noReadyEndpoints, "no ready endpoints")})
	if got := f.Combine(schema.GroupKind{Kind: "Service"}, healthy).Status; got != Down {
		t.Errorf("with pods that are not ready, the Service is %s, want Down", got)
	}
	f.Set(Dependent{UID: "2", Kind: "EndpointSlice", Name: "web-y", Assessment: empty})
	f.SetExpected(Verdict{})
	expect("the pods are there", Down)
	f.Remove("1")
	f.Remove("2")
	if f.Len() != 0 || len(f.groups) != 0 || len(f.kinds) != 0 {
		t.Errorf("%d dependents, %d groups and %d kinds are left", f.Len(), len(f.groups), len(f.kinds))
	}
}
