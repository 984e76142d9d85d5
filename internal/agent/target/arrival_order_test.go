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

func TestAttributions_AnyOrderOfArrival(t *testing.T) {
	bare := ident(podKind, "bare", "uid-bare")
	steps := []struct {
		name string
		do   func(*Registry)
	}{
		{name: "workload declared", do: func(r *Registry) { r.Track(workload("shop", 1, web)) }},
		{name: "Deployment added", do: func(r *Registry) { r.Upsert(owned(web)) }},
		{name: "ReplicaSet added", do: func(r *Registry) { r.Upsert(owned(webRS, web)) }},
		{name: "Pod added", do: func(r *Registry) { r.Upsert(owned(webPod, webRS)) }},
		{name: "labelled Pod added", do: func(r *Registry) { r.Upsert(labelled(owned(bare), 1)) }},
	}
	want := map[Identity][]string{
		web:    {"shop: Deployment app/web itself"},
		webRS:  {"shop: Deployment app/web"},
		webPod: {"shop: Deployment app/web"},
		bare:   {"shop"},
	}
	permutations(len(steps), func(order []int) {
		r := NewRegistry()
		read := map[Identity][]string{} // by a reader that asks only for the objects that Drain returns
		name := ""
		for _, i := range order {
			name += fmt.Sprintf("%s, ", steps[i].name)
			steps[i].do(r)
			if !signalled(r) {
				t.Errorf("%snothing was signalled", name)
			}
			out := r.Drain()
			for id := range want {
				if drained(out, id) {
					read[id] = attributionTexts(r.Attributions(id))
				}
			}
		}
		for id, attributions := range want {
			if got := attributionTexts(r.Attributions(id)); !slices.Equal(got, attributions) {
				t.Errorf("%sattributions of %s are %q, want %q", name, id.Ref, got, attributions)
			}
			if !slices.Equal(read[id], attributions) {
				t.Errorf("%sthe latest attributions read of %s are %q, want %q", name, id.Ref, read[id], attributions)
			}
		}
	})
}

// The Deployment is unknown; only the reference of its ReplicaSet names it.
func TestAttributions_AnyOrderOfArrival_OwnerKnownByReferenceOnly(t *testing.T) {
	parent := clusterScoped(ident(nodeKind, "parent", "uid-parent"))
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
		expectAttributions(t, r, webPod, "shop: Deployment app/web")
		expectAttributions(t, r, child, "shop: Node parent")
		if !affected[webPod] || !affected[child] {
			t.Errorf("order %v: Drain returned %v, want both Pods in it", order, affected)
		}
	})
}
