package target

import (
	"fmt"
	"slices"
	"testing"
)

// permutations calls yield with every order of the numbers below n.
func permutations(n int, yield func([]int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var permute func(int)
	permute = func(k int) {
		if k == n {
			yield(slices.Clone(order))
			return
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			permute(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	permute(0)
}

func TestTheOrderOfArrivalDoesNotMatter(t *testing.T) {
	bare := ident(podKind, "bare", "uid-bare")
	steps := []struct {
		name string
		do   func(*Registry)
	}{
		{"workload declared", func(r *Registry) { r.Track(workload("shop", 1, web)) }},
		{"Deployment seen", func(r *Registry) { r.Upsert(owned(web)) }},
		{"ReplicaSet seen", func(r *Registry) { r.Upsert(owned(webRS, web)) }},
		{"Pod seen", func(r *Registry) { r.Upsert(owned(webPod, webRS)) }},
		{"labelled Pod seen", func(r *Registry) { r.Upsert(labelled(owned(bare), 1)) }},
	}
	want := map[Identity][]string{
		web:    {"shop: Deployment app/web itself"},
		webRS:  {"shop: Deployment app/web"},
		webPod: {"shop: Deployment app/web"},
		bare:   {"shop"},
	}
	permutations(len(steps), func(order []int) {
		r := NewRegistry()
		told := map[Identity][]string{} // what a reader knows that looks only at what is handed out
		name := ""
		for _, i := range order {
			name += fmt.Sprintf("%s, ", steps[i].name)
			steps[i].do(r)
			if !signalled(r) {
				t.Errorf("%snothing is signalled", name)
			}
			out := r.Drain()
			for id := range want {
				if drained(out, id) {
					told[id] = claimTexts(r.Attributions(id))
				}
			}
		}
		for id, claims := range want {
			if got := claimTexts(r.Attributions(id)); !slices.Equal(got, claims) {
				t.Errorf("%sclaims on %s are %q, want %q", name, id.Ref, got, claims)
			}
			if !slices.Equal(told[id], claims) {
				t.Errorf("%sa reader was left with %q about %s, want %q", name, told[id], id.Ref, claims)
			}
		}
	})
}

// The Deployment is never seen, only named by its ReplicaSet.
func TestTheOrderDoesNotMatterWithAnOwnerKnownByReferenceOnly(t *testing.T) {
	parent := clusterWide(ident(nodeKind, "parent", "uid-parent"))
	child := ident(podKind, "child", "uid-child")
	steps := []func(*Registry){
		func(r *Registry) { r.Track(workload("shop", 1, web, parent)) },
		func(r *Registry) { r.Upsert(owned(webRS, web)) },
		func(r *Registry) { r.Upsert(owned(webPod, webRS)) },
		func(r *Registry) { r.Upsert(owned(child, ident(nodeKind, "parent", "uid-parent"))) },
		func(r *Registry) { r.SetScope(nodeKind, false) },
	}
	permutations(len(steps), func(order []int) {
		r := NewRegistry()
		affected := map[Identity]bool{}
		for _, i := range order {
			steps[i](r)
			for _, id := range r.Drain() {
				affected[id] = true
			}
		}
		expectClaims(t, r, webPod, "shop: Deployment app/web")
		expectClaims(t, r, child, "shop: Node parent")
		if !affected[webPod] || !affected[child] {
			t.Errorf("order %v: %v were handed out", order, affected)
		}
	})
}
