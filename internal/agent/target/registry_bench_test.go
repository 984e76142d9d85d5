package target

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// BenchmarkRegistry_Upsert records a new version of one Pod among many of its Deployment, and attributes it.
func BenchmarkRegistry_Upsert(b *testing.B) {
	for _, pods := range []int{50, 10_000} {
		b.Run(fmt.Sprint(pods), func(b *testing.B) {
			r := NewRegistry()
			r.Track(workload("shop", 1, web))
			r.Upsert(owned(web))
			r.Upsert(owned(webRS, web))
			var changed Object
			for i := range pods {
				name := fmt.Sprint("web-1-", i)
				changed = owned(ident(podKind, name, types.UID(name)), webRS)
				r.Upsert(changed)
			}
			b.ReportAllocs()
			for b.Loop() {
				r.Upsert(changed)
				if len(r.Attributions(changed.Identity)) != 1 {
					b.Fatal("the Pod has no workload")
				}
			}
		})
	}
}

// BenchmarkRegistry_Memory reports the memory that a registry adds for each known object. The objects are 10,000 Pods, 200 ReplicaSets
// and 200 Deployments.
func BenchmarkRegistry_Memory(b *testing.B) {
	cache := deployed() // Informers keep the objects too, so the registry shares their strings.
	upsertAll := func(r *Registry) {
		for _, o := range cache {
			r.Upsert(o)
		}
	}
	for _, bm := range []struct {
		name  string
		build func(*Registry)
	}{
		{"existing", upsertAll},
		{"updated", func(r *Registry) {
			upsertAll(r)
			for i := range cache {
				cache[i] = decoded(cache[i])
			}
			upsertAll(r)
		}},
		{"deleted", func(r *Registry) {
			for _, o := range deployed() {
				r.Upsert(o)
				r.Delete(o.UID, start)
			}
		}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			for b.Loop() {
				r := NewRegistry()
				before := liveHeap()
				bm.build(r)
				r.Drain()
				b.ReportMetric(float64(liveHeap()-before)/float64(len(cache)), "B/object")
				runtime.KeepAlive(r)
			}
		})
	}
	runtime.KeepAlive(cache)
}

// liveHeap returns the size of the reachable objects.
func liveHeap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// deployed returns 200 Deployments, each with a ReplicaSet of 50 Pods.
func deployed() []Object {
	uid := uint32(0)
	object := func(o Object) Object {
		uid++
		o.UID = types.UID(fmt.Sprintf("%08x-5b6f-4d0c-9a41-7c52f0e1d2b3", uid))
		return decoded(o)
	}
	var objects []Object
	for n := range 200 {
		name := fmt.Sprintf("checkout-frontend-%03d", n)
		deployment := object(owned(ident(deploymentKind, name, "")))
		replicaSet := object(owned(ident(replicaSetKind, name+"-6d4b75cb6d", ""), deployment.Identity))
		objects = append(objects, deployment, replicaSet)
		for pod := range 50 {
			objects = append(objects, object(owned(ident(podKind, fmt.Sprintf("%s-x7k%02d", replicaSet.Name, pod), ""), replicaSet.Identity)))
		}
	}
	return objects
}

// decoded returns a copy of an object that shares no names and UIDs, as if it was read from the API server once more.
func decoded(o Object) Object {
	fresh := func(id Identity) Identity {
		id.Name, id.UID = strings.Clone(id.Name), types.UID(strings.Clone(string(id.UID)))
		return id
	}
	o.Identity = fresh(o.Identity)
	owners := o.Owners
	o.Owners = nil
	for _, owner := range owners {
		o.Owners = append(o.Owners, fresh(owner))
	}
	return o
}
