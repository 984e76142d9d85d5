package assess

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// A workload lists hundreds of Services and Deployments with the same hundreds of labels. All verdicts wait for the lock of the assessments.
func TestAssessments_ServicesAndWorkloadsWithManyLabels(t *testing.T) {
	const objects = 200 // of each kind
	measure := func(labels int) time.Duration {
		all := map[string]any{}
		for i := range labels {
			all[fmt.Sprintf("example.org/label-%06d", i)] = "x"
		}
		s := newAssessments()
		add := func(kind schema.GroupKind, i int, spec map[string]any) target.Attribution {
			ref := target.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: "ns", Name: fmt.Sprint(i)}
			at := target.Attribution{Workload: "web", Resource: target.Resource{Ref: ref}, Listed: true}
			s.set(at, target.Identity{Ref: ref, UID: types.UID(fmt.Sprint(kind.Kind, i))}, health.OwnerPath{},
				health.Assessment{Verdict: health.Verdict{Status: health.Reconciling, Reason: "Progressing"}})
			obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "ns"}, "spec": spec}}
			s.resource(at).labels = health.PodLabelsOf(kind, obj)
			return at
		}
		for i := range objects {
			add(schema.GroupKind{Group: "apps", Kind: "Deployment"}, i, map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": all}}})
			at := add(serviceKind, i, map[string]any{"selector": all})
			at.Listed = false
			s.set(at, target.Identity{Ref: target.Ref{Kind: "EndpointSlice", Name: fmt.Sprint(i)}, UID: types.UID(fmt.Sprint("slice-", i))}, health.OwnerPath{},
				health.Assessment{Verdict: health.Verdict{Status: health.Unhealthy, Reason: "NoEndpoints"}})
		}
		begin := time.Now()
		s.verdicts("web")
		return time.Since(begin)
	}
	few, many := measure(1), measure(1000)
	t.Logf("the verdicts of %d Services and as many Deployments take %v, and %v with 1,000 labels each", objects, few, many)
	if most := 20*few + time.Second; many > most {
		t.Errorf("they take %v with 1,000 labels each, want at most %v", many, most)
	}
}
