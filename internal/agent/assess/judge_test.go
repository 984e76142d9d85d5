package assess

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// panickingRules panic for one object, with its content.
type panickingRules struct{ name string }

func (r panickingRules) Judge(_ schema.GroupKind, object map[string]any, _ time.Time) (health.Assessment, bool) {
	u := unstructured.Unstructured{Object: object}
	if u.GetName() == r.name {
		panic(u.GetAnnotations()["password"])
	}
	return health.Assessment{Verdict: health.Verdict{Status: health.Healthy}}, true
}

func (panickingRules) Covers(schema.GroupKind) bool { return true }

// assess judges an object and keeps the verdict for one workload.
func (a *Assessor) assess(attribution target.Attribution, o Object) Change {
	if judged := a.Judge(o, attribution.Listed); judged != nil {
		return a.Keep(attribution, judged)
	}
	return Change{}
}

func TestAssessor_Judge_PanicCostsOneVerdict(t *testing.T) {
	var logged strings.Builder
	log := funcr.New(func(_, args string) { logged.WriteString(args + "\n") }, funcr.Options{})
	targets, registry := target.NewRegistry(), prometheus.NewRegistry()
	a := New(Config{Rules: panickingRules{name: "bad"}, Now: time.Now}, targets,
		stateCluster{"Cache": target.Present, "Pod": target.Present}, noTransitions{}, NewMetrics(registry), log)
	wl := target.Workload{Name: "web", Instance: target.Instance{Type: target.WorkloadInstance, ID: 1}}
	for _, kind := range []string{"Cache", "Pod"} {
		for _, name := range []string{"bad", "good"} {
			wl.Resources = append(wl.Resources, target.Resource{Ref: target.Ref{Kind: kind, Namespace: "ns", Name: name}, Version: "v1"})
		}
	}
	targets.Track(wl)
	for _, r := range wl.Resources {
		object := &unstructured.Unstructured{}
		object.SetName(r.Name)
		object.SetAnnotations(map[string]string{"password": "do-not-log"})
		attribution := target.Attribution{Workload: wl.Name, Resource: r, Listed: true}
		a.assess(attribution, Object{Identity: target.Identity{Ref: r.Ref, UID: "1"}, Cached: object, Whole: object})
	}
	statuses, _ := a.ResourceStatuses("web")
	for _, got := range statuses {
		want := [2]string{"Healthy", ""}
		if got.Name == "bad" {
			want = [2]string{"Unknown", "InternalError"}
		}
		if ([2]string{got.Health, got.Reason}) != want {
			t.Errorf("%s is %s %s, want %s", got.Ref, got.Health, got.Reason, want)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, family := range families {
		counts[family.GetName()] = family.GetMetric()[0].GetCounter().GetValue()
	}
	if counts["threeport_agent_assessment_panics_total"] != 2 || counts["threeport_agent_assessments_total"] != 4 {
		t.Errorf("the metrics are %v, want 2 panics in 4 assessments", counts)
	}
	if n := strings.Count(logged.String(), "Unknown"); n != 1 || !strings.Contains(logged.String(), "Cache ns/bad") {
		t.Errorf("the log has %d entries, want one that names Cache ns/bad:\n%s", n, logged.String())
	}
	if strings.Contains(logged.String(), "do-not-log") {
		t.Errorf("the log has content of the object:\n%s", logged.String())
	}
}
