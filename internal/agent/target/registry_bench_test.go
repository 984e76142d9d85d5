package target

import (
	"fmt"
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
