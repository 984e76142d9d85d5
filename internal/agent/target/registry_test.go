package target

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestTrack_SameDeclaration_HasNoEffect(t *testing.T) {
	r := NewRegistry()
	listed := workload("shop", 1, web, webPod)
	if !r.Track(listed) || !signalled(r) {
		t.Error("a new workload was not reported as a change or not signalled")
	}
	generation := r.Generation()
	r.Drain()
	if r.Track(workload("shop", 1, web, webPod)) || signalled(r) || r.Generation() != generation || r.Drain() != nil {
		t.Error("the same declaration had an effect")
	}
	again := workload("shop", 1, web, webPod)
	again.Declared = time.Unix(1, 0)
	if !r.Track(again) {
		t.Error("a ThreeportWorkload that was created again is no change")
	}
	listed.Resources[0].Name = "changed by the caller"
	if got, _ := r.Workload("shop"); got.Resources[0].Name != "web" {
		t.Error("a change of the caller's slice changed the registry")
	}
}

func TestTrack_ChangedDeclaration_ChangesAttributions(t *testing.T) {
	tests := []struct {
		reason   string
		next     Workload
		affected []Identity
		pod, job []string
	}{
		{
			reason:   "a resource is removed",
			next:     workload("shop", 1, webPod),
			affected: []Identity{web, webRS, webPod},
			pod:      []string{"shop: Pod app/web-1-x itself"},
		},
		{
			reason:   "a resource is added",
			next:     workload("shop", 1, web, webRS),
			affected: []Identity{webRS, webPod},
			pod:      []string{"shop: ReplicaSet app/web-1"},
		},
		{
			reason:   "the instance changes",
			next:     workload("shop", 2, web),
			affected: []Identity{web, webRS, webPod},
			pod:      []string{"shop: Deployment app/web"},
			job:      []string{"shop"},
		},
		{
			reason:   "the list is empty",
			next:     workload("shop", 1),
			affected: []Identity{web, webRS, webPod},
		},
	}
	labelledPod := ident(podKind, "job", "uid-job")
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			r := NewRegistry()
			r.Track(workload("shop", 1, web))
			for _, o := range []Object{owned(web), owned(webRS, web), owned(webPod, webRS), labelled(owned(labelledPod), 2)} {
				r.Upsert(o)
			}
			r.Drain()
			if !r.Track(tt.next) {
				t.Error("a changed declaration was not reported as a change")
			}
			expectDrained(t, r, tt.affected...)
			expectAttributions(t, r, webPod, tt.pod...)
			expectAttributions(t, r, labelledPod, tt.job...)
		})
	}
}

func TestForget_EndsAttributionsOfThatWorkloadOnly(t *testing.T) {
	r := NewRegistry()
	r.Track(workload("shop", 1, web))
	r.Track(workload("copy", 2, web))
	r.Upsert(owned(web))
	r.Upsert(owned(webRS, web))
	r.Drain()
	if !r.Forget("shop") {
		t.Error("Forget did not report a tracked workload")
	}
	expectDrained(t, r, web, webRS)
	expectAttributions(t, r, webRS, "copy: Deployment app/web")
	if _, ok := r.Workload("shop"); ok || r.Forget("shop") || r.Empty() {
		t.Error("the forgotten workload is still tracked, or the other one is not")
	}
	if r.Forget("copy"); !r.Empty() || r.IsListed(web.Ref) || len(r.ListedObjects(deploymentKind)) > 0 {
		t.Error("the registry is not empty after the last workload was forgotten")
	}
	expectAttributions(t, r, webRS)
}

func TestSetScope_ResolvesNamespaces(t *testing.T) {
	deployment := func(namespace string) Resource {
		return Resource{Ref: Ref{Group: "apps", Kind: "Deployment", Namespace: namespace, Name: "web"}, Version: "v1"}
	}
	node := func(namespace string) Resource {
		return Resource{Ref: Ref{Kind: "Node", Namespace: namespace, Name: "n"}, Version: "v1"}
	}
	pod := func(namespace string) Resource {
		return Resource{Ref: Ref{Kind: "Pod", Namespace: namespace, Name: "p"}, Version: "v1"}
	}
	tests := []struct {
		reason    string
		resources []Resource
		want      []string
	}{
		{reason: "a listed namespace is kept", resources: []Resource{deployment("a")}, want: []string{"Deployment a/web"}},
		{
			reason:    "no namespace is listed, and the others have the same one",
			resources: []Resource{deployment(""), pod("b"), pod("b")},
			want:      []string{"Deployment b/web", "Pod b/p", "Pod b/p"},
		},
		{
			reason:    "no namespace is listed, and the others have different ones",
			resources: []Resource{deployment(""), pod("b"), pod("c")},
			want:      []string{"Deployment default/web", "Pod b/p", "Pod c/p"},
		},
		{reason: "no resource has a namespace", resources: []Resource{deployment("")}, want: []string{"Deployment default/web"}},
		{
			reason:    "the namespace of a cluster-scoped resource is ignored",
			resources: []Resource{node("a")},
			want:      []string{"Node n"},
		},
	}
	scopes := []func(*Registry){
		func(r *Registry) { r.SetScope(deploymentKind, true) },
		func(r *Registry) { r.SetScope(nodeKind, false) },
		func(r *Registry) { r.SetScope(podKind, true) },
	}
	for _, tt := range tests {
		for _, before := range []bool{true, false} {
			name := tt.reason + ", scopes set after Track"
			if before {
				name = tt.reason + ", scopes set before Track"
			}
			t.Run(name, func(t *testing.T) {
				r := NewRegistry()
				track := func(*Registry) { r.Track(Workload{Name: "shop", Instance: instanceOf(1), Resources: tt.resources}) }
				steps := slices.Concat(scopes, []func(*Registry){track})
				if !before {
					steps = slices.Concat([]func(*Registry){track}, scopes)
				}
				for _, step := range steps {
					step(r)
				}
				w, _ := r.Workload("shop")
				for i, res := range w.Resources {
					if res.String() != tt.want[i] {
						t.Errorf("%s is resolved to %s, want %s", tt.resources[i], res, tt.want[i])
					}
					id := Identity{Ref: res.Ref, UID: "uid"}
					if found := r.Attributions(id); len(found) == 0 || found[0].Resource.Ref != res.Ref || !r.IsListed(res.Ref) {
						t.Errorf("the attributions of %s are %v", res, found)
					}
				}
			})
		}
	}
}

func TestSetScope_AffectsMovedObjects(t *testing.T) {
	r := NewRegistry()
	bare := web
	bare.Namespace = ""
	r.Track(workload("shop", 1, bare, webPod))
	r.Upsert(owned(web))
	r.Upsert(owned(webRS, web))
	r.Drain()
	generation := r.Generation()
	r.SetScope(deploymentKind, true)
	expectDrained(t, r, web, webRS)
	expectAttributions(t, r, webRS, "shop: Deployment app/web")
	if r.Generation() == generation {
		t.Error("the namespaces changed, but the generation did not")
	}
	r.SetScope(deploymentKind, true)
	expectDrained(t, r)
	r.SetScope(deploymentKind, false)
	expectDrained(t, r, web, webRS)
	expectAttributions(t, r, webRS)
}

func TestRegistry_ListsDeclarations(t *testing.T) {
	r := NewRegistry()
	helm := Workload{Name: "chart", Instance: Instance{HelmWorkloadInstance, 1}, Resources: []Resource{
		{Ref: Ref{Group: "apps", Kind: "Deployment", Namespace: "b", Name: "web"}, Version: "v1beta1"},
		{Ref: Ref{Kind: "Node", Name: "n"}, Version: "v1"},
	}}
	r.Track(helm)
	r.Track(workload("shop", 1, web, webPod))
	kinds := r.Kinds()
	for _, want := range []schema.GroupVersionKind{
		deploymentKind.WithVersion("v1"), deploymentKind.WithVersion("v1beta1"),
		podKind.WithVersion("v1"), nodeKind.WithVersion("v1"),
	} {
		if _, ok := kinds[want]; !ok || len(kinds) != 4 {
			t.Errorf("kinds are %[2]v, want four with %[1]v", want, kinds)
		}
	}
	if got := r.Namespaces(); !slices.Equal(got, []string{"app", "b"}) {
		t.Errorf("namespaces are %q", got)
	}
	if got := r.WorkloadNames(); !slices.Equal(got, []string{"chart", "shop"}) {
		t.Errorf("workloads are %q", got)
	}
	if got := r.WorkloadsListing(podKind); !slices.Equal(got, []string{"shop"}) {
		t.Errorf("workloads that list a Pod are %q", got)
	}
	if got := r.ListedObjects(deploymentKind); len(got) != 2 {
		t.Errorf("listed Deployments are %v, want two", got)
	}
	// The same ID of another type is another instance.
	pod := ident(podKind, "p", "uid-p")
	pod.Namespace = "b"
	r.Upsert(Object{Identity: pod, Instances: []Instance{helm.Instance}})
	expectAttributions(t, r, pod, "chart")
}

// The journal of an earlier process contains objects in any order.
func TestCurrent_LastUpsertedObjectHasTheName(t *testing.T) {
	r := NewRegistry()
	existing, deleted := owned(web), owned(ident(deploymentKind, "web", "uid-web-0"))
	r.Upsert(existing)
	r.Upsert(deleted)
	r.Delete(deleted.UID, start)
	r.Upsert(existing)
	if got, ok := r.ExistingObject(web.Ref); !ok || got.UID != web.UID {
		t.Errorf("Current returned %v (%t), want %v", got, ok, web)
	}
}

// underTwoNames returns a registry with one object that two kinds serve under its UID, such as Events of two groups.
func underTwoNames() (*Registry, []Object) {
	r := NewRegistry()
	first := Object{Identity: Identity{Ref: Ref{Kind: "Event", Namespace: "app", Name: "a"}, UID: "u"}}
	second := first
	second.Group = "events.k8s.io"
	r.Upsert(first)
	r.Upsert(second)
	return r, []Object{first, second}
}

func TestRegistry_Upsert_UIDWithAnotherName(t *testing.T) {
	r, objects := underTwoNames()
	for _, o := range objects {
		if got, ok := r.ExistingObject(o.Ref); !ok || got.UID != "u" {
			t.Errorf("the object of %v is %v, %t, want that with the UID u", o.Ref, got, ok)
		}
	}
}

func TestRegistry_UIDWithAnotherName_Removed_IsEmpty(t *testing.T) {
	r, objects := underTwoNames()
	r.Delete("u", start)
	for _, o := range objects {
		if got, ok := r.ExistingObject(o.Ref); ok {
			t.Errorf("the deleted object of %v is %v", o.Ref, got)
		}
	}
	r.Prune(start.Add(retainAttributed + 1))
	r.Drain()
	expectEmpty(t, r)
}
