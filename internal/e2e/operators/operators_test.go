package operators

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/e2e/scenario"
	"github.com/threeport/threeport-agent/internal/e2e/scenario/recording"
)

// recorded names the folder of the recordings, which `make record-operators` writes.
const recorded = "../../../config/health/testdata/recorded"

func scenarios() []scenario.Scenario {
	var out []scenario.Scenario
	for _, o := range All() {
		out = append(out, o.Scenarios()...)
	}
	return out
}

func TestScenarios_EachManifestHasOne(t *testing.T) {
	files, err := filepath.Glob("manifests/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, file := range files {
		want = append(want, strings.TrimSuffix(filepath.Base(file), ".yaml"))
	}
	for _, s := range scenarios() {
		got = append(got, s.Name)
		if !strings.HasSuffix(s.Doc(), ".") {
			t.Errorf("the manifest of %s begins with %q, want a sentence", s.Name, s.Doc())
		}
		if objects, err := s.Objects(scenario.Env{Namespace: "app"}); err != nil || len(objects) == 0 {
			t.Errorf("%s has %d objects, error %v", s.Name, len(objects), err)
		}
		if o, err := find(s.Name); err != nil || !slices.ContainsFunc(o.scenarios, func(of scenario.Scenario) bool { return of.Name == s.Name }) {
			t.Errorf("the operator of %s is %s, error %v", s.Name, o.Name, err)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("scenarios %v, manifests %v", got, want)
	}
}

func TestOperators_ArePinned(t *testing.T) {
	for _, o := range All() {
		if versions := o.versions(); strings.Contains(versions, "unknown") {
			t.Errorf("operator %s has the versions %s", o.Name, versions)
		}
	}
}

func TestRecordings_MatchMoments(t *testing.T) {
	known := map[string]bool{}
	for _, s := range scenarios() {
		for _, step := range s.Steps {
			if step.Moment == "" {
				continue
			}
			known[step.Moment] = true
			t.Run(step.Moment, func(t *testing.T) {
				text, err := os.ReadFile(filepath.Join(recorded, step.Moment+".yaml"))
				if err != nil {
					t.Fatalf("%v: run make record-operators", err)
				}
				at, err := recording.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				if err := step.Reached(at); err != nil {
					t.Errorf("the recording does not pass the check of its moment: %v", err)
				}
				again, err := recording.Text(at, scenario.Comment(s, step))
				if err != nil {
					t.Fatal(err)
				}
				if string(again) != string(text) {
					t.Error("the recording differs from the output of make record-operators: run it again, and do not edit recordings")
				}
			})
		}
	}
	files, err := filepath.Glob(filepath.Join(recorded, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !known[strings.TrimSuffix(filepath.Base(file), ".yaml")] {
			t.Errorf("%s has no moment", file)
		}
	}
}
