package target

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	deploymentKind = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	replicaSetKind = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	podKind        = schema.GroupKind{Kind: "Pod"}
	nodeKind       = schema.GroupKind{Kind: "Node"}
)

// ident returns the identity of an object in namespace app.
func ident(kind schema.GroupKind, name string, uid types.UID) Identity {
	return Identity{Ref: Ref{Group: kind.Group, Kind: kind.Kind, Namespace: "app", Name: name}, UID: uid}
}

func clusterScoped(id Identity) Identity {
	id.Namespace = ""
	return id
}

var (
	web    = ident(deploymentKind, "web", "uid-web")
	webRS  = ident(replicaSetKind, "web-1", "uid-web-1")
	webPod = ident(podKind, "web-1-x", "uid-web-1-x")
)

func owned(id Identity, owners ...Identity) Object { return Object{Identity: id, Owners: owners} }

func labelled(o Object, ids ...int64) Object {
	for _, id := range ids {
		o.Instances = append(o.Instances, instanceOf(id))
	}
	return o
}

func instanceOf(id int64) Instance { return Instance{Type: WorkloadInstance, ID: id} }

// workload returns a workload that lists objects. The resource IDs start at 100 times the instance's ID.
func workload(name string, id int64, listed ...Identity) Workload {
	w := Workload{Name: name, Instance: instanceOf(id)}
	for i, o := range listed {
		w.Resources = append(w.Resources, Resource{Ref: o.Ref, Version: "v1", ID: 100*id + int64(i)})
	}
	return w
}

// labelsIn adds a namespace in which the label of a workload counts.
func labelsIn(w Workload, namespace string) Workload {
	w.LabelNamespaces = append(w.LabelNamespaces, namespace)
	return w
}

// attributionText returns an attribution as text: "shop: Deployment app/web" or "shop: Deployment app/web itself" or "shop".
func attributionText(a Attribution) string {
	text := a.Workload
	if a.Resource != (Resource{}) {
		text += ": " + a.Resource.String()
	}
	if a.Listed {
		text += " itself"
	}
	return text
}

func attributionTexts(attributions []Attribution) []string {
	var out []string
	for _, a := range attributions {
		out = append(out, attributionText(a))
	}
	return out
}

func expectAttributions(t *testing.T, r *Registry, id Identity, want ...string) {
	t.Helper()
	if got := attributionTexts(r.Attributions(id)); !slices.Equal(got, want) {
		t.Errorf("attributions of %s (%s) are %q, want %q", id.Ref, id.UID, got, want)
	}
}

// drained reports whether the result of a Drain contains an object, by its UID or by its name alone.
func drained(out []Identity, id Identity) bool {
	return slices.Contains(out, id) || slices.Contains(out, Identity{Ref: id.Ref})
}

func expectDrained(t *testing.T, r *Registry, want ...Identity) {
	t.Helper()
	out := r.Drain()
	for _, id := range want {
		if !drained(out, id) {
			t.Errorf("%s is not in the result of Drain: %v", id.Ref, out)
		}
	}
	if again := r.Drain(); again != nil {
		t.Errorf("the second Drain returned %v, want nothing", again)
	}
}

func signalled(r *Registry) bool {
	select {
	case <-r.Changed():
		return true
	default:
		return false
	}
}
