package target

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestTrackingTheSameAgainChangesNothing(t *testing.T) {
	r := NewRegistry()
	listed := workload("shop", 1, web, webPod)
	if !r.Track(listed) || !signalled(r) {
		t.Error("a new workload changes something and is signalled")
	}
	generation := r.Generation()
	r.Drain()
	if r.Track(workload("shop", 1, web, webPod)) || signalled(r) || r.Generation() != generation || r.Drain() != nil {
		t.Error("the same again changed something")
	}
	listed.Resources[0].Name = "changed by the caller"
	if got, _ := r.Workload("shop"); got.Resources[0].Name != "web" {
		t.Error("the registry shares the caller's slice")
	}
}

func TestAChangedListMovesTheClaims(t *testing.T) {
	tests := []struct {
		reason   string
		next     Workload
		affected []Identity
		pod, job []string
	}{
		{
			"a resource is taken out", workload("shop", 1, webPod),
			[]Identity{web, webRS, webPod},
			[]string{"shop: Pod app/web-1-x itself"},
			nil,
		},
		{
			"a resource is put in", workload("shop", 1, web, webRS),
			[]Identity{webRS, webPod},
			[]string{"shop: ReplicaSet app/web-1"},
			nil,
		},
		{
			"it becomes another instance's", workload("shop", 2, web),
			[]Identity{web, webRS, webPod},
			[]string{"shop: Deployment app/web"},
			[]string{"shop"},
		},
		{
			"the list is empty", workload("shop", 1),
			[]Identity{web, webRS, webPod},
			nil, nil,
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
				t.Error("another list is no change")
			}
			expectDrained(t, r, tt.affected...)
			expectClaims(t, r, webPod, tt.pod...)
			expectClaims(t, r, labelledPod, tt.job...)
		})
	}
}

func TestForgettingAWorkloadEndsItsClaimsAndNoOthers(t *testing.T) {
	r := NewRegistry()
	r.Track(workload("shop", 1, web))
	r.Track(workload("copy", 2, web))
	r.Upsert(owned(web))
	r.Upsert(owned(webRS, web))
	r.Drain()
	if !r.Forget("shop") {
		t.Error("there was one")
	}
	expectDrained(t, r, web, webRS)
	expectClaims(t, r, webRS, "copy: Deployment app/web")
	if _, ok := r.Workload("shop"); ok || r.Forget("shop") || r.Empty() {
		t.Error("it is still there, or the other one is not")
	}
	if r.Forget("copy"); !r.Empty() || r.Lists(web.Ref) || len(r.Listed(deploymentKind)) > 0 {
		t.Error("nothing is tracked any more")
	}
	expectClaims(t, r, webRS)
}

func TestTheScopeOfAKindSaysWhereResourcesAreLookedFor(t *testing.T) {
	deployment := func(namespace string) Resource {
		return Resource{Ref: Ref{"apps", "Deployment", namespace, "web"}, Version: "v1"}
	}
	node := func(namespace string) Resource {
		return Resource{Ref: Ref{"", "Node", namespace, "n"}, Version: "v1"}
	}
	pod := func(namespace string) Resource {
		return Resource{Ref: Ref{"", "Pod", namespace, "p"}, Version: "v1"}
	}
	tests := []struct {
		reason    string
		resources []Resource
		want      []string
	}{
		{"a namespace that is listed stays", []Resource{deployment("a")}, []string{"Deployment a/web"}},
		{"none is listed, and the others agree on one", []Resource{deployment(""), pod("b"), pod("b")}, []string{"Deployment b/web", "Pod b/p", "Pod b/p"}},
		{"none is listed, and the others do not agree", []Resource{deployment(""), pod("b"), pod("c")}, []string{"Deployment default/web", "Pod b/p", "Pod c/p"}},
		{"none is listed at all", []Resource{deployment("")}, []string{"Deployment default/web"}},
		{"a cluster-scoped kind has none, whatever is listed", []Resource{node("a")}, []string{"Node n"}},
	}
	scopes := []func(*Registry){
		func(r *Registry) { r.SetScope(deploymentKind, true) },
		func(r *Registry) { r.SetScope(nodeKind, false) },
		func(r *Registry) { r.SetScope(podKind, true) },
	}
	for _, tt := range tests {
		for _, before := range []bool{true, false} {
			name := tt.reason + ", known after"
			if before {
				name = tt.reason + ", known before"
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
						t.Errorf("%s is looked for as %s, want %s", tt.resources[i], res, tt.want[i])
					}
					id := Identity{Ref: res.Ref, UID: "uid"}
					if claims := r.Attributions(id); len(claims) == 0 || claims[0].Resource.Ref != res.Ref || !r.Lists(res.Ref) {
						t.Errorf("%s has the claims %v", res, claims)
					}
				}
			})
		}
	}
}

func TestAScopeThatIsLearnedHandsOutWhatMoves(t *testing.T) {
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
	expectClaims(t, r, webRS, "shop: Deployment app/web")
	if r.Generation() == generation {
		t.Error("the namespaces changed, the generation did not")
	}
	r.SetScope(deploymentKind, true)
	expectDrained(t, r)
	r.SetScope(deploymentKind, false)
	expectDrained(t, r, web, webRS)
	expectClaims(t, r, webRS)
}

func TestWhatIsDeclaredIsListed(t *testing.T) {
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
			t.Errorf("%v is not among %v", want, kinds)
		}
	}
	if got := r.Namespaces(); !slices.Equal(got, []string{"app", "b"}) {
		t.Errorf("namespaces %q", got)
	}
	if got := r.Workloads(); !slices.Equal(got, []string{"chart", "shop"}) {
		t.Errorf("workloads %q", got)
	}
	if got := r.WorkloadsListing(podKind); !slices.Equal(got, []string{"shop"}) {
		t.Errorf("workloads with a Pod: %q", got)
	}
	if got := r.Listed(deploymentKind); len(got) != 2 {
		t.Errorf("listed Deployments: %v", got)
	}
	// One ID in both types is two instances.
	pod := ident(podKind, "p", "uid-p")
	r.Upsert(Object{Identity: pod, Instances: []Instance{helm.Instance}})
	expectClaims(t, r, pod, "chart")
}

// The memory of an earlier process may tell of objects in any order.
func TestTheObjectThatIsToldOfLastBearsTheName(t *testing.T) {
	r := NewRegistry()
	living, gone := owned(web), owned(ident(deploymentKind, "web", "uid-web-0"))
	r.Upsert(living)
	r.Upsert(gone)
	r.Delete(gone.UID, start)
	r.Upsert(living)
	if got, ok := r.Current(web.Ref); !ok || got.UID != web.UID {
		t.Errorf("the name is borne by %v (%t), want %v", got, ok, web)
	}
}
