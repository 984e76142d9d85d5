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

// ident names an object of namespace app.
func ident(kind schema.GroupKind, name string, uid types.UID) Identity {
	return Identity{Ref{kind.Group, kind.Kind, "app", name}, uid}
}

func clusterWide(id Identity) Identity {
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

func instanceOf(id int64) Instance { return Instance{WorkloadInstance, id} }

// workload declares objects under the instance's ID; their resource IDs count from 100 times that.
func workload(name string, id int64, listed ...Identity) Workload {
	w := Workload{Name: name, Instance: instanceOf(id)}
	for i, o := range listed {
		w.Resources = append(w.Resources, Resource{Ref: o.Ref, Version: "v1", ID: 100*id + int64(i)})
	}
	return w
}

// claimText names a claim: "shop: Deployment app/web" or "shop: Deployment app/web itself" or "shop".
func claimText(c Attribution) string {
	text := c.Workload
	if c.Resource != (Resource{}) {
		text += ": " + c.Resource.String()
	}
	if c.Listed {
		text += " itself"
	}
	return text
}

func claimTexts(claims []Attribution) []string {
	var out []string
	for _, c := range claims {
		out = append(out, claimText(c))
	}
	return out
}

func expectClaims(t *testing.T, r *Registry, id Identity, want ...string) {
	t.Helper()
	if got := claimTexts(r.Attributions(id)); !slices.Equal(got, want) {
		t.Errorf("claims on %s (%s) are %q, want %q", id.Ref, id.UID, got, want)
	}
}

// drained tells whether the last Drain handed out an object, by its UID or by its name alone.
func drained(out []Identity, id Identity) bool {
	return slices.Contains(out, id) || slices.Contains(out, Identity{Ref: id.Ref})
}

func expectDrained(t *testing.T, r *Registry, want ...Identity) {
	t.Helper()
	out := r.Drain()
	for _, id := range want {
		if !drained(out, id) {
			t.Errorf("%s is not handed out in %v", id.Ref, out)
		}
	}
	if again := r.Drain(); again != nil {
		t.Errorf("handed out a second time: %v", again)
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
