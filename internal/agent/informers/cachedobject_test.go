package informers

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// The cache returns each recorded object of package health as it was.
func TestCachedObject_IsTheWholeObject(t *testing.T) {
	files, err := filepath.Glob("../../health/testdata/recorded/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects := 0
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		for decoder := yaml.NewYAMLOrJSONDecoder(f, 4096); ; objects++ {
			want := &unstructured.Unstructured{}
			err := decoder.Decode(want)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			cached, err := newCachedObject(want)
			if err != nil {
				t.Fatal(err)
			}
			if got := cached.object(); !apiequality.Semantic.DeepEqual(got, want) {
				t.Errorf("%s: the cached %s is\n     %v, want\n     %v", file, want.GetKind(), got, want)
			}
			if cached.GetUID() != want.GetUID() || cached.GetResourceVersion() != want.GetResourceVersion() || len(cached.OwnerReferences) != len(want.GetOwnerReferences()) {
				t.Errorf("%s: the metadata of %s are %v", file, want.GetKind(), cached.ObjectMeta)
			}
		}
		_ = f.Close() // it was only read
	}
	if objects < 100 {
		t.Errorf("only %d objects were found", objects)
	}
}
