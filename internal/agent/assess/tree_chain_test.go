package assess

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// The time of a tree grows with the number of its objects also if each of them owns the next one. One worker makes the trees and the
// statuses of all workloads.
func TestAssessor_BuildTree_LongChainOfLabelledPods(t *testing.T) {
	const pods = 3000
	measure := func(chained bool) time.Duration {
		targets, instance := target.NewRegistry(), target.Instance{Type: target.WorkloadInstance, ID: 1}
		a := New(Config{Now: time.Now}, targets, stateCluster{"ConfigMap": target.Absent}, noTransitions{}, NewMetrics(prometheus.NewRegistry()), logr.Discard())
		ref := target.Ref{Kind: "ConfigMap", Namespace: "ns", Name: "x"}
		targets.Track(target.Workload{Name: "web", Instance: instance, Resources: []target.Resource{{Ref: ref, Version: "v1"}}})
		pod := func(i int) target.Identity {
			return target.Identity{
				Ref: target.Ref{Kind: "Pod", Namespace: "ns", Name: fmt.Sprintf("p%06d", i)}, UID: types.UID(fmt.Sprintf("01234567-89ab-cdef-0123-%012d", i)),
			}
		}
		for i := range pods {
			o := target.Object{Identity: pod(i), Instances: []target.Instance{instance}}
			if chained && i > 0 {
				o.Owners = []target.Identity{pod(i - 1)}
			}
			targets.Upsert(o)
		}
		begin := time.Now()
		if n := len(a.BuildTree(instance).Objects); n != pods+1 {
			t.Fatalf("the tree has %d objects, want %d", n, pods+1)
		}
		return time.Since(begin)
	}
	flat, chained := measure(false), measure(true)
	t.Logf("a tree of %d Pods takes %v, and %v if each owns the next one", pods, flat, chained)
	if most := 10*flat + time.Second; chained > most {
		t.Errorf("it takes %v if each owns the next one, want at most %v", chained, most)
	}
}
