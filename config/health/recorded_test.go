package catalogue

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/threeport/threeport-agent/internal/health"
	"github.com/threeport/threeport-agent/internal/testing/recorded"
)

// conventionDeviations has the custom resources of recordings whose verdict by the conventions alone differs from the one of a user,
// with the reason. None may be Healthy.
var conventionDeviations = map[string]struct {
	got health.Status
	why string
}{
	"argo-rollouts-analysis: AnalysisTemplate success": {got: health.Unknown, why: "it holds settings and has no status"},
	"flux-kustomization-dependency: Kustomization app": {
		got: health.Reconciling, why: "the reason DependencyNotReady says that it waits, so it has until a deadline",
	},
}

// recordings returns the recordings of operators by name.
func recordings(t *testing.T) map[string]recorded.State {
	t.Helper()
	files, err := filepath.Glob("testdata/recorded/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("there are %d recordings, error %v; want 20 or more", len(files), err)
	}
	out := map[string]recorded.State{}
	for _, file := range files {
		state, err := recorded.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(file), ".yaml")] = state
	}
	return out
}

// forest assesses the objects of a recording by rules; nil for the conventions alone.
func forest(state recorded.State, by health.Rules) []*health.Node {
	return health.Forest(state.Objects, func(o *unstructured.Unstructured) health.Context {
		return health.Context{Now: state.At, Warning: health.Warning(state.Warnings[o.GetUID()]), Rules: by}
	})
}

// verdicts returns the verdict on each object, together with its derived objects, by kind and name.
func verdicts(nodes []*health.Node) map[string]health.Verdict {
	out := map[string]health.Verdict{}
	for _, n := range nodes {
		out[n.Object.GetKind()+" "+n.Object.GetName()] = n.Aggregate.Verdict
		maps.Copy(out, verdicts(n.Children))
	}
	return out
}

// TestRecorded_ByCatalogue assesses what real operators wrote, and compares the statuses with those that a user would give.
func TestRecorded_ByCatalogue(t *testing.T) {
	for name, state := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			roots := forest(state, Rules())
			var all []health.Verdict
			for _, root := range roots {
				all = append(all, root.Aggregate.Verdict)
			}
			if got := health.Worst(all...); string(got.Status) != state.User {
				t.Errorf("the workload is %s %s: %s; want %s", got.Status, got.Reason, got.Message, state.User)
			}
			found := verdicts(roots)
			for part, want := range state.Parts {
				if got, ok := found[part]; !ok || string(got.Status) != want {
					t.Errorf("%s is %s %s: %s; want %s", part, got.Status, got.Reason, got.Message, want)
				}
			}
			for _, o := range state.Objects {
				part := o.GetKind() + " " + o.GetName()
				if group := o.GroupVersionKind().Group; strings.Contains(group, ".") && state.Parts[part] == "" {
					t.Errorf("the recording does not say what a user would call %s", part)
				}
			}
		})
	}
}

// TestRecorded_ByConventions assesses the same without the rules of the catalogue, as if the kinds were unknown. The conventions do
// not know whether an object that is not ready works in part, so Unhealthy may stand for Down.
func TestRecorded_ByConventions(t *testing.T) {
	for name, state := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			found := verdicts(forest(state, nil))
			for part, want := range state.Parts {
				got := found[part]
				if deviation, ok := conventionDeviations[name+": "+part]; ok {
					if got.Status != deviation.got || string(got.Status) == want {
						t.Errorf("%s is %s %s, want the listed deviation %s", part, got.Status, got.Reason, deviation.got)
					}
					continue
				}
				inPart := want == string(health.Down) && got.Status == health.Unhealthy
				if string(got.Status) != want && !inPart {
					t.Errorf("%s is %s %s: %s; want %s", part, got.Status, got.Reason, got.Message, want)
				}
			}
		})
	}
	for key, deviation := range conventionDeviations {
		name, _, _ := strings.Cut(key, ": ")
		if _, ok := recordings(t)[name]; !ok || deviation.got == health.Healthy {
			t.Errorf("the deviation %s has no recording, or is Healthy", key)
		}
	}
}
