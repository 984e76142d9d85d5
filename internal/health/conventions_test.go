package health

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestConventions_CatalogueCases_RarelyFalseHealthy assesses the cases of the catalogue without its rules. It bounds how
// many objects that are not Healthy by their rule are Healthy by the conventions.
func TestConventions_CatalogueCases_RarelyFalseHealthy(t *testing.T) {
	files, err := filepath.Glob("../../config/health/testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no files of cases: %v", err)
	}
	var bad, falseHealthy, good, missed int
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var cases []caseFile
		if err := yaml.Unmarshal(data, &cases); err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			now := c.Now
			if now.IsZero() {
				now = caseTime
			}
			u := &unstructured.Unstructured{Object: c.Object}
			got := Object(kindOf(u), u, Context{Now: now})
			switch {
			case c.Want.Status == Healthy:
				good++
				if got.Status != Healthy {
					missed++
					t.Logf("%s: %s %s: %s %s: %q", filepath.Base(file), u.GetKind(), c.Name, got.Status, got.Reason, got.Message)
				}
			case got.Status == Healthy:
				bad++
				falseHealthy++
				t.Logf("%s: %s %s: false Healthy, is %s %s", filepath.Base(file), u.GetKind(), c.Name, c.Want.Status, c.Want.Reason)
			default:
				bad++
			}
		}
	}
	t.Logf("false Healthy: %d of %d; Healthy objects that are missed: %d of %d", falseHealthy, bad, missed, good)
	if falseHealthy*20 >= bad {
		t.Errorf("false Healthy: %d of %d, want less than 5 %%", falseHealthy, bad)
	}
	if missed*2 >= good {
		t.Errorf("%d of %d Healthy objects are missed, want less than half", missed, good)
	}
}

// TestLexicon_NoWordHasTwoClasses checks that no word of the vocabulary has two meanings.
func TestLexicon_NoWordHasTwoClasses(t *testing.T) {
	seen := map[string]meaning{}
	for means, words := range classes {
		for w := range words {
			if old, ok := seen[w]; ok {
				t.Errorf("the word %q is in the classes %d and %d, want one", w, old, means)
			}
			seen[w] = means
		}
	}
}
