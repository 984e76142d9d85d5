package assess

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

const (
	service    = `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: ns, uid: s}, spec: {selector: {app: web}}}`
	emptySlice = `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-x, namespace: ns, uid: x,
  creationTimestamp: "2026-01-01T09:00:00Z", ownerReferences: [{kind: Service, name: web, uid: s}]}}`
	idleDeployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: ns, uid: d, generation: 1},
  spec: {replicas: 0, template: {metadata: {labels: {app: web}}}}, status: {observedGeneration: 1}}`
	startedDeployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: ns, uid: d, generation: 2},
  spec: {replicas: 1, template: {metadata: {labels: {app: web}}}}, status: {observedGeneration: 1}}`
	otherDeployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: ns, uid: d, generation: 2},
  spec: {replicas: 0, template: {metadata: {labels: {app: other}}}}, status: {observedGeneration: 2}}`
)

func object(t *testing.T, text string) Object {
	t.Helper()
	var u unstructured.Unstructured
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	kind := u.GroupVersionKind()
	ref := target.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
	return Object{Identity: target.Identity{Ref: ref, UID: u.GetUID()}, Cached: &u, Whole: &u}
}

// A Service without endpoints is no fault while the Deployment that it selects is scaled to 0.
func TestAssessor_EmptyEndpointSlice_OfIdleDeployment(t *testing.T) {
	a, _ := newAssessor()
	svc, slice, deployment := object(t, service), object(t, emptySlice), object(t, idleDeployment)
	a.targets.Track(target.Workload{Name: "web", Resources: []target.Resource{{Ref: deployment.Ref}, {Ref: svc.Ref}}})
	listed := func(o Object) Change {
		return a.assess(target.Attribution{Workload: "web", Resource: target.Resource{Ref: o.Ref}, Listed: true}, o)
	}
	expect := func(moment string, workload, endpoints health.Status) {
		t.Helper()
		if v, ok := a.Verdict("web"); !ok || v.Status != workload {
			t.Errorf("%s: the workload is %v, %t, want %s", moment, v, ok, workload)
		}
		if got := a.assessments.descendants("web")[types.UID("x")].Status; got != endpoints {
			t.Errorf("%s: the EndpointSlice in the tree is %s, want %s", moment, got, endpoints)
		}
	}
	listed(svc)
	a.assess(target.Attribution{Workload: "web", Resource: target.Resource{Ref: svc.Ref}}, slice)
	listed(deployment)
	expect("scaled to 0", health.Healthy, health.Healthy)
	if statuses, _ := a.ResourceStatuses("web"); statuses[1].Health != string(health.Healthy) {
		t.Errorf("scaled to 0: the Service is %s, want Healthy", statuses[1].Health)
	}
	listed(object(t, startedDeployment))
	expect("scaled up", health.Reconciling, health.Reconciling)
	listed(deployment)
	expect("scaled to 0 again", health.Healthy, health.Healthy)
	if !listed(object(t, otherDeployment)).Assessment {
		t.Error("other labels of the Pods are no change")
	}
	expect("another Deployment is scaled to 0", health.Down, health.Down)
}
